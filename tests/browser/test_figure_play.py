"""What runs by itself, what is dragged, and what there is to reach, in every figure that has some of it."""

import re
from operator import methodcaller as do

import pytest
from playwright.sync_api import expect

from .chromium import into_view, middle
from .figures import TOUCHED, touch
from .kinds import Counting, Helix, Lookup, Properties, Rotation, Sinusoids

SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Rotation, "offset k"),
        pytest.param(Sinusoids, "position", marks=SLOW),
        pytest.param(Counting, "token", marks=SLOW),
    ],
)
@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_a_value_runs_and_pauses(opened, kind, name, motion):
    figure = opened(kind, reduced_motion=motion)
    before = int(figure.slider(name).input_value())
    figure.button(f"play {name}").press("Enter")
    expect(figure.slider(name)).not_to_have_value(str(before))
    # While it runs its steps are not read out one by one.
    expect(figure.status).to_have_attribute("aria-live", "off")
    if kind is Rotation:
        # Hands glide only for those who want motion: between two places there is one more hand.
        assert (len(set(figure.root.evaluate(HANDS))) > 4) == (motion == "no-preference")
    figure.press(f"pause {name}")
    expect(figure.status).to_have_attribute("aria-live", "polite")
    stopped = figure.slider(name).input_value()
    assert int(stopped) > before
    figure.page.wait_for_timeout(900)
    assert figure.slider(name).input_value() == stopped


# Where a hand ends, frame by frame, for as long as a step and a half take.
HANDS = """(root) => new Promise((resolve) => {
  const [seen, start] = [[], performance.now()];
  const look = (now) => {
    seen.push(root.querySelectorAll(".pe-face .pe-hand path")[1].getAttribute("d"));
    if (now - start < 1000) requestAnimationFrame(look); else resolve(seen);
  };
  look(start);
})"""


def test_a_run_ends_where_it_is_not_seen_and_at_the_last_value(opened):
    figure = opened(Rotation)
    figure.press("play offset k")
    figure.page.evaluate("() => scrollTo({ top: document.body.scrollHeight, behavior: 'instant' })")
    expect(figure.button("play offset k")).to_have_count(1)
    # A view whose sliders are away does not run either, nor do two values at once.
    figure.reset()
    figure.press("play position p")
    figure.press("play offset k")
    expect(figure.button("play position p")).to_be_visible()
    figure.view("rope")
    expect(figure.root.get_by_role("button", name=re.compile("^pause"))).to_have_count(0)
    figure.reset()
    figure.slide(offset_k=23)
    figure.press("play offset k")
    expect(figure.slider("offset k")).to_have_value("24")
    expect(figure.button("play offset k")).to_be_visible()
    # It begins anew.
    figure.press("play offset k")
    expect(figure.slider("offset k")).not_to_have_value("24")


def test_hands_are_dragged(opened, width):
    """The slowest hand moves by many positions where the fastest moves by one."""
    figure = opened(Rotation, width)
    for pair, places in ((0, 2), (1, 5)):
        figure.slide(position_p=0, offset_k=2)
        (x, y), end = a_quarter_turn(figure, pair)
        figure.page.mouse.move(x, y)
        figure.page.mouse.down()
        figure.page.mouse.move(*end, steps=12)
        figure.page.mouse.up()
        assert figure.places()[:2] == [0, 2 + places]
    figure.slide(position_p=6)
    figure.handle(0, 0).press("ArrowRight")
    figure.handle(0, 1).press("Home")
    assert figure.places()[:2] == [7, 0]
    expect(figure.handle(0, 0)).to_have_attribute("aria-valuetext", "position 7")
    figure.view("rope")
    before = figure.places()[2:]
    figure.handle(0, 1).press("ArrowUp")
    figure.handle(0, 0).press("ArrowDown")
    assert figure.places()[2:] == [before[0] - 1, before[1] + 1]


def a_quarter_turn(figure, pair):
    """From the end of the second hand of a face to where it is when its angle has grown by a quarter."""
    into_view(figure.handle(pair, 1))
    x, y = middle(figure.handle(pair, 1))
    cx, cy = middle(figure.root.locator(".pe-face .pe-drawing").nth(pair))
    return (x, y), (cx + (y - cy), cy - (x - cx))


@SLOW
def test_a_finger_drags_a_hand_and_picks_an_offset_and_the_page_stays(opened):
    figure = opened(Rotation, 390, **TOUCHED)
    figure.slide(position_p=0, offset_k=2)
    (x, y), end = a_quarter_turn(figure, 1)
    scrolled = figure.page.evaluate("scrollY")
    touch(figure.page, [(x + (end[0] - x) * k / 10, y + (end[1] - y) * k / 10) for k in range(11)])
    assert figure.places()[1] == 7
    assert figure.page.evaluate("scrollY") == scrolled
    into_view(figure.slider("offset on the curve"))
    figure.page.touchscreen.tap(*figure.on_curve(0.25))
    assert figure.places()[1] == 6


def test_an_offset_is_picked_on_the_curve(opened):
    figure = opened(Rotation)
    into_view(figure.slider("offset on the curve"))
    figure.page.mouse.click(*figure.on_curve(0.5))
    assert figure.places()[:2] == [3, 12]
    figure.slider("offset on the curve").press("ArrowLeft")
    assert figure.places()[:2] == [3, 11]
    figure.view("rope")
    into_view(figure.slider("offset on the curve"))
    # From -32 to 32: the key moves, and the query where the key cannot.
    figure.page.mouse.click(*figure.on_curve(0.75))
    assert figure.places()[2:] == [9, 25]
    figure.slider("offset on the curve").press("End")
    assert figure.places()[2:] == [0, 32]


# It plays the sum, and notes at each step what is said and what the table and its foot show.
SUMMED = """(root) => new Promise((resolve) => {
  const [status, seen] = [root.querySelector("[role=status]"), []];
  const numbers = (part) => [...root.querySelectorAll(`${part} tr`)].map((row) =>
    [...row.querySelectorAll(".pe-number")].map((cell) => Number(cell.textContent.replace("−", "-"))));
  const watch = new MutationObserver(() => {
    seen.push([status.textContent, numbers("tbody"), numbers("tfoot")[0]]);
    if (!status.textContent.includes("the product is row")) return;
    watch.disconnect();
    resolve(seen);
  });
  watch.observe(status, { childList: true });
  root.querySelector(".pe-play").click();
})"""


@pytest.mark.parametrize("motion", ["no-preference", pytest.param("reduce", marks=SLOW)])
def test_the_product_is_summed_row_by_row(opened, motion):
    figure = opened(Lookup, reduced_motion=motion)
    table, zeros = figure.rows(), [0, 0, 0, 0]
    seen = figure.root.evaluate(SUMMED)
    assert len(seen) == 10
    for n, (words, rows, product) in enumerate(seen[:9]):
        assert rows == [table[k] if k == 2 or k >= n else zeros for k in range(8)]
        assert product == (table[2] if n > 2 else zeros)
        assert (words.startswith("1 times row 2, “cat”")) == (n == 3)
        assert ("0 times row" in words) == (n in (1, 2, 4, 5, 6, 7))
    # The row that the lookup gives, in the table as it was.
    assert seen[9][1:] == [table, table[2]]
    # Another word ends the sum.
    figure.button("play The product, row by row").press("Space")
    expect(figure.status).to_contain_text("begins at zero")
    figure.press("5 ran")
    assert figure.rows() == table and figure.rows("tfoot") == [table[5]]
    expect(figure.button("play The product, row by row")).to_be_visible()


# Of each figure the steps that reach what it asks for, in its order; the last of them reaches it.
STEP = do("press", "Take a gradient step")
REACHED = {
    Lookup: ([STEP], [do("press", "Start again"), do("switch", "padding_idx=0"), STEP]),
    Sinusoids: ([do("slide", width=8)], [do("slide", base=0)]),
    Rotation: (
        [do("slide", offset_k=22)],
        [do("slide", offset_k=20)],
        [do("view", "rope"), *[do("key", "offset on the curve", "ArrowRight")] * 13],
    ),
    Counting: ([do("slide", network_counts_up_to=0)], [do("switch", "causal mask")]),
    Properties: ([do("pick", 4)], [do("pick", 3)]),
    Helix: ([do("key", "turn", "Home")], [do("key", "turn", "ArrowRight")] * 14),
}


@pytest.mark.parametrize("kind", REACHED, ids=lambda kind: kind.__name__)
def test_what_there_is_to_try_is_ticked_when_it_is_reached(open_address, site, kind):
    # On a page of its own, as a reader finds it.
    figure = kind(open_address(f"{site}/{kind.chapter}", awake=True))
    tasks = figure.root.locator(".pe-try").get_by_role("list").get_by_role("listitem")
    words, height = tasks.all_inner_texts(), figure.height()
    assert len(words) == len(REACHED[kind])
    assert figure.root.locator(".pe-done").count() == 0
    for k, (task, steps) in enumerate(zip(words, REACHED[kind], strict=True)):
        for step in steps:
            step(figure)
        assert figure.root.locator(".pe-done").count() == k + 1
        # Told once, to those who do not see the tick.
        expect(figure.status).to_contain_text(f"Done: {task}.")
        assert tasks.nth(k).text_content() == f"Done: {task}"
    assert abs(figure.height() - height) < 1


@SLOW
def test_the_map_stays_in_sight_on_a_phone(opened):
    figure = opened(Properties, 390)
    for name in ("Monotonicity", "Translation invariance", "Symmetry"):
        chart = figure.card(name).get_by_role("img")
        into_view(chart, "end")
        bar = figure.page.locator(".bd-header-article").bounding_box()
        choice, map, below = (part.bounding_box() for part in (figure.choice("matrix"), figure.map, chart))
        assert choice["y"] >= bar["y"] + bar["height"] and map["y"] >= choice["y"] + choice["height"]
        # More than half of the screen is for what it is compared with.
        assert bar["height"] + map["y"] + map["height"] - choice["y"] <= 0.45 * 900
        assert map["y"] + map["height"] <= below["y"] + 1 and below["y"] + below["height"] <= 901
