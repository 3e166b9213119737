"""Formulas of the built book: set without a script, not in the way of the keyboard, and no wider than a phone."""

import json
import re

import pytest

from .built import BOOK, HTML, chapters, pages, soup
from .chromium import styles
from .figures import WIDTHS

WITH_FORMULAS = [name for name in pages() if "<math" in (HTML / name).read_text(encoding="utf-8")]
LOOKED_AT = ["why/permutation-equivariance.html", "encodings/relative-positions.html", "schemes/kerple.html"]
PAGES = [*LOOKED_AT, *(pytest.param(page, marks=pytest.mark.slow) for page in WITH_FORMULAS if page not in LOOKED_AT)]
PHONES = [360, 390]
# Ten places that a link from elsewhere may name, with figures, formulas and folded solutions before them.
SECTIONS = [
    "why/permutation-equivariance.html#exercises",
    "encodings/sinusoidal-and-learned.html#exercises",
    "encodings/relative-positions.html#train-short-test-long",
    "encodings/relative-positions.html#what-to-remember",
    "encodings/museum-of-bugs.html#exercises",
    "probing/position-tables.html#models-without-a-table",
    "probing/three-properties.html#exercises",
    "probing/which-positions.html#exercises",
    "nopos/no-positions.html#exercises",
    "nopos/how-it-knows.html#what-to-remember",
]
# By how many pixels a link may miss its place.
NEAR = 8
TEX = re.compile(r"\\[(\[]|\$\$|\\[a-z]{2,}")
# A wide table is scrolled, with all that stands in it; the list of contents waits beside a phone's page.
OUT_OF_PLACE = """() => {
  const right = (node) => node.getBoundingClientRect().right;
  const line = (node) => getComputedStyle(node).display.startsWith("inline") ? line(node.parentElement) : node;
  return [...document.querySelectorAll(".bd-article math")]
    .filter((node) => node.checkVisibility() && !node.closest("table"))
    .filter((node) => right(node) > Math.min(right(line(node.parentElement)), innerWidth) + 1)
    .map((node) => node.textContent);
}"""
AS_HIGH_AS_A_LETTER = """(nodes) => nodes
  .filter((node) => node.checkVisibility()).every((node) => node.getBoundingClientRect().height > 5)"""
SCROLLED = "(nodes) => nodes.filter((node) => node.scrollWidth > node.clientWidth).map((node) => node.textContent)"
MISSED = """async () => {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const top = () => place.getBoundingClientRect().top;
  const before = top();
  place.scrollIntoView({ behavior: "instant" });
  return Math.abs(top() - before);
}"""


@pytest.fixture(autouse=True)
def _needs_the_book(built):
    """Every test here reads the built pages."""


def written(name):
    """Count the formulas in the source of a chapter."""
    cells = json.loads((BOOK / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    prose = [re.sub(r"(?s)```.*?```|`[^`\n]*`", "", text) for text in texts]
    return sum(len(re.findall(r"(?s)\$\$.+?\$\$|(?<!\\)\$[^$\n]+\$", text)) for text in prose)


@pytest.mark.parametrize("name", chapters())
def test_every_formula_is_set(name):
    page = soup(f"{name}.html")
    # A formula that may break is several elements, and a title stands in lists of contents too.
    assert len(page.select("main math")) >= written(name)
    prose = [
        node.get_text() for node in page.select("main :is(p, li, td, h1, h2, h3, figcaption):not(:has(code, pre))")
    ]
    assert [text for text in prose if TEX.search(text)] == []


@pytest.mark.parametrize("name", PAGES)
def test_formulas_need_no_script_and_take_no_tab_stop(open_address, site, name):
    page = open_address(f"{site}/{name}", java_script_enabled=False)
    formulas = page.locator("main math")
    assert {family.split(",")[0] for family in styles(formulas, "fontFamily")} == {"Formulas"}
    assert formulas.evaluate_all(AS_HIGH_AS_A_LETTER)
    assert page.locator("math[tabindex], math [tabindex], .math[tabindex]").count() == 0
    assert page.locator("script[src*=mathjax i], script[src*=katex i]").count() == 0


@pytest.mark.parametrize("width", PHONES)
@pytest.mark.parametrize("name", PAGES)
def test_formulas_fit_a_phone(open_address, site, name, width):
    page = open_address(f"{site}/{name}", width=width)
    page.evaluate(
        "document.querySelectorAll('.toggle-button-hidden, details').forEach((n) => (n.open = true, n.click()))"
    )
    # It comes with the first formula that is laid out, which may be far below.
    assert page.evaluate("async () => (await document.fonts.load('16px Formulas')).length")
    assert page.evaluate(OUT_OF_PLACE) == []
    assert page.locator("main .math").evaluate_all(SCROLLED) == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("place", SECTIONS)
def test_a_link_lands_on_its_section(open_address, site, place, width):
    page = open_address(f"{site}/{place}", width=width)
    assert page.evaluate("scrollY") > 1000
    assert page.evaluate(MISSED) <= NEAR
