"""Figure 6, predicted against true position, driven by mouse, touch and keyboard; its numbers against the package's."""

import functools
import itertools
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from posembed.experiments import stored_studies
from posembed.widgets import ProbeFigure
from posembed.widgets.probe import CONTROLS, SPLITS

from . import figures
from .checks import (
    assert_accessible,
    assert_tab_leads_to,
    assert_texts_are_large_enough,
    out_of_place,
    paper_in,
)
from .chromium import into_view, styles
from .colours import LIGHT_AND_DARK, VISIBLE, contrast
from .figures import Figure, number, touch

ROWS = ["this table", "constant guess", "permuted labels", "random table"]
KEYS = dict(zip(ROWS, ["error", "constant", "permuted labels", "random table"], strict=True))
# The state has three decimals, the words two or fewer.
shows = functools.partial(figures.shows, rounding=0.0005 + 1e-9)


class Probe(Figure):
    chapter = "probing/position-tables.html"
    label = "Predicted against true position"
    lines = ".pe-probe-title, .pe-probe-errors :is(th, .pe-probe-number)"
    overhang = 4

    def reset(self):
        super().reset()
        self.pick(table=0, split="even-odd", points="table")
        self.slide(position=64)

    def pick(self, **choices):
        """Choose a table by its place, a split and points by their names in the package."""
        for name, choice in choices.items():
            places = {"split": list(SPLITS), "points": list(CONTROLS)}.get(name, [])
            self.choice(name).select_option(index=places.index(choice) if choice in places else choice)

    @property
    def chart(self):
        return self.root.get_by_role("img")

    def headline(self):
        return self.root.locator(".pe-probe-title").inner_text()

    def rest(self):
        return self.root.locator(".pe-probe-rest").inner_text()

    def readout(self):
        return self.root.locator(".pe-probe-readout").inner_text()

    def drawn_words(self):
        return self.root.locator(".pe-probe-drawn").inner_text()

    def shown_notes(self):
        return [text for text in self.root.locator(".pe-probe-one > :not(.pe-away)").all_inner_texts() if text]

    def error_row(self, name):
        return self.root.get_by_role("row").filter(has=self.page.get_by_role("rowheader", name=name, exact=True))

    def errors(self):
        return {name: self.error_row(name).locator(".pe-probe-number").inner_text() for name in ROWS}

    def chosen_row(self):
        return self.root.locator(".pe-probe-errors tr.pe-selected").get_by_role("rowheader").inner_text()

    def bars(self):
        """The length of each bar as a share of its place, and whether it ends in an arrow."""
        return self.root.locator(".pe-probe-bar").evaluate_all(
            """(bars) => bars.map((bar) => [
              bar.firstChild.getBoundingClientRect().width / bar.getBoundingClientRect().width,
              getComputedStyle(bar.firstChild).clipPath !== "none"])"""
        )

    def scales(self):
        """What a pixel across and a pixel down stand for, by the numbers beside the grid: value = a + b * pixel."""
        ticks = self.chart.evaluate(TICKS)
        return [np.polyfit([place for place, _ in axis], [number(text) for _, text in axis], 1)[::-1] for axis in ticks]

    def points(self):
        """The points in the chart as positions and predictions; apart from them the triangles at its edges."""
        (left, across), (low, up) = self.scales()
        inside, edge = [], []
        for look, x, y in self.chart.evaluate(POINTS):
            (edge if "pe-probe-beyond" in look else inside).append((left + across * x, low + up * y))
        return np.array(inside).reshape(-1, 2), np.array(edge).reshape(-1, 2)

    def point_at(self, position):
        """A place on the page above a position of the chart."""
        left, across = self.scales()[0]
        box = self.chart.bounding_box()
        return box["x"] + (position - left) / across, box["y"] + box["height"] / 3

    def states(self):
        """Each table, split and control, and both ends of the rows."""
        tables = range(len(self.given("splits", "controls")["tables"]))
        for table, split, control in itertools.product(tables, SPLITS, CONTROLS):
            self.pick(table=table, split=split, points=control)
            for key in ("Home", "End"):
                self.slider("position").press(key)
                yield


# Where the numbers below the chart and beside it stand, without its names.
TICKS = """(chart) => [["middle", "x"], ["end", "y"]].map(([anchor, axis]) =>
  [...chart.querySelectorAll(`.pe-tick[text-anchor=${anchor}]:not(.pe-probe-word)`)]
    .filter((text) => /^\\d+$/.test(text.textContent))
    .map((text) => [Number(text.getAttribute(axis)) - (axis === "y" ? 4 : 0), text.textContent]))"""
POINTS = """(chart) => [...chart.querySelectorAll(".pe-probe-point")].map((point) =>
  [point.getAttribute("class"), ...point.getAttribute("transform").match(/[-\\d.]+/g).map(Number)])"""


@pytest.fixture
def open_probe(opened):
    return functools.partial(opened, Probe)


@pytest.fixture(scope="module")
def state(opened):
    """What the page's figure was given."""
    return opened(Probe).given("splits", "controls")


@pytest.fixture(scope="module")
def tables(state):
    return state["tables"]


def every_choice(tables):
    return itertools.product(range(len(tables)), SPLITS)


def test_the_page_has_the_package_s_numbers(state, tables):
    """Those that the page measured itself come as near as two builds of a linear algebra library do."""
    assert {each["key"] for each in state["splits"]} == set(SPLITS)
    assert [each["key"] for each in state["controls"]] == list(CONTROLS)
    package = {table["name"]: table for table in ProbeFigure().tables}
    assert stored_studies().keys() & {table["name"] for table in tables}
    for table in tables:
        if table["name"] not in package:
            continue
        assert "measured" in table["about"]
        for split, score in package[table["name"]]["scores"].items():
            for key in ("error", "constant", "permuted labels", "random table"):
                assert table["scores"][split][key] == pytest.approx(score[key], rel=0.01, abs=0.01), table["name"]


def test_each_table_and_split_has_its_numbers_and_baselines(open_probe, width, tables):
    figure = open_probe(width)
    for place, split in every_choice(tables):
        figure.pick(table=place, split=split)
        table, score = tables[place], tables[place]["scores"][split]
        for name, text in figure.errors().items():
            assert shows(text, score[KEYS[name]]), (table["name"], split, name)
        for (share, cut), name in zip(figure.bars(), ROWS, strict=True):
            wanted = score[KEYS[name]] / (2 * score["constant"])
            assert cut == (wanted > 1)
            assert share == pytest.approx(min(1, wanted), abs=0.01), (table["name"], split, name)
        if score["held_out"]:
            assert re.fullmatch(r"Test error [\d.]+ positions", figure.headline())
            assert shows(figure.headline(), score["error"])
            assert shows(figure.rest().split("fitted to: ")[1], score["train"])
        else:
            assert figure.headline() == "No test"
            assert shows(figure.rest().split("fitted to: ")[1], score["error"])
        low, high = re.search(r"interval (.*) to ([\d.]*\d)", figure.rest()).groups()
        assert shows(low, score["low"])
        assert shows(high, score["high"])
        assert figure.shown_notes()[-1] == table["about"]
        assert any(SPLITS[split][1] in note for note in figure.shown_notes())
        expect(figure.status).to_contain_text(f"{table['short']}, {SPLITS[split][0]}. {figure.headline()}. ")
        expect(figure.chart).to_have_accessible_name(re.compile(re.escape(f"{table['short']}, {SPLITS[split][0]}, ")))


def test_only_all_rows_are_no_test(open_probe):
    figure = open_probe()
    warm = {}
    for split in SPLITS:
        figure.pick(split=split)
        warm[split] = "pe-probe-untested" in figure.root.locator(".pe-probe-title").get_attribute("class")
    assert [split for split, is_warm in warm.items() if is_warm] == ["all"]


@pytest.mark.parametrize("control", CONTROLS)
def test_the_points_are_the_predictions(open_probe, width, tables, control):
    figure = open_probe(width)
    figure.pick(points=control)
    for place, split in every_choice(tables):
        figure.pick(table=place, split=split)
        n, score = tables[place]["n_positions"], tables[place]["scores"][split]
        wanted = np.column_stack([score["positions"], score["predicted"][control]])
        beyond = (wanted[:, 1] < -n / 8) | (wanted[:, 1] > n + n / 8)
        inside, edge = figure.points()
        # A drawing's numbers have two decimals of a pixel, and a chart of a few hundred pixels shows n positions.
        near = 0.01 * n / 200
        assert np.abs(inside - wanted[~beyond]).max(initial=0) < near, (tables[place]["name"], split)
        assert np.abs(edge[:, 0] - wanted[beyond, 0]).max(initial=0) < near
        assert ((edge[:, 1] > n / 2) == (wanted[beyond, 1] > n / 2)).all()
        words = figure.drawn_words()
        assert words.startswith(f"Drawn: {len(wanted)} of {score['n_tested']} ")
        above, below = (int(each.sum()) for each in (wanted[:, 1] > n + n / 8, wanted[:, 1] < -n / 8))
        assert (f"{above} above" in words, f"{below} below" in words) == (above > 0, below > 0)
        assert ("all within the chart" in words) == (not above + below)


def test_the_lines_stand_for_exact_and_for_the_constant_guess(open_probe, width, tables):
    figure = open_probe(width)
    line = lambda name: figure.chart.locator(name).get_attribute("d")
    for place, split in every_choice(tables):
        figure.pick(table=place, split=split)
        n, score = tables[place]["n_positions"], tables[place]["scores"][split]
        (left, across), (low, up) = figure.scales()
        x0, y0, x1, y1 = (float(each) for each in re.findall(r"[\d.]+", line(".pe-probe-exact")))
        assert [left + across * x0, low + up * y0, left + across * x1, low + up * y1] == pytest.approx(
            [0, 0, n, n], abs=1e-6
        )
        constant = float(re.findall(r"[\d.]+", line(".pe-probe-constant"))[1])
        assert low + up * constant == pytest.approx(score["guess"], abs=1e-6)
        fitted = figure.chart.locator(".pe-probe-fitted")
        assert fitted.count() == (split == "half")
        if split == "half":
            start = float(fitted.get_attribute("x"))
            ends = [left + across * each for each in (start, start + float(fitted.get_attribute("width")))]
            assert ends == pytest.approx(score["fitted"], abs=1e-6)


def test_a_control_has_points_of_its_own(open_probe, width):
    figure = open_probe(width)
    shapes, colours = set(), set()
    for control, row in zip(CONTROLS, [ROWS[0], *ROWS[2:]], strict=True):
        figure.pick(points=control)
        assert figure.chosen_row() == row
        point = figure.chart.locator(".pe-probe-point:not(.pe-probe-beyond)").first
        shapes.add(point.get_attribute("d"))
        fill = styles(point, "fill")
        colours |= {*fill}
        # The mark beside the name is what the points look like.
        swatch = figure.error_row(row).locator(".pe-probe-swatch path")
        assert styles(swatch, "fill") == fill
        axis = "position dealt out" if control == "permuted labels" else "true position"
        assert figure.chart.get_by_text(axis, exact=True).count() == 1
        assert CONTROLS[control][1] in figure.shown_notes()
        expect(figure.status).to_contain_text(f"Points: {CONTROLS[control][0]}. Drawn: ")
    assert len(shapes) == len(colours) == len(CONTROLS)


def test_choices_by_keyboard(open_probe, width, tables):
    figure = open_probe(width)
    figure.choice("table").focus()
    names = [table["short"] for table in tables]
    for name in names[1:]:
        figure.page.keyboard.press("ArrowDown")
        expect(figure.status).to_contain_text(f"{name}, even rows, test on odd. Test error ")
    assert_tab_leads_to(figure, [figure.choice("split")])
    assert styles(figure.choice("split"), "outlineWidth") == ["3px"]
    for split in list(SPLITS)[1:]:
        figure.page.keyboard.press("ArrowDown")
        expect(figure.status).to_contain_text(f"{names[-1]}, {SPLITS[split][0]}. ")
    assert_tab_leads_to(figure, [figure.choice("points")])
    for control in list(CONTROLS)[1:]:
        figure.page.keyboard.press("ArrowDown")
        expect(figure.status).to_contain_text(f"Points: {CONTROLS[control][0]}. ")
    assert_tab_leads_to(figure, [figure.slider("position")])


def read_out(figure, score, control, place):
    """Check all that is said of one point."""
    position, predicted = score["positions"][place], score["predicted"][control][place]
    off = abs(predicted - position)
    side = "too high" if predicted > position else "too low"
    apart = f"{off:.1f} {side}" if off > 0.05 else "less than 0.1 off"
    words = f"predicted {predicted:.1f}, {apart}".replace("-", "−")
    assert figure.readout() == words
    expect(figure.slider("position")).to_have_value(str(place))
    expect(figure.slider("position")).to_have_attribute("aria-valuetext", f"{position}: {words}")
    expect(figure.status).to_have_text(f"Position {position}: {words}.")
    (left, across), (low, up) = figure.scales()
    ring = figure.chart.locator(".pe-probe-chosen")
    assert left + across * float(ring.get_attribute("cx")) == pytest.approx(position, abs=1e-6)
    stretch = figure.chart.locator(".pe-probe-off").get_attribute("d")
    x, start, end = (float(each) for each in re.findall(r"-?[\d.]+", stretch))
    # From the exact line to the point.
    assert low + up * start == pytest.approx(left + across * x, abs=1e-6)
    if "triangles" not in figure.drawn_words():
        assert low + up * end == pytest.approx(predicted, abs=1e-6)


@pytest.mark.parametrize("control", CONTROLS)
def test_arrow_keys_read_out_points(open_probe, width, tables, control):
    figure = open_probe(width)
    figure.pick(split="folds", points=control)
    score = tables[0]["scores"]["folds"]
    figure.slider("position").focus()
    last = len(score["positions"]) - 1
    for key, place in [
        ("Home", 0),
        ("ArrowRight", 1),
        ("ArrowUp", 2),
        ("ArrowLeft", 1),
        ("End", last),
        ("ArrowDown", last - 1),
    ]:
        figure.page.keyboard.press(key)
        read_out(figure, score, control, place)


def test_the_mouse_reads_out_points(open_probe, width, tables):
    figure = open_probe(width)
    for split in ("even-odd", "half"):
        figure.pick(split=split)
        score = tables[0]["scores"][split]
        for place in (3, 100, 40, 41, 127):
            figure.page.mouse.move(*figure.point_at(score["positions"][place]))
            expect(figure.slider("position")).to_have_value(str(place))
            read_out(figure, score, "table", place)
        box = figure.chart.bounding_box()
        for x, place in ((box["x"] + 2, 0), (box["x"] + box["width"] - 2, len(score["positions"]) - 1)):
            figure.page.mouse.move(x, box["y"] + 60)
            expect(figure.slider("position")).to_have_value(str(place))


def test_a_finger_reads_out_points_and_can_still_scroll(open_probe, tables):
    figure = open_probe(390, has_touch=True, is_mobile=True)
    into_view(figure.chart)
    scrolled = figure.page.evaluate("scrollY")
    score = tables[0]["scores"]["even-odd"]
    touch(figure.page, [figure.point_at(score["positions"][place]) for place in range(5, 101, 5)])
    read_out(figure, score, "table", 100)
    assert figure.page.evaluate("scrollY") == scrolled
    assert styles(figure.chart, "touchAction") == ["pan-y"]
    figure.page.touchscreen.tap(*figure.point_at(score["positions"][30]))
    read_out(figure, score, "table", 30)


def test_a_row_that_is_not_drawn_gives_way_to_the_nearest(open_probe, tables):
    figure = open_probe()
    chosen = tables[0]["scores"]["even-odd"]["positions"][20]
    figure.slide(position=20)
    for split in ("all", "folds", "half"):
        figure.pick(split=split)
        positions = np.array(tables[0]["scores"][split]["positions"])
        expect(figure.slider("position")).to_have_value(str(np.abs(positions - chosen).argmin()))
    figure.pick(split="even-odd")
    expect(figure.slider("position")).to_have_value("20")


@pytest.mark.parametrize("width", [320, 390, 1280], ids=lambda width: f"{width}px")
def test_nothing_is_clipped_and_the_figure_keeps_its_height(open_probe, width):
    figure = open_probe(width)
    heights = set()
    for _ in figure.states():
        assert out_of_place(figure) == []
        assert figure.root.evaluate(WRAPPED) == []
        heights.add(round(figure.height()))
    # What stands below must not jump while a reader tries things.
    assert len(heights) == 1


WRAPPED = """(figure) => [...figure.querySelectorAll(".pe-probe-errors :is(th, .pe-probe-number), .pe-probe-title")]
  .filter((node) => node.getBoundingClientRect().height > 1.9 * parseFloat(getComputedStyle(node).lineHeight))
  .map((node) => node.textContent)"""


def test_texts_are_large_enough(open_probe, width):
    assert_texts_are_large_enough(open_probe(width))


@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_accessible_after_use(open_probe, width, colours):
    figure = open_probe(width, color_scheme=colours)
    figure.pick(split="all", points="permuted labels")
    assert_accessible(figure)


@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_points_and_lines_are_seen(open_probe, colours):
    figure = open_probe(color_scheme=colours)
    paper = paper_in(figure, colours)
    seen = set()
    for control in CONTROLS:
        figure.pick(points=control)
        seen |= {*styles(figure.chart.locator(".pe-probe-point"), "fill")}
    for line in (".pe-probe-exact", ".pe-probe-constant", ".pe-probe-off", ".pe-probe-chosen"):
        (stroke,) = styles(figure.chart.locator(line), "stroke")
        seen.add(stroke)
    assert min(contrast(colour, paper) for colour in seen) >= VISIBLE


def test_nothing_moves_by_itself(open_probe):
    figure = open_probe(reduced_motion="reduce")
    figure.pick(table=1, split="half", points="random table")
    assert figure.page.evaluate("document.getAnimations().length") == 0
