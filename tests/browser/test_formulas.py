"""Formulas of the built book: every one is set, without a script, and a link lands where they stand before it."""

import json
import re

import pytest

from .built import BOOK, chapters, soup
from .chromium import styles
from .figures import WIDTHS

# Places that a link from elsewhere may name, with figures, formulas and folded solutions before them.
SECTIONS = [
    "encodings/sinusoidal-and-learned.html#exercises",
    "nopos/how-it-knows.html#what-to-remember",
    *(
        pytest.param(place, marks=pytest.mark.slow)
        for place in (
            "why/permutation-equivariance.html#exercises",
            "encodings/relative-positions.html#train-short-test-long",
            "encodings/relative-positions.html#what-to-remember",
            "encodings/museum-of-bugs.html#exercises",
            "probing/position-tables.html#a-split-that-asks-for-more",
            "probing/three-properties.html#exercises",
            "probing/which-positions.html#exercises",
            "nopos/no-positions.html#exercises",
        )
    ),
]
# By how many pixels a link may miss its place.
NEAR = 8
TEX = re.compile(r"\\[(\[]|\$\$|\\[a-z]{2,}")
MISSED = """async () => {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const top = () => place.getBoundingClientRect().top;
  const before = top();
  place.scrollIntoView({ behavior: "instant" });
  return Math.abs(top() - before);
}"""


def written(name):
    """Count the formulas in the source of a chapter."""
    cells = json.loads((BOOK / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    prose = [re.sub(r"(?s)```.*?```|`[^`\n]*`", "", text) for text in texts]
    return sum(len(re.findall(r"(?s)\$\$.+?\$\$|(?<!\\)\$[^$\n]+\$", text)) for text in prose)


@pytest.mark.parametrize("name", chapters())
def test_every_formula_is_set(built, name):
    page = soup(f"{name}.html")
    # A formula that may break is several elements, and a title stands in lists of contents too.
    assert len(page.select("main math")) >= written(name)
    prose = [
        node.get_text() for node in page.select("main :is(p, li, td, h1, h2, h3, figcaption):not(:has(code, pre))")
    ]
    assert [text for text in prose if TEX.search(text)] == []
    assert page.select("math[tabindex], math [tabindex], .math[tabindex]") == []


def test_formulas_need_no_script(open_address, site):
    page = open_address(f"{site}/encodings/relative-positions.html", java_script_enabled=False)
    formulas = page.locator("main math")
    assert {family.split(",")[0] for family in styles(formulas, "fontFamily")} == {"Formulas"}
    # As high as a letter.
    boxes = [formula.bounding_box() for formula in formulas.all() if formula.is_visible()]
    assert boxes and all(box["height"] > 5 for box in boxes)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("place", SECTIONS)
def test_a_link_lands_on_its_section(open_address, site, place, width):
    page = open_address(f"{site}/{place}", width=width)
    page.evaluate("() => document.fonts.ready.then(() => null)")
    assert page.evaluate("scrollY") > 1000
    assert page.evaluate(MISSED) <= NEAR
