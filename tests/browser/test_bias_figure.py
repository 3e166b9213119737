"""Figure 5, relative biases, driven by mouse, touch and keyboard, and its numbers against the package and PyTorch."""

import functools

import pytest
import torch
from playwright.sync_api import expect

from posembed.encodings import T5, alibi_slopes
from posembed.widgets import BiasFigure

from . import figures
from .checks import (
    assert_accessible,
    assert_announces,
    assert_in_sight,
    assert_keeps_its_height,
    assert_nothing_is_clipped,
    assert_tab_leads_to,
    assert_texts_are_large_enough,
    paper_in,
)
from .chromium import into_view, styles
from .colours import LIGHT_AND_DARK, VISIBLE, contrast
from .figures import Figure, number, numbers, touch

NAMES = ["Shaw", "T5", "ALiBi", "KERPLE", "FIRE"]
HEADS = range(1, 9)
STATES = [[], ["attention weights"], ["bidirectional"], ["bidirectional", "attention weights"]]
# Half a unit of the tables' last decimal, and a little for the arithmetic.
ROUNDING = 0.00005 + 1e-9


def shows(text, value, rounding=ROUNDING):
    """Whether a number as it is written agrees with a value; a weight can be "less than" a number."""
    return 0 < value < number(text) if text.startswith("<") else figures.shows(text, value, rounding)


class Biases(Figure):
    chapter = "encodings/relative-positions.html"
    label = "Relative biases by head and offset"
    lines = ".pe-bias-title, .pe-bias-words"

    def reset(self):
        super().reset()
        self.slide(head=2, query_at=3, offset=-20)

    def panel(self, name):
        return self.root.locator(".pe-bias").filter(has=self.page.locator(f"strong:text-is('{name}')"))

    def chart(self, name):
        return self.panel(name).get_by_role("img")

    def value(self, name):
        return self.panel(name).locator(".pe-bias-value").inner_text()

    def values(self):
        return {name: self.value(name) for name in NAMES}

    def words(self, name):
        """What stands below a chart."""
        return self.panel(name).locator(".pe-bias-words").last.inner_text()

    def curves(self, name):
        return (
            self.chart(name).locator(".pe-bias-line").evaluate_all("(nodes) => nodes.map((n) => n.getAttribute('d'))")
        )

    def line(self, name):
        """The line of the chosen head, as it is drawn."""
        return self.chart(name).locator(".pe-bias-line:not(.pe-bias-other)").get_attribute("d")

    def ends(self, name):
        """Where a chart's horizontal lines begin and end, in its own pixels."""
        line = self.chart(name).locator(".pe-axis")
        return float(line.get_attribute("x1")), float(line.get_attribute("x2"))

    def point_at(self, name, offset, first, last):
        """A place on the page, in a chart over the offsets from the first to the last, above one of them."""
        left, right = self.ends(name)
        box = self.chart(name).bounding_box()
        share = (offset - first + 0.5) / (last - first + 1)
        return box["x"] + left + share * (right - left), box["y"] + box["height"] / 3

    def heights(self, name):
        """The top and the bottom of a chart, in its own pixels."""
        cursor = self.chart(name).locator(".pe-bias-cursor")
        return float(cursor.get_attribute("y1")), float(cursor.get_attribute("y2"))

    def heights_used(self, name, lines):
        """How high and how low its lines and that of zero go."""
        zero = float(self.chart(name).locator(".pe-axis").get_attribute("y1"))
        heights = [zero, *(y for line in lines for y in numbers(line)[1::2])]
        return min(heights), max(heights)

    def offsets_drawn(self, name, line, first, last):
        """The offsets that a line stands at, in a chart from the first to the last of them."""
        left, right = self.ends(name)
        x = torch.tensor(numbers(line), dtype=torch.float64)[::2]
        return first - 0.5 + (x - left) / (right - left) * (last - first + 1)

    def numbers_drawn(self, name, line):
        """The numbers that a line stands for, by what is written beside the grid, and what they may be off by."""
        grid = self.chart(name).evaluate(GRID)
        (low_y, low), (high_y, high) = [(y, number(text)) for y, text in (grid[0], grid[-1])]
        y = torch.tensor(numbers(line), dtype=torch.float64)[1::2]
        each_pixel = abs((high - low) / (high_y - low_y))
        return low + (y - low_y) / (high_y - low_y) * (high - low), 0.01 * each_pixel + 1e-9

    def states(self):
        for switches in STATES:
            self.reset()
            for name in switches:
                self.switch(name)
            for place, head in ((4, 0), (4, 7), (0, 0)):
                self.slide(query_at=place, head=head)
                for key in ("Home", "End", "ArrowLeft"):
                    self.slider("offset").press(key)
                    yield


# The heights of the horizontal lines, with what is written beside them.
GRID = """(node) => {
  const lines = [...node.querySelectorAll(".pe-grid, .pe-axis")].map((line) => Number(line.getAttribute("y1")));
  const texts = [...node.querySelectorAll(".pe-tick[text-anchor=end]")];
  return lines.map((y) => [y, texts.find((text) => Math.abs(text.getAttribute("y") - 4 - y) < 0.01).textContent]);
}"""


@pytest.fixture
def open_biases(opened):
    return functools.partial(opened, Biases)


@pytest.fixture(scope="module")
def state():
    return BiasFigure().state()


@pytest.fixture(scope="module")
def table(state):
    """A function that reads a scheme's biases, "heads keys", for a query at a position."""

    def table(name, position, objective="causal"):
        forms = next(panel["forms"] for panel in state["panels"] if panel["name"] == name)
        tables = (forms.get("both") or forms[objective])["tables"]
        varies = len(tables) > 1
        rows = torch.tensor(tables[state["positions"].index(position) if varies else 0], dtype=torch.float64)
        first = 0 if varies else state["positions"][-1] - position
        return rows[:, first : first + (position if objective == "causal" else 2 * position) + 1]

    return table


def test_the_page_has_the_package_s_numbers(open_biases, state):
    assert open_biases().given(*state) == state


def test_each_head_has_its_own_numbers(open_biases, width, table):
    figure = open_biases(width)
    figure.slider("head").focus()
    figure.page.keyboard.press("Home")
    slopes = alibi_slopes(8).tolist()
    seen = set()
    for head in HEADS:
        values = figure.values()
        for name in NAMES:
            assert shows(values[name], table(name, 64)[head - 1, 64 - 20], rounding=1e-9), name
        assert shows(values["ALiBi"], -20 * slopes[head - 1])
        assert figure.words("ALiBi") == f"m = 1/{round(1 / slopes[head - 1])}"
        expect(figure.slider("head")).to_have_attribute("aria-valuetext", str(head))
        expect(figure.status).to_contain_text(f"Head {head}, offset −20: Shaw {values['Shaw']} (clipped to −16), T5 ")
        seen.add(tuple(values.values()))
        figure.page.keyboard.press("ArrowRight")
    assert len(seen) == len(HEADS)
    expect(figure.slider("head")).to_have_attribute("aria-valuetext", "8")


def test_arrow_keys_read_out_offsets(open_biases, width, table):
    figure = open_biases(width)
    figure.slider("offset").focus()
    t5 = T5(8, causal=True)
    for offset in (-19, -18, -17, -16, -15):
        figure.page.keyboard.press("ArrowRight")
        for name in NAMES:
            assert shows(figure.value(name), table(name, 64)[2, 64 + offset], rounding=1e-9), name
        same = [each for each in range(-64, 1) if t5.bucket(torch.tensor(each)) == t5.bucket(torch.tensor(offset))]
        span = f"−{-same[0]}" + (f" to −{-same[-1]}" if len(same) > 1 else "")
        assert figure.words("T5") == f"bucket {t5.bucket(torch.tensor(offset))}: {span}"
        assert figure.words("Shaw") == ("clipped to −16" if offset < -16 else "not clipped")
        expect(figure.slider("offset")).to_have_attribute("aria-valuetext", f"−{-offset}")
        expect(figure.status).to_contain_text(f"Head 3, offset −{-offset}: ")
    figure.page.keyboard.press("End")
    assert (figure.value("ALiBi"), figure.value("KERPLE")) == ("0.0000", "0.0000")
    figure.page.keyboard.press("Home")
    expect(figure.slider("offset")).to_have_attribute("aria-valuetext", "−64")


def test_offsets_that_share_a_number_are_shaded(open_biases, width):
    figure = open_biases(width)
    band = lambda name: figure.chart(name).locator(".pe-bias-band")
    left, right = figure.ends("T5")
    for offset, t5, shaw in [(-20, 2, 49), (-64, 6, 49), (-24, 3, 49), (-16, 3, 49), (-15, 0, 0), (0, 0, 0)]:
        figure.slide(offset=offset)
        for name, wanted in (("T5", t5), ("Shaw", shaw)):
            got = float(band(name).get_attribute("width")) / (right - left) * 65 if band(name).count() else 0
            assert got == pytest.approx(wanted, abs=0.01), (name, offset)
        assert [band(name).count() for name in ("ALiBi", "KERPLE", "FIRE", "Together")] == [0] * 4


@pytest.mark.parametrize("name", [*NAMES, "Together"])
def test_the_mouse_reads_out_offsets(open_biases, width, name):
    figure = open_biases(width)
    into_view(figure.chart(name))
    for offset in (-64, -41, -1, 0, -30):
        figure.page.mouse.move(*figure.point_at(name, offset, -64, 0))
        expect(figure.slider("offset")).to_have_value(str(offset))
        assert shows(figure.value("ALiBi"), offset / 8)
    box = figure.chart(name).bounding_box()
    for x, offset in ((box["x"] + 2, -64), (box["x"] + box["width"] - 2, 0)):
        figure.page.mouse.move(x, box["y"] + 20)
        expect(figure.slider("offset")).to_have_value(str(offset))


def test_the_mouse_moves_the_sliders(open_biases, width):
    figure = open_biases(width)
    for name, text in (("head", "Head 8"), ("query at", "offset −20"), ("offset", "offset 0")):
        box = figure.slider(name).bounding_box()
        figure.page.mouse.click(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2)
        expect(figure.status).to_contain_text(text)
    expect(figure.panel("Together").locator(".pe-bias-words").last).to_have_text("head 8, query at 128")


def test_a_finger_reads_out_offsets_and_can_still_scroll(open_biases):
    figure = open_biases(390, has_touch=True, is_mobile=True)
    into_view(figure.chart("KERPLE"))
    scrolled = figure.page.evaluate("scrollY")
    path = [figure.point_at("KERPLE", offset, -64, 0) for offset in range(-60, -9, 5)]
    touch(figure.page, path)
    expect(figure.slider("offset")).to_have_value("-10")
    assert shows(figure.value("ALiBi"), -10 / 8)
    assert figure.page.evaluate("scrollY") == scrolled
    assert styles(figure.chart("KERPLE"), "touchAction") == ["pan-y"]
    figure.page.touchscreen.tap(*figure.point_at("KERPLE", -33, -64, 0))
    expect(figure.slider("offset")).to_have_value("-33")


def test_only_fire_looks_at_the_query_s_position(open_biases, width, table):
    figure = open_biases(width)
    figure.slide(offset=-5)
    before = figure.values()
    fire = set()
    for place, position in enumerate((8, 16, 32, 64, 128)):
        figure.slide(query_at=place)
        values = figure.values()
        assert [values[name] for name in NAMES[:-1]] == [before[name] for name in NAMES[:-1]]
        assert shows(values["FIRE"], table("FIRE", position)[2, position - 5], rounding=1e-9)
        fire.add(values["FIRE"])
    # Below its threshold of 16 it does not look either.
    assert len(fire) == 4


def test_an_offset_that_is_gone_becomes_the_last_that_there_is(open_biases):
    figure = open_biases()
    figure.slide(offset=-50, query_at=2)
    expect(figure.slider("offset")).to_have_value("-32")
    expect(figure.status).to_contain_text("Head 3, offset −32: ")
    figure.slide(query_at=3)
    figure.switch("bidirectional")
    figure.slide(offset=40)
    expect(figure.status).to_contain_text("offset 40: ")
    figure.switch("bidirectional")
    expect(figure.slider("offset")).to_have_value("0")
    expect(figure.status).to_contain_text("Head 3, offset 0: ")


def test_bidirectional_buckets_are_others_and_fire_has_none(open_biases, width, table):
    figure = open_biases(width)
    causal = figure.line("T5")
    figure.switch("bidirectional")
    assert figure.line("T5") != causal
    for offset, bucket in (
        (-20, "bucket 10: −22 to −16"),
        (20, "bucket 26: 16 to 22"),
        (64, "bucket 30: 64"),
        (0, "bucket 0: 0"),
    ):
        figure.slide(offset=offset)
        assert figure.words("T5") == bucket
        for name in NAMES[:-1]:
            assert shows(figure.value(name), table(name, 64, "bidirectional")[2, 64 + offset], rounding=1e-9), name
    assert figure.value("FIRE") == ""
    assert figure.curves("FIRE") == []
    expect(figure.chart("FIRE")).to_contain_text("not defined")
    expect(figure.chart("FIRE")).to_have_accessible_name("FIRE is causal only")
    expect(figure.panel("FIRE")).to_contain_text("causal only")
    expect(figure.status).to_contain_text("FIRE is causal only")
    assert len(figure.curves("Together")) == len(NAMES) - 1
    figure.switch("bidirectional")
    assert figure.line("T5") == causal
    assert len(figure.curves("Together")) == len(NAMES)


@pytest.mark.parametrize("objective", ["causal", "bidirectional"])
def test_weights_are_the_softmax_of_the_biases(open_biases, width, table, objective):
    figure = open_biases(width)
    if objective == "bidirectional":
        figure.switch("bidirectional")
    figure.switch("attention weights")
    expect(figure.root).to_contain_text("Attention weight of each key if all contents are equal")
    for head, place, position, offset in ((1, 3, 64, -20), (1, 3, 64, 0), (6, 4, 128, -3), (8, 0, 8, -8)):
        figure.slide(head=head - 1, query_at=place, offset=offset)
        for name in NAMES if objective == "causal" else NAMES[:-1]:
            weights = table(name, position, objective)[head - 1].softmax(-1)
            offsets = torch.arange(len(weights)) - position
            text = figure.value(name)
            assert text.endswith(" %")
            assert shows(text, 100 * float(weights[position + offset]), rounding=1e-9), name
            half = next(d for d in range(position + 1) if weights[offsets.abs() <= d].sum() >= 0.5 - 1e-9)
            assert figure.words(name) == f"half within distance {half}"
            expect(figure.status).to_contain_text(f"{name} {text}")
        expect(figure.status).to_contain_text(f"Head {head}, query at {position}, contents equal, weight at offset ")


@pytest.mark.parametrize("weights", [False, True], ids=["biases", "weights"])
@pytest.mark.parametrize("objective", ["causal", "bidirectional"])
def test_lines_are_the_numbers(open_biases, width, table, objective, weights):
    figure = open_biases(width)
    for on, name in ((objective == "bidirectional", "bidirectional"), (weights, "attention weights")):
        if on:
            figure.switch(name)
    figure.slide(head=1, query_at=2)
    last = 0 if objective == "causal" else 32
    names = NAMES if objective == "causal" else NAMES[:-1]
    together = figure.curves("Together")[::-1]
    for place, name in enumerate(names):
        wanted = table(name, 32, objective)
        wanted = 100 * wanted.softmax(-1) if weights else wanted
        offsets = torch.arange(wanted.shape[1], dtype=torch.float64) - 32
        if name in ("Shaw", "T5"):  # steps, which have two ends
            wanted = wanted.repeat_interleave(2, dim=1)
            offsets = (offsets[:, None] + torch.tensor([-0.5, 0.5])).flatten()
        lines = figure.curves(name)
        assert len(lines) == len(HEADS)
        # The chosen one is on top of the others.
        for line, row in zip(lines, wanted[[0, 2, 3, 4, 5, 6, 7, 1]], strict=True):
            got, off = figure.numbers_drawn(name, line)
            assert (got - row).abs().max() <= off, name
            assert (figure.offsets_drawn(name, line, -32, last) - offsets).abs().max() < 0.01, name
        assert lines[-1] == figure.line(name)
        assert figure.heights_used(name, lines) == pytest.approx(figure.heights(name), abs=0.01)
        got, off = figure.numbers_drawn("Together", together[place])
        assert (got - wanted[1]).abs().max() <= off, name


def test_changes_are_announced(open_biases):
    figure = open_biases()
    changes = [
        lambda: figure.slider("head").press("ArrowRight"),
        lambda: figure.slider("offset").press("ArrowLeft"),
        lambda: figure.slider("query at").press("ArrowLeft"),
        lambda: figure.switch("bidirectional"),
        lambda: figure.switch("attention weights"),
    ]
    assert_announces(figure, changes)


def test_drawings_say_what_they_show(open_biases):
    figure = open_biases()
    figure.slider("head").press("ArrowLeft")
    for name in NAMES:
        label = figure.chart(name).get_attribute("aria-label")
        assert label.startswith(f"{name}, head 2: ")
        assert label.endswith(f" at 0, {figure.value(name)} at −20")
    expect(figure.chart("Together")).to_have_accessible_name("All schemes on one scale, head 2")


def test_tab_reaches_every_control_and_shows_where_it_is(open_biases):
    figure = open_biases()
    figure.slider("head").focus()
    controls = [figure.slider("query at"), figure.slider("offset")]
    controls += [figure.root.get_by_role("switch", name=name) for name in ("bidirectional", "attention weights")]
    assert_tab_leads_to(figure, controls)
    figure.page.keyboard.press("Space")
    expect(controls[-1]).to_be_checked()


def test_the_controls_stay_in_sight_on_a_phone(open_biases):
    figure = open_biases(390)
    assert_in_sight(
        figure.status, [figure.slider("head"), figure.slider("offset"), figure.root.get_by_role("switch").last]
    )


def test_nothing_is_clipped(open_biases, width):
    assert_nothing_is_clipped(open_biases(width))


def test_texts_are_large_enough(open_biases, width):
    assert_texts_are_large_enough(open_biases(width))


def test_the_figure_keeps_its_height(open_biases, width):
    assert_keeps_its_height(open_biases(width))


@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_accessible_after_use(open_biases, width, colours):
    figure = open_biases(width, color_scheme=colours)
    figure.switch("bidirectional")
    figure.switch("attention weights")
    assert_accessible(figure)


@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_lines_are_seen_and_told_apart(open_biases, colours):
    figure = open_biases(color_scheme=colours)
    paper = paper_in(figure, colours)
    look = lambda lines: [*zip(styles(lines, "stroke"), styles(lines, "strokeDasharray"), strict=True)]
    looks = look(figure.chart("Together").locator(".pe-bias-line"))
    assert [len(set(each)) for each in zip(*looks, strict=True)] == [len(NAMES)] * 2
    assert min(contrast(stroke, paper) for stroke, _ in looks) >= VISIBLE
    # What stands beside a name is what its line looks like.
    swatches = [each for name in NAMES for each in look(figure.panel(name).locator(".pe-bias-swatch line"))]
    assert swatches == looks[::-1]
