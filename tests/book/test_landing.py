"""The cards of the first page: their pictures, and findings that their chapters' checks hold."""

import importlib
import json
import re

import pytest
from prose import BOOK, source

DRAWING = """<svg xmlns="http://www.w3.org/2000/svg" width="100pt" height="80pt" viewBox="0 0 100 80"><defs>
<clipPath id="data"><rect x="10" y="5" width="60" height="50"/></clipPath>
<clipPath id="colours"><rect x="80" y="5" width="4" height="50"/></clipPath></defs><text>x</text></svg>"""


@pytest.fixture
def landing(monkeypatch, pytestconfig):
    monkeypatch.syspath_prepend(pytestconfig.rootpath / "book" / "_ext")
    return importlib.import_module("landing")


def test_a_card_shows_the_axes_but_not_the_scale_of_colours(landing):
    made = landing.data_alone(DRAWING)
    # Of what stands there the style shows what axes cut off: tests/browser/test_controls.py.
    place = 'width="60.00pt" height="50.00pt" viewBox="10.0 5.0 60.00 50.00"'
    assert made.startswith(f'<svg xmlns="http://www.w3.org/2000/svg" {place}><style>')


def test_the_finding_of_a_card_is_what_its_chapter_answers(landing):
    """`tools/claims.py` sees to it that a check holds each answer."""
    cards = re.search(r"```\{chapter-cards\}\n(.*?)```", (BOOK / "intro.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    for facts, _, finding in (line.partition(": ") for line in cards.splitlines()):
        notebook = json.loads((BOOK / f"{facts.split()[0]}.ipynb").read_text(encoding="utf-8"))
        shown = landing.found(source(notebook["cells"][0]), finding)
        assert shown[0].isupper() and shown.endswith("."), finding
        with pytest.raises(ValueError, match="does not say: All"):
            landing.found(source(notebook["cells"][0]), "All models do.")
