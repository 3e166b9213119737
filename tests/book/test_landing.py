"""The pictures on the cards of the first page."""

import importlib

DRAWING = """<svg xmlns="http://www.w3.org/2000/svg" width="100pt" height="80pt" viewBox="0 0 100 80"><defs>
<clipPath id="data"><rect x="10" y="5" width="60" height="50"/></clipPath>
<clipPath id="colours"><rect x="80" y="5" width="4" height="50"/></clipPath></defs><text>x</text></svg>"""


def test_a_card_shows_the_axes_but_not_the_scale_of_colours(monkeypatch, pytestconfig):
    monkeypatch.syspath_prepend(pytestconfig.rootpath / "book" / "_ext")
    made = importlib.import_module("landing").data_alone(DRAWING)
    # Of what stands there the style shows what axes cut off: tests/browser/test_controls.py.
    place = 'width="60.00pt" height="50.00pt" viewBox="10.0 5.0 60.00 50.00"'
    assert made.startswith(f'<svg xmlns="http://www.w3.org/2000/svg" {place}><style>')
