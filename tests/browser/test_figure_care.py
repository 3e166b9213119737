"""What every figure is held to: it can be read and reached, nothing is clipped, nothing jumps, changes are read out."""

import pytest
from playwright.sync_api import expect

from .checks import (
    assert_accessible,
    assert_announces,
    assert_drawings_follow_the_window,
    assert_keeps_its_height,
    assert_nothing_is_clipped,
    assert_tab_reaches_every_control,
    assert_texts_are_large_enough,
    assert_texts_of_drawings_stand_out,
)
from .chromium import into_view, middle, printed, styles
from .colours import DARK, LIGHT_AND_DARK, ink_and_paper, luminance
from .figures import touch
from .kinds import KINDS, Biases, Counting, LayerErrors, Lookup, Probe, Properties, Rotation, Shuffle, Sinusoids

SLOW = pytest.mark.slow
TOUCHED = {"has_touch": True, "is_mobile": True}


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


@SLOW
def test_nothing_is_clipped_and_the_figure_keeps_its_height(opened, width, kind):
    figure = opened(kind, width)
    assert_nothing_is_clipped(figure)
    assert_texts_are_large_enough(figure)
    figure.reset()
    assert_keeps_its_height(figure)


@SLOW
@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_accessible_and_readable_after_use(opened, width, kind, colours):
    figure = opened(kind, width, color_scheme=colours)
    for _ in figure.states():
        pass
    assert_accessible(figure)
    _, paper = ink_and_paper(figure.root)
    assert (luminance(paper) < DARK) == (colours == "dark")
    # The frame around it too.
    assert (luminance(ink_and_paper(figure.root.locator("xpath=.."))[1]) < DARK) == (colours == "dark")
    assert_texts_of_drawings_stand_out(figure, paper)


@SLOW
def test_changes_are_announced_and_drawings_named(opened, kind):
    figure = opened(kind)
    assert_announces(figure, figure.changes())
    labels = [drawing.get_attribute("aria-label") for drawing in figure.root.get_by_role("img").all()]
    assert all(labels)


@SLOW
def test_tab_reaches_every_control_and_shows_where_it_is(opened, kind):
    assert_tab_reaches_every_control(opened(kind))


@SLOW
def test_drawings_follow_the_width_of_the_window(opened, kind):
    assert_drawings_follow_the_window(opened(kind))


@SLOW
def test_nothing_moves_under_reduced_motion(opened, kind):
    figure = opened(kind, reduced_motion="reduce")
    for change in figure.changes():
        change()
        assert figure.root.evaluate("(node) => node.getAnimations({ subtree: true }).length") == 0


@SLOW
def test_paper_has_no_controls_and_all_drawings(opened, kind):
    figure = opened(kind, color_scheme="dark")
    with printed(figure.page):
        assert not [node for node in figure.root.locator(".pe-controls").all() if node.is_visible()]
        assert all(node.is_visible() for node in [figure.status, *figure.root.get_by_role("img").all()])
        assert luminance(ink_and_paper(figure.root)[1]) == 1


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
def test_figures_of_one_page_do_not_move_each_other(opened):
    sinusoids = opened(Sinusoids)
    rotation = Rotation(sinusoids.page)
    before = rotation.root.inner_html()
    for _ in sinusoids.states():
        pass
    assert rotation.root.inner_html() == before


@SLOW
def test_keys_in_a_control_stay_there(opened):
    """JupyterLab has commands on single letters, which pick in a select too."""
    figure = opened(Rotation)
    figure.page.evaluate("() => { window.heard = []; document.addEventListener('keydown', (e) => heard.push(e.key)); }")
    figure.slider("position p").press("Home")
    figure.choice("view").press("r")
    assert figure.page.evaluate("() => heard") == []


@SLOW
def test_start_again_restores_the_table(opened):
    figure = opened(Lookup)
    first = figure.rows()
    figure.press("Take a gradient step")
    assert figure.rows() != first
    figure.press("Start again")
    assert (figure.rows(), figure.marked()) == (first, [])
