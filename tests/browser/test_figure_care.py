"""What every figure is held to: it can be read and reached, nothing is clipped, nothing jumps, changes are read out."""

import pytest
from playwright.sync_api import expect

from .axe import violations
from .chromium import into_view, middle, printed, styles, wait_until_still
from .colours import DARK, LIGHT_AND_DARK, READABLE, VISIBLE, contrast, ink_and_paper, luminance
from .figures import TOUCHED, touch
from .kinds import (
    KINDS,
    Biases,
    Comparison,
    Counting,
    Depth,
    Doses,
    LayerErrors,
    Probe,
    Properties,
    Rotation,
    Shuffle,
    Sinusoids,
)

SLOW = pytest.mark.slow


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


# In pixels.
SMALLEST_TEXT = 11
# Names texts that are too long for their place, out of their drawing, or on each other.
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
# Of everything that has text of its own.
TEXT_SIZES = """(figure) => [...figure.querySelectorAll(":not(style, script)")]
  .filter((node) => [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim()))
  .map((node) => parseFloat(getComputedStyle(node).fontSize))"""
# The height that a figure's place has before it is drawn.
PROMISED = """(figure) => parseFloat(getComputedStyle(figure.closest("[data-posembed]"))
  .getPropertyValue(innerWidth > 720 ? "--pe-wide" : "--pe-phone"))"""
# It numbers what can have the focus.
COUNT_CONTROLS = """(figure) => [...figure.querySelectorAll("button, input, select, [tabindex]")]
  .filter((node) => node.tabIndex >= 0 && !node.disabled && node.checkVisibility({ visibilityProperty: true }))
  .map((node, place) => (node.dataset.place = place)).length"""
FITS = "(node) => node.getAttribute('viewBox') === `0 0 ${node.clientWidth} ${node.clientHeight}`"


def test_its_place_is_as_high_before_it_is_drawn(opened, kind):
    figure = opened(kind, 390)
    assert figure.root.evaluate(PROMISED) == pytest.approx(figure.height(), rel=0.05)


@SLOW
def test_nothing_is_clipped_and_the_figure_keeps_its_height(opened, width, kind):
    figure = opened(kind, width)
    first = figure.height()
    assert figure.root.evaluate(PROMISED) == pytest.approx(first, rel=0.05)
    for _ in figure.states():
        assert figure.too_wide() == []
        assert figure.root.evaluate(OUT_OF_PLACE, [figure.lines, figure.overlap, figure.overhang]) == []
        # What stands below must not jump while a reader tries things.
        assert round(figure.height() - first) == 0
    assert figure.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert min(figure.root.evaluate(TEXT_SIZES)) >= SMALLEST_TEXT
    # A drawing is as wide as its place, so a unit of its text is a pixel.
    for drawing in figure.root.locator(".pe-drawing").all():
        assert drawing.evaluate("(node) => node.viewBox.baseVal.width === node.clientWidth")


@SLOW
@pytest.mark.parametrize(("colours", "width"), [("light", 1280), ("dark", 390)])
def test_accessible_and_readable_after_use(opened, width, kind, colours):
    figure = opened(kind, width, color_scheme=colours)
    for _ in figure.states():
        pass
    wait_until_still(figure.page)
    assert violations(figure.page, figure.selector) == []
    _, paper = ink_and_paper(figure.root)
    # The frame around it too.
    for ground in (paper, ink_and_paper(figure.root.locator("xpath=.."))[1]):
        assert (luminance(ground) < DARK) == (colours == "dark")
    # Axe does not look into drawings.
    inks = styles(figure.root.locator(".pe-drawing text"), "fill")
    assert [ink for ink in set(inks) if contrast(ink, paper) < READABLE] == []
    with printed(figure.page):
        assert not [node for node in figure.root.locator(".pe-controls").all() if node.is_visible()]
        assert all(node.is_visible() for node in [figure.status, *figure.root.get_by_role("img").all()])
        assert luminance(ink_and_paper(figure.root)[1]) == 1


@pytest.mark.parametrize("mode", LIGHT_AND_DARK)
@pytest.mark.parametrize("kind", [pytest.param(Comparison, marks=SLOW), LayerErrors])
def test_what_is_off_is_seen_and_told_from_what_is_on(opened, kind, mode):
    figure = opened(kind, color_scheme=mode)
    figure.switch("RoPE" if kind is Comparison else "learned")
    off = figure.root.locator(".pe-off")
    paper = ink_and_paper(off.first)[1]
    swatch = off.locator(".pe-swatch")
    assert {*styles(swatch, "opacity")} == {"1"}
    assert [ink for ink in styles(swatch.locator("path"), "stroke") if contrast(ink, paper) < VISIBLE] == []
    assert contrast(ink_and_paper(off.locator("label").first)[0], paper) >= READABLE
    # Hollow, where what is on is filled.
    assert {*styles(swatch.locator(".pe-point"), "fill")} == {paper}
    assert paper not in styles(figure.root.locator("tr:not(.pe-off) .pe-swatch .pe-point"), "fill")


@SLOW
def test_changes_are_announced_and_nothing_moves_under_reduced_motion(opened, kind):
    figure = opened(kind, reduced_motion="reduce")
    expect(figure.status).to_have_attribute("aria-live", "polite")
    for change in figure.changes():
        before = figure.status.inner_text()
        change()
        assert figure.root.evaluate("(node) => node.getAnimations({ subtree: true }).length") == 0
        expect(figure.status).not_to_have_text(before)
    assert all(drawing.get_attribute("aria-label") for drawing in figure.root.get_by_role("img").all())


@SLOW
def test_tab_reaches_every_control_and_shows_where_it_is(opened, kind):
    """Tab goes from one to the next as they stand, and each shows that it has the focus."""
    figure = opened(kind)
    n_controls = figure.root.evaluate(COUNT_CONTROLS)
    figure.root.locator("[data-place='0']").focus()
    for place in range(1, n_controls):
        figure.page.keyboard.press("Tab")
        control = figure.root.locator(f"[data-place='{place}']")
        expect(control).to_be_focused()
        assert control.evaluate("(node) => parseFloat(getComputedStyle(node).outlineWidth)") >= 2
    figure.page.keyboard.press("Tab")
    assert figure.root.locator(":focus").count() == 0


@SLOW
def test_drawings_follow_the_width_of_the_window(opened, kind):
    figure = opened(kind)
    for width in (500, 390, 1280):
        figure.page.set_viewport_size({"width": width, "height": 900})
        for drawing in figure.root.locator(".pe-drawing").all():
            # Its size changes again when it is drawn anew, so both are read at once until they agree.
            figure.page.wait_for_function(FITS, arg=drawing.element_handle(), timeout=10_000)


@SLOW
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Sinusoids, "position"),
        (Rotation, "offset k"),
        (Biases, "offset"),
        (Probe, "position"),
        (LayerErrors, "layer"),
        (Counting, "token"),
        (Depth, "state"),
        (Doses, "dose"),
        (Comparison, "position"),
    ],
)
def test_a_finger_moves_a_slider(opened, kind, name):
    figure = opened(kind, 390, **TOUCHED)
    slider = figure.slider(name)
    into_view(slider)
    slider.fill(slider.get_attribute("min"))
    before, length = figure.status.inner_text(), slider.bounding_box()["width"]
    figure.swipe(name, [8 + (length - 16) * part / 10 for part in range(11)])
    expect(slider).to_have_value(slider.get_attribute("max"))
    assert figure.status.inner_text() != before


@SLOW
def test_a_finger_drags_a_word_past_the_one_with_the_focus(opened):
    """A finger leaves the focus where it is, and so does a mouse in Safari; and the page does not scroll."""
    figure = opened(Shuffle, 390, **TOUCHED)
    figure.word("I").focus()
    scrolled = figure.page.evaluate("scrollY")
    (x, y), (to_x, _) = middle(figure.word("coding")), middle(figure.word("I"))
    touch(figure.page, [(x + (to_x - x) * part / 12, y + part) for part in range(13)])
    assert figure.order() == ["coding", "I", "do", "like"]
    assert figure.page.evaluate("scrollY") == scrolled


@SLOW
def test_a_finger_picks_a_cell_and_can_still_scroll(opened):
    figure = opened(Properties, 390, **TOUCHED)
    figure.page.touchscreen.tap(*figure.point(24, 12))
    expect(figure.status).to_contain_text("Row 24, column 12, ")
    assert "pan-y" in styles(figure.map, "touchAction")[0]


@SLOW
def test_figures_of_one_page_do_not_move_each_other_and_keys_stay_in_their_control(opened):
    sinusoids = opened(Sinusoids)
    rotation = Rotation(sinusoids.page)
    before = rotation.root.inner_html()
    for _ in sinusoids.states():
        pass
    assert rotation.root.inner_html() == before
    # JupyterLab has commands on single letters, which pick in a select too.
    rotation.page.evaluate(
        "() => { window.heard = []; document.addEventListener('keydown', (e) => heard.push(e.key)); }"
    )
    rotation.slider("position p").press("Home")
    rotation.choice("view").press("r")
    assert rotation.page.evaluate("() => heard") == []
