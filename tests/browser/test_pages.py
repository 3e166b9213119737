"""Every page of the built book: of one host, fit for a phone, accessible, readable without JavaScript."""

import re

import pytest

from .axe import violations
from .built import HTML, chapters, figures, pages, soup
from .chromium import CompressingHandler, Record, outside, printed, serve_folder, styles, visit, wait_until_still
from .colours import DARK, LIGHT_AND_DARK, READABLE, WHITE, contrast, ink_and_paper, luminance

# One page of each kind is always looked at; the others by `make test-all`.
KINDS = ["intro.html", "encodings/relative-positions.html", "schemes/rope.html", "api-models.html", "glossary.html"]
PAGES = [*KINDS, *(pytest.param(page, marks=pytest.mark.slow) for page in pages() if page not in KINDS)]
# From a small phone to a wide screen.
PHONE = 390
SCREENS = [360, PHONE, 768, 1280, 1920]
CHAPTERS = [f"{name}.html" for name in chapters()]
FIGURES = [f"{name}.html" for name in figures()]
# From this width on nothing of a chapter needs to scroll; no code and no word of a drawing is smaller than these.
SMALLEST_WHOLE, LEGIBLE, SMALLEST_WORD = 768, 12, 10.5
SCROLLING = """() => [...document.querySelectorAll("main :is(pre, table)")]
  .filter((node) => node.checkVisibility() && node.scrollWidth > node.clientWidth + 1)
  .map((node) => [node, getComputedStyle(node)])
  .map(([node, style]) => ({ text: node.innerText, overflow: style.overflowX, shadow: style.backgroundImage }))"""
# In pixels of the screen.
WORDS_OF_DRAWINGS = """() => [...document.querySelectorAll("svg.plot text")].flatMap((text) => {
  const drawing = text.ownerSVGElement;
  const scale = drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width;
  return [text, ...text.children].filter((node) => node.textContent.trim() && scale)
    .map((node) => scale * parseFloat(getComputedStyle(node).fontSize));
})"""
# Formulas that stand out of their place, or scroll; a wide table is scrolled with all that stands in it.
WIDE_FORMULAS = """async () => {
  // The font comes with the first formula that is laid out, which may be far below.
  await document.fonts.load("16px Formulas");
  const right = (node) => node.getBoundingClientRect().right;
  const line = (node) => getComputedStyle(node).display.startsWith("inline") ? line(node.parentElement) : node;
  const out = (node) => right(node) > Math.min(right(line(node.parentElement)), innerWidth) + 1;
  return [...document.querySelectorAll(".bd-article math")]
    .filter((node) => node.checkVisibility() && !node.closest("table"))
    .filter((node) => out(node) || node.closest(".math")?.scrollWidth > node.closest(".math")?.clientWidth)
    .map((node) => node.textContent);
}"""
# On paper: what stands open, and what nobody can press.
ANSWERS = ".quick-question details > :not(summary), .solution.dropdown > section > *"
ON_SCREEN_ONLY = (
    ".bd-sidebar, .bd-header-article, .toggle-button, .copybtn, .sd-btn, .pe-controls, details.hide > summary"
)
# What scrolls has a tab stop once it has been near.
STOPS_SET = """() => [...document.querySelectorAll("main pre")]
  .every((node) => node.tabIndex === 0 || node.scrollWidth <= node.clientWidth)"""
# As a reader goes through a page, and back.
THROUGH = """async () => {
  for (let top = 0; top < document.documentElement.scrollHeight; top += innerHeight) {
    scrollTo(0, top);
    await new Promise(requestAnimationFrame);
  }
  scrollTo(0, 0);
}"""
SEEN = "{ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true }"
# Code looks the same on every page, and is thousands of words that axe takes one by one.
CODE = ".highlight pre"
# The picture on a card stands beside the chapter's title; what can be pressed is named as a whole, which axe checks.
UNNAMED = """() => [
  ...[...document.images].filter((image) => !image.alt.trim() && !image.closest(".card-of, .next-card")),
  ...[...document.querySelectorAll("main svg, main canvas")]
    .filter((node) => !node.closest("[aria-hidden=true], button, summary, a"))
    .filter((node) => !(node.role && (node.ariaLabel || node.getAttribute("aria-labelledby")))),
].map((node) => node.outerHTML)"""
MOST_OF_A_PAGE = 1_000_000
# What a visit to the end of a page loads, before the host compresses it: the theme is 1.0 MB of it.
MOST_OF_A_VISIT = 2_200_000
# What is loaded before the first figure comes near, as a host sends it: 3 s of a slow phone's line.
MOST_AT_FIRST = 300_000
# In the file; scripts add a tenth. A phone is slowed by each, and Lighthouse's score falls with their number: the score
# depends on the machine, the number on nothing. Beyond it a page of the reference is to be parted in two.
MOST_ELEMENTS = 5_300
ELEMENT = re.compile(r"<[a-z]", re.IGNORECASE)


class Opened:
    """A page that stays open for all tests of it. Each test sets the width and the colours it needs."""

    def __init__(self, name, page, record):
        self.name, self.page, self.record = name, page, record

    def show(self, width=1280, colours="light"):
        self.page.set_viewport_size({"width": width, "height": 900})
        # What the theme's switch does.
        self.page.evaluate("(mode) => Object.assign(document.documentElement.dataset, { mode, theme: mode })", colours)
        wait_until_still(self.page)
        return self.page

    def unfold(self):
        """Open what a reader can open: hidden cells and solutions."""
        self.page.evaluate(
            """() => {
              document.querySelectorAll("details").forEach((node) => (node.open = true));
              document.querySelectorAll(".toggle-button-hidden").forEach((node) => node.click());
            }"""
        )
        wait_until_still(self.page)


@pytest.fixture(scope="module", params=PAGES, ids=str)
def opened(request, browser, site):
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page = context.new_page()
    record = Record(page)
    visit(page, f"{site}/{request.param}")
    yield Opened(request.param, page, record)
    context.close()


def test_weight(opened, browser, built):
    assert (HTML / opened.name).stat().st_size < MOST_OF_A_PAGE
    assert opened.record.transferred() < MOST_OF_A_VISIT
    page = browser.new_page(viewport={"width": 390, "height": 844})
    record = Record(page)
    with serve_folder(built, CompressingHandler) as site:
        page.goto(f"{site}/{opened.name}", wait_until="networkidle")
        assert record.transferred() < MOST_AT_FIRST
    page.close()


def test_nothing_is_cut_and_no_page_scrolls_sideways(opened):
    """What is wider than its box scrolls in it, and a shadow says so; in chapters on a phone alone."""
    opened.unfold()
    for width in SCREENS:
        page = opened.show(width)
        too_wide = page.evaluate("document.documentElement.scrollWidth") - width
        assert too_wide <= 0, f"{too_wide} px too wide at {width}: {outside(page, '.bd-article')[:5]}"
        scrolling = page.evaluate(SCROLLING)
        assert [box for box in scrolling if box["overflow"] != "auto" or "gradient" not in box["shadow"]] == [], width
        assert width < SMALLEST_WHOLE or opened.name not in CHAPTERS or scrolling == [], width
        assert all(float(size.removesuffix("px")) >= LEGIBLE for size in styles(page.locator("main pre"), "fontSize"))
        assert width != PHONE or min(page.evaluate(WORDS_OF_DRAWINGS), default=LEGIBLE) >= SMALLEST_WORD
        assert page.evaluate(WIDE_FORMULAS) == [], width


def test_accessible(opened):
    opened.unfold()
    for width, colours in ((1280, "light"), (390, "dark")):
        page = opened.show(width, colours)
        # On a phone code has its stop when its section comes near.
        page.evaluate(THROUGH)
        page.wait_for_function(STOPS_SET, timeout=5000)
        assert violations(page, but=None if opened.name in KINDS else CODE) == [], (width, colours)
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (luminance(paper) < DARK) == (colours == "dark")
    # The theme has a second heading that is shown in print only, in place of the first.
    assert page.locator("h1:visible").count() == 1
    assert page.evaluate(UNNAMED) == []


def test_printed(opened):
    """On white, with all answers, and without what only a screen can use."""
    for colours in LIGHT_AND_DARK:
        page = opened.show(colours=colours)
        page.evaluate("() => document.querySelectorAll('details').forEach((node) => (node.open = false))")
        with printed(page):
            assert ink_and_paper(page.locator("main h1"))[1] == WHITE
            inks = styles(page.locator("main :is(h2, p, li, td, pre):visible"), "color")
            assert [ink for ink in set(inks) if contrast(ink, WHITE) < READABLE] == []
            assert page.locator(ANSWERS).evaluate_all(f"(nodes) => nodes.every((node) => node.checkVisibility({SEEN}))")
            assert page.locator(f":is({ON_SCREEN_ONLY}):visible").count() == 0


def test_z_nothing_went_wrong(opened):
    """Named to run last, when the page has done all that the tests above ask of it."""
    assert opened.record.faults() == []


def test_number_of_elements(built):
    found = {name: len(ELEMENT.findall((HTML / name).read_text(encoding="utf-8"))) for name in pages()}
    assert {name: n for name, n in found.items() if n >= MOST_ELEMENTS} == {}


@pytest.mark.parametrize("name", CHAPTERS)
def test_folded_code_that_shows_nothing_stands_with_the_code_after_it(name):
    for cell in soup(name).select("div.cell.tag_hide-input"):
        after = cell.find_next_sibling()
        is_folded = after is not None and "tag_hide-input" in after.get("class", [])
        assert not is_folded or cell.select_one(".cell_output"), cell.get_text()[:80]


@pytest.mark.parametrize("name", [name for name in pages() if name.startswith("api")])
def test_signatures_are_those_of_python(name):
    """What Sphinx cannot read it splits at every comma and shows as it is stored."""
    signatures = [each.get_text() for each in soup(name).select("dt.sig")]
    assert signatures
    assert [each for each in signatures if "<factory>" in each or "~" in each] == []


def test_words_of_tables_and_boxes_stand_well_on_a_phone(open_address, site):
    page = open_address(f"{site}/why/permutation-equivariance.html", width=390)
    titles = page.locator(".proof > .admonition-title").all()
    heights = [title.bounding_box()["height"] for title in titles]
    assert max(heights) > 1.4 * min(heights)
    # The sign of a box stands beside its first line.
    assert len({title.evaluate("(node) => getComputedStyle(node, '::after').top") for title in titles}) == 1
    page.goto(f"{site}/alternatives.html")
    widths = [cell.bounding_box()["width"] for cell in page.locator("table.wide th:first-child").all()]
    assert max(widths) <= 125
    # No column of the choices is lost to the right, and each cell says what it is.
    page.goto(f"{site}/practice/choose.html")
    choices = page.locator("table.stacked")
    assert choices.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    assert "because" in choices.locator("td:nth-child(3)").first.evaluate(
        "(node) => getComputedStyle(node, '::before').content"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["intro.html", *FIGURES])
def test_opens_from_a_file(browser, built, name):
    # Of the console nothing is asked: a browser takes no preloaded font from a file, loads it again, and complains.
    page = browser.new_page()
    record = Record(page)
    visit(page, (built / name).as_uri())
    assert record.errors + record.elsewhere == []
    assert page.locator(".pe-figure").count() == len(soup(name).select(".posembed-root"))
    page.close()


@pytest.mark.parametrize(
    ("name", "colours"),
    [(FIGURES[0], "dark"), *(pytest.param(name, "light", marks=pytest.mark.slow) for name in FIGURES)],
)
def test_readable_without_javascript(open_address, site, name, colours):
    page = open_address(f"{site}/{name}", java_script_enabled=False, color_scheme=colours)
    tables = page.locator(".posembed-root table").all()
    assert tables
    for table in tables:
        assert table.is_visible()
        assert "needs JavaScript" in table.locator("caption").text_content()
    for part in ("main p", ".cell_input .highlight pre", ".posembed-root td"):
        assert contrast(*ink_and_paper(page.locator(part).last)) >= READABLE, part


def test_figures_far_below_are_drawn_for_a_print_that_keys_begin(open_address, site):
    page = open_address(f"{site}/encodings/relative-positions.html")
    assert page.locator("[data-script]").count() > page.locator("[data-drawn]").count()
    folded = page.locator(".solution.toggle-hidden").count()
    page.keyboard.press("Control")
    page.wait_for_function("() => [...document.querySelectorAll('[data-script]')].every((node) => node.dataset.drawn)")
    assert page.locator(".solution.toggle-hidden").count() == folded > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_readable_and_coloured_in_print(open_address, site, name):
    page = open_address(f"{site}/{name}", color_scheme="dark")
    # One far below is drawn when it comes near.
    page.locator(".posembed-root").first.scroll_into_view_if_needed()
    page.locator(".pe-figure").first.wait_for()
    page.emulate_media(media="print")
    wait_until_still(page)
    for figure in page.locator(".pe-figure").all():
        assert figure.is_visible()
        assert not any(controls.is_visible() for controls in figure.locator(".pe-controls").all())
    for part in ("main h2", "main p", "main .highlight span", ".pe-figure", ".pe-status"):
        ink, paper = ink_and_paper(page.locator(part).last)
        assert contrast(ink, WHITE) >= READABLE, f"{part}, where backgrounds are left out"
        assert contrast(ink, paper) >= READABLE, f"{part}, where backgrounds are printed"
    cells = page.locator(".pe-cell, tbody .pe-number")
    if cells.count() == 0:
        # Lines and areas of a drawing are printed as they are; backgrounds are not.
        shapes = page.locator(".pe-figure svg :is(path, line, rect, circle, polyline)")
        assert len({*styles(shapes, "stroke"), *styles(shapes, "fill")} - {"none"}) > 3
        return
    assert len(set(styles(cells, "backgroundColor"))) > 8
    # Else a browser leaves them out with all other backgrounds.
    assert set(styles(cells, "printColorAdjust")) == {"exact"}
