"""What every figure is held to: it can be read and reached, nothing is clipped, nothing jumps, changes are read out."""

from playwright.sync_api import expect

from .axe import violations
from .chromium import styles, wait_until_still
from .colours import READABLE, contrast

# In pixels.
SMALLEST_TEXT = 11


def assert_nothing_is_clipped(figure):
    for _ in figure.states():
        assert out_of_place(figure) == []
    assert figure.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def out_of_place(figure):
    """Name what is too wide, and texts that are too long for their place, out of their drawing, or on each other."""
    return [*figure.too_wide(), *figure.root.evaluate(OUT_OF_PLACE, [figure.lines, figure.overlap, figure.overhang])]


OUT_OF_PLACE = """(figure, [lines, overlap, overhang]) => {
  const all = (node, what) => [...node.querySelectorAll(what)];
  const box = (node) => node.getBoundingClientRect();
  const out = (a, b) => a.left < b.left - overhang || a.right > b.right + overhang;
  const over = (a, b) => a.bottom <= b.top + overlap;
  const apart = (a, b) => a.right <= b.left || b.right <= a.left || over(a, b) || over(b, a);
  const texts = all(figure, ".pe-drawing").flatMap((drawing) => all(drawing, "text").filter((text, k, texts) =>
    out(box(text), box(drawing)) || texts.slice(k + 1).some((other) => !apart(box(text), box(other)))));
  const long = all(figure, lines).filter((node) => node.scrollWidth > node.clientWidth);
  return [...long, ...texts].map((node) => node.textContent);
}"""


def assert_keeps_its_height(figure):
    """What stands below must not jump while a reader tries things."""
    first = figure.height()
    assert {round(figure.height() - first) for _ in figure.states()} == {0}


def assert_texts_are_large_enough(figure):
    assert min(figure.root.evaluate(TEXT_SIZES)) >= SMALLEST_TEXT
    # A drawing is as wide as its place, so a unit of its text is a pixel.
    for drawing in figure.root.locator(".pe-drawing").all():
        assert drawing.evaluate("(node) => node.viewBox.baseVal.width === node.clientWidth")


# Of everything that has text of its own.
TEXT_SIZES = """(figure) => [...figure.querySelectorAll(":not(style, script)")]
  .filter((node) => [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim()))
  .map((node) => parseFloat(getComputedStyle(node).fontSize))"""


def assert_texts_of_drawings_stand_out(figure, paper):
    """Axe does not look into drawings."""
    inks = styles(figure.root.locator(".pe-drawing text"), "fill")
    assert [ink for ink in set(inks) if contrast(ink, paper) < READABLE] == []


def assert_drawings_follow_the_window(figure):
    for width in (500, 390, 1280):
        figure.page.set_viewport_size({"width": width, "height": 900})
        for drawing in figure.root.locator(".pe-drawing").all():
            # Its size changes again when it is drawn anew, so both are read at once until they agree.
            figure.page.wait_for_function(FITS, arg=drawing.element_handle(), timeout=10_000)


FITS = "(node) => node.getAttribute('viewBox') === `0 0 ${node.clientWidth} ${node.clientHeight}`"


def assert_announces(figure, changes):
    """Each of these changes is read out."""
    expect(figure.status).to_have_attribute("aria-live", "polite")
    for change in changes:
        before = figure.status.inner_text()
        change()
        expect(figure.status).not_to_have_text(before)


def assert_tab_reaches_every_control(figure):
    """Tab goes from one to the next as they stand, and each shows that it has the focus."""
    n_controls = figure.root.evaluate(COUNT_CONTROLS)
    figure.root.locator("[data-place='0']").focus()
    for place in range(1, n_controls):
        figure.page.keyboard.press("Tab")
        control = figure.root.locator(f"[data-place='{place}']")
        expect(control).to_be_focused()
        assert control.evaluate("(node) => parseFloat(getComputedStyle(node).outlineWidth)") >= 2
    figure.page.keyboard.press("Tab")
    assert figure.root.locator(":focus").count() == 0


# It numbers what can have the focus.
COUNT_CONTROLS = """(figure) => [...figure.querySelectorAll("button, input, select, [tabindex]")]
  .filter((node) => node.tabIndex >= 0 && !node.disabled && node.checkVisibility({ visibilityProperty: true }))
  .map((node, place) => (node.dataset.place = place)).length"""


def assert_accessible(figure):
    wait_until_still(figure.page)
    assert violations(figure.page, figure.selector) == []
