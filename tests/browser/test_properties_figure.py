"""Figure 7, three properties cell by cell, driven by mouse, touch and keyboard, and its numbers against the package."""

import functools
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from posembed.similarity import properties_of_matrix
from posembed.widgets.properties_map import LETTERS, PROPERTIES

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
from .colours import LIGHT_AND_DARK, VISIBLE, contrast, pixels
from .figures import Figure, number, numbers, touch

CARDS = ["Monotonicity", "Translation invariance", "Symmetry"]
STEPS = {"ArrowLeft": (0, -1), "ArrowUp": (-1, 0), "ArrowDown": (1, 0), "ArrowRight": (0, 1)}
BUTTONS = {"one column left": (0, -1), "one row up": (-1, 0), "one row down": (1, 0), "one column right": (0, 1)}
# Half a step of the packed values, in their unit; twice at the end of the scale.
PACKED = 2.0**-16


def signed(number):
    return str(number).replace("-", "−")


class Matrix:
    """A matrix of the page, from the state that its script reads, and what the definitions say of it."""

    def __init__(self, packed, max_offset):
        self.name, self.n, self.unit, self.future = (packed[key] for key in ("name", "n", "unit", "future"))
        self.full, self.properties = packed["full"], packed["properties"]
        self.reach = max_offset or self.n
        digits = np.array([LETTERS.index(letter) for letter in packed["values"]]).reshape(self.n, self.n, 3)
        codes = digits @ [64**2, 64, 1]
        self.values = np.where(codes == 0, -np.inf, (codes - 2**17) / 2**16 * self.unit)
        self.order = np.array([LETTERS.index(letter) for letter in packed["order"]]).reshape(self.n, self.n)
        self.largest = np.abs(self.values[np.isfinite(self.values)]).max()

    def cells(self):
        """Corners, the main diagonal, and some others."""
        last = self.n - 1
        return [(0, 0), (last, 0), (0, last), (last // 2, last // 2), (last // 2, last // 4), (last // 4, last)]

    def share(self, row, side):
        """The share of pairs in order on a side of a row, as it is written."""
        line = self.order[row][::-1] if side < 0 else self.order[row]
        start = self.n - row if side < 0 else row + 1
        near = line[start : start + self.reach]
        pairs = [(a > b) + (a == b) / 2 for k, a in enumerate(near) for b in near[k + 1 :]]
        return f"{np.mean(pairs):.3f}" if pairs else "no pairs"

    def spread(self):
        """The spread of what translation invariance looks at."""
        off = self.values[~np.eye(self.n, dtype=bool)]
        return off[np.isfinite(off)].std()

    def shows(self, text, value):
        """Whether a number as it is written agrees with a value: four digits of a large one of the matrix, or three."""
        if not np.isfinite(value):
            return text == "not seen"
        (written,) = numbers(text)
        return abs(written - value) <= max(0.001 * self.largest, 0.006 * abs(value))


class Map(Figure):
    chapter = "probing/three-properties.html"
    label = "Three properties, cell by cell"
    lines = ".pe-property-title, .pe-property-words"
    overlap = 2

    def __init__(self, page):
        super().__init__(page)
        self.state = self.given("matrices", "cell")
        self.matrices = [Matrix(each, self.state["max_offset"]) for each in self.state["matrices"]]
        self.map = self.root.get_by_role("application")
        self.select = self.choice("matrix")

    def reset(self):
        super().reset()
        self.page.mouse.move(1, 1)
        self.choose(self.matrices[0])
        self.keep(2 * self.matrices[0].n // 3, self.matrices[0].n // 3)

    def choose(self, matrix):
        self.select.select_option(label=matrix.name)

    @property
    def matrix(self):
        name = self.select.locator("option:checked").inner_text()
        return next(each for each in self.matrices if each.name == name)

    def point(self, row, column):
        """The middle of a cell, on the page, which is scrolled so that the map is seen."""
        into_view(self.map)
        box, n = self.map.locator(".pe-target").bounding_box(), self.matrix.n
        return box["x"] + (column + 0.5) / n * box["width"], box["y"] + (row + 0.5) / n * box["height"]

    def keep(self, row, column):
        self.page.mouse.click(*self.point(row, column))
        self.page.mouse.move(1, 1)

    def cell(self):
        """The cell that the figure speaks of."""
        place = re.match(r"Row (\d+), column (\d+), offset ([-−]?\d+): ", self.status.inner_text())
        row, column, offset = (int(each.replace("−", "-")) for each in place.groups())
        assert offset == column - row
        return row, column

    def card(self, name):
        return self.root.locator(".pe-property").filter(has=self.page.locator(f"strong:text-is('{name}')"))

    def number(self, name):
        return self.card(name).locator(".pe-value").inner_text()

    def words(self, name):
        return self.card(name).locator(".pe-property-words").inner_text()

    def chart(self, name):
        return self.card(name).get_by_role("img")

    def along(self, name, place):
        """A point of a chart above one of the n places on its axis."""
        into_view(self.chart(name))
        box = self.chart(name).bounding_box()
        left, _, _, right = numbers(self.chart(name).locator(".pe-axis").get_attribute("d"))[:4]
        return box["x"] + left + (place + 0.5) / self.matrix.n * (right - left), box["y"] + box["height"] / 3

    def states(self):
        for matrix in self.matrices:
            self.choose(matrix)
            for row, column in matrix.cells():
                self.keep(row, column)
                yield


@pytest.fixture
def open_map(opened):
    return functools.partial(opened, Map)


def test_the_three_numbers_are_the_package_s(open_map, width):
    """Recomputed from the state: exactly from the order of the rows, and as exactly as values are packed."""
    figure = open_map(width)
    for matrix in figure.matrices:
        figure.choose(matrix)
        ahead = np.triu(np.ones_like(matrix.values), 1) > 0
        hidden = {"open": None, "zeros": 0.0, "absent": -np.inf}[matrix.future]
        ranks = matrix.order + 1.0 if hidden is None else np.where(ahead, hidden, matrix.order + 1.0)
        reach = figure.state["max_offset"]
        found = properties_of_matrix(matrix.values).to_dict()
        found |= {"monotonicity": properties_of_matrix(ranks, max_offset=reach).to_dict()["monotonicity"]}
        for name, title in zip(PROPERTIES, CARDS, strict=True):
            exact = matrix.properties[name]
            assert figure.number(title) == ("undefined" if exact is None else f"{exact:.3f}")
            assert found[name] == pytest.approx(exact, abs=1e-6 if name == "monotonicity" else 1e-3)


def test_a_cell_s_row_diagonal_and_mirror(open_map, width):
    figure = open_map(width)
    for matrix in figure.matrices:
        figure.choose(matrix)
        for row, column in matrix.cells():
            figure.keep(row, column)
            assert figure.cell() == (row, column)
            check_words(figure, matrix, row, column)


def check_words(figure, matrix, row, column):
    """Hold what the cards and the status say to the definitions."""
    right = f"right {matrix.share(row, 1)}" if matrix.future == "open" else "ahead not seen"
    order = f"left {matrix.share(row, -1)}, {right}"
    assert figure.words("Monotonicity") == f"Row {row}, pairs in order: {order}."
    line = "Main diagonal" if row == column else f"Diagonal {signed(column - row)}"
    said, whole = re.fullmatch(
        rf"{line}: (.*)\. Whole matrix: spread (.*)\.", figure.words("Translation invariance")
    ).groups()
    along = np.diagonal(matrix.values, column - row)
    if np.isfinite(along).all():
        mean, spread = re.fullmatch("mean (.*), spread (.*)", said).groups()
        assert matrix.shows(mean, along.mean())
        assert matrix.shows(spread, along.std())
    else:
        assert said == "not seen"
    assert matrix.shows(whole, matrix.spread())
    value, mirror = matrix.values[row, column], matrix.values[column, row]
    said = re.fullmatch(
        r"Row .*?: value (.*?), mirror cell (.*?)(?:, difference (.*?))?\. Pairs in order: (.*?)\. .*",
        figure.status.inner_text(),
    )
    assert matrix.shows(said[1], value)
    assert matrix.shows(said[2], mirror)
    assert (said[3] is not None) == (np.isfinite(value) and np.isfinite(mirror))
    assert said[3] is None or matrix.shows(said[3], value - mirror)
    assert said[4] == order
    other = "its own mirror cell" if row == column else f"Mirror ({column}, {row}): {said[2]}"
    assert figure.words("Symmetry").startswith(f"Cell ({row}, {column}): {said[1]}")
    assert other in figure.words("Symmetry")


def test_hovering_tries_a_cell_and_a_click_keeps_it(open_map, width):
    figure = open_map(width)
    n, kept = figure.matrix.n, figure.cell()
    for row, column in [(0, 0), (n - 1, n // 2), (n // 3, n - 1)]:
        figure.page.mouse.move(*figure.point(row, column))
        assert figure.cell() == (row, column)
    figure.page.mouse.move(1, 1)
    assert figure.cell() == kept
    figure.page.mouse.click(*figure.point(n // 3, n - 1))
    figure.page.mouse.move(1, 1)
    assert figure.cell() == (n // 3, n - 1)


def test_arrow_keys_move_the_cell_up_to_the_edge(open_map, width):
    figure = open_map(width)
    figure.map.focus()
    row, column = figure.cell()
    scrolled = figure.page.evaluate("scrollY")
    for key, (down, right) in STEPS.items():
        figure.page.keyboard.press(key)
        row, column = row + down, column + right
        assert figure.cell() == (row, column)
        label = figure.map.get_attribute("aria-label")
        assert f"{figure.matrix.name}. Row {row}, column {column}, offset {signed(column - row)}: value " in label
        assert ", mirror cell " in label
    for key in ("ArrowLeft", "ArrowUp"):
        for _ in range(figure.matrix.n + 1):
            figure.page.keyboard.press(key)
    assert figure.cell() == (0, 0)
    assert figure.page.evaluate("scrollY") == scrolled
    expect(figure.map).to_be_focused()


def test_keys_move_on_from_the_cell_that_is_kept(open_map):
    figure = open_map()
    row, column = figure.cell()
    figure.page.mouse.move(*figure.point(0, 0))
    figure.map.press("ArrowRight")
    assert figure.cell() == (row, column + 1)


def test_buttons_move_the_cell_and_jump_to_its_mirror(open_map, width):
    figure = open_map(width)
    row, column = figure.cell()
    for name, (down, right) in BUTTONS.items():
        figure.press(name)
        row, column = row + down, column + right
        assert figure.cell() == (row, column)
    figure.press("one row down")
    figure.press("mirror cell")
    assert figure.cell() == (column, row + 1)


def test_a_finger_picks_cells_and_can_still_scroll(open_map):
    figure = open_map(390, has_touch=True, is_mobile=True)
    n = figure.matrix.n
    # A tap's click comes a little later than the tap.
    figure.page.touchscreen.tap(*figure.along("Monotonicity", 1))
    expect(figure.status).to_contain_text(f"Row {figure.cell()[0]}, column 1, ")
    figure.page.touchscreen.tap(*figure.point(n // 2, n // 4))
    expect(figure.status).to_contain_text(f"Row {n // 2}, column {n // 4}, ")
    scrolled = figure.page.evaluate("scrollY")
    step = max(1, n // 16)
    path = [figure.point(n // 2, column) for column in range(n // 4, 3 * n // 4, step)]
    touch(figure.page, path)
    row, column = figure.cell()
    assert row == n // 2
    assert column >= 3 * n // 4 - step - 1
    assert figure.page.evaluate("scrollY") == scrolled
    assert "pan-y" in figure.map.evaluate("(node) => getComputedStyle(node).touchAction").split()


@pytest.mark.parametrize("name", ["Monotonicity", "Symmetry"])
def test_charts_over_offsets_pick_the_column(open_map, width, name):
    figure = open_map(width)
    row, kept = figure.cell()
    for column in (0, figure.matrix.n // 2, figure.matrix.n - 1):
        figure.page.mouse.move(*figure.along(name, column))
        assert figure.cell() == (row, column)
    figure.page.mouse.move(1, 1)
    assert figure.cell() == (row, kept)


def test_the_diagonal_s_chart_walks_along_it(open_map, width):
    figure = open_map(width)
    row, column = figure.cell()
    offset, n = column - row, figure.matrix.n
    for place in (0, n // 2, n - 1):
        figure.page.mouse.click(*figure.along("Translation invariance", place))
        at = min(max(place, -offset, 0), n - 1, n - 1 - offset)
        assert figure.cell() == (at, at + offset)


def test_another_matrix_is_chosen_by_key_and_keeps_the_cell_where_it_can(open_map):
    figure = open_map()
    others = figure.matrices[1:]
    row, column = figure.cell()
    figure.select.focus()
    for matrix in others:
        figure.page.keyboard.press("ArrowDown")
        assert figure.matrix is matrix
        assert figure.cell() == (min(row, matrix.n - 1), min(column, matrix.n - 1))
        expect(figure.map).to_have_accessible_name(re.compile(f"^{re.escape(matrix.name)}\\. Row"))


FRAMES = """(map) => {
  const target = map.querySelector(".pe-target").getBBox();
  const place = (node) => {
    const { x, y, width, height } = node.getBBox();
    const centre = [(x + width / 2 - target.x) / target.width, (y + height / 2 - target.y) / target.height];
    return [...centre, width / target.width, height / target.height];
  };
  return [...map.querySelectorAll(".pe-outline")].map(place);
}"""


def test_the_frames_are_where_the_cells_are(open_map, width):
    figure = open_map(width)
    for matrix in figure.matrices:
        figure.choose(matrix)
        for row, column in matrix.cells():
            figure.keep(row, column)
            n, offset = matrix.n, column - row
            line, diagonal, mirror, cell = figure.map.evaluate(FRAMES)
            first, length = max(0, -offset), n - abs(offset)
            middle = (first + length / 2) / n
            assert line[:3] == pytest.approx([0.5, (row + 0.5) / n, 1], abs=0.02)
            assert diagonal[:2] == pytest.approx([middle + offset / n, middle], abs=0.001)
            assert diagonal[2:] == pytest.approx([length / n] * 2, abs=0.02)
            assert mirror[:2] == pytest.approx([(row + 0.5) / n, (column + 0.5) / n], abs=0.001)
            assert cell[:2] == pytest.approx([(column + 0.5) / n, (row + 0.5) / n], abs=0.001)


def test_colours_are_the_values(open_map):
    figure = open_map()
    for matrix in figure.matrices:
        figure.choose(matrix)
        drawn = np.array(pixels(figure.map.locator(".pe-pixels"))).reshape(matrix.n, matrix.n, 4)
        shares = np.where(np.isfinite(matrix.values), matrix.values, 0) / matrix.unit / matrix.full
        assert np.abs(drawn[..., 3] - 255 * np.abs(shares).clip(max=1)).max() <= 1
        strong = np.abs(shares) > 0.2
        blue = drawn[..., 2] > drawn[..., 0]
        assert np.array_equal(blue[strong], (shares < 0)[strong])
        assert (figure.map.locator(".pe-property-unseen").count() == 1) == (matrix.future != "open")


def test_lines_are_the_values(open_map, width):
    """The lines of the three charts, by the ticks beside them, and the steep parts of the first."""
    figure = open_map(width)
    for matrix in figure.matrices:
        figure.choose(matrix)
        row, column = 2 * matrix.n // 3, matrix.n // 3
        figure.keep(row, column)
        ahead = matrix.future == "open"
        solid, dashed = sides(matrix.values[row], row), sides(matrix.values[:, row], row)
        assert_drawn(figure, "Monotonicity", ".pe-curve:not(.pe-property-rise)", solid if ahead else solid[:1])
        assert_drawn(figure, "Translation invariance", ".pe-curve", [np.diagonal(matrix.values, column - row)])
        assert_drawn(figure, "Symmetry", ".pe-curve:not(.pe-second)", solid)
        assert_drawn(figure, "Symmetry", ".pe-second", dashed)
        outwards = [*((j, j - 1) for j in range(1, row)), *((j, j + 1) for j in range(row + 1, matrix.n - 1) if ahead)]
        near_enough = [(near, far) for near, far in outwards if abs(far - row) <= matrix.reach]
        steep = sum(matrix.order[row, far] > matrix.order[row, near] for near, far in near_enough)
        assert figure.chart("Monotonicity").locator(".pe-property-rise").count() == steep


def sides(values, row):
    """The values that are seen before and after the main diagonal."""
    both = (part[np.isfinite(part)] for part in (values[:row], values[row + 1 :]))
    return [part for part in both if len(part)]


def assert_drawn(figure, name, look, wanted):
    """Compare lines with values, up to a scale: from the lowest to the highest, both have the same steps."""
    drawn = figure.chart(name).locator(look).evaluate_all("(nodes) => nodes.map((node) => node.getAttribute('d'))")
    heights = [np.array(numbers(d)).reshape(-1, 2)[:, 1] for d in drawn]
    assert [len(line) for line in heights] == [len(line) for line in wanted]
    got, values = np.concatenate(heights), np.concatenate(wanted)
    top, bottom = got.min(), got.max()
    if np.ptp(values) > 0.01 * np.abs(values).max():
        expected = top + (values.max() - values) / np.ptp(values) * (bottom - top)
        assert np.abs(expected - got).max() < 0.05


def test_changes_are_announced(open_map):
    figure = open_map()
    changes = [
        lambda: figure.map.press("ArrowDown"),
        lambda: figure.press("mirror cell"),
        lambda: figure.press("one column left"),
        lambda: figure.keep(0, 1),
    ]
    assert_announces(figure, changes)


def test_drawings_say_what_they_show(open_map):
    figure = open_map()
    for name in CARDS:
        expect(figure.chart(name)).to_have_accessible_name(f"{name}. {figure.words(name)}")


def test_tab_reaches_every_control_and_shows_where_it_is(open_map):
    figure = open_map()
    figure.select.focus()
    assert_tab_leads_to(figure, [*map(figure.button, [*BUTTONS, "mirror cell"]), figure.map])
    # A click focuses it too, so that the keys go on from the cell that was clicked.
    figure.select.focus()
    figure.page.mouse.click(*figure.point(1, 1))
    expect(figure.map).to_be_focused()


def test_the_controls_stay_in_sight_on_a_phone(open_map):
    figure = open_map(390)
    assert_in_sight(figure.status, [figure.select, *figure.root.get_by_role("button").all()])


@pytest.mark.parametrize("size", [320, 390, 1280])
def test_nothing_is_clipped(open_map, size):
    assert_nothing_is_clipped(open_map(size))


def test_texts_are_large_enough(open_map, width):
    assert_texts_are_large_enough(open_map(width))


def test_the_figure_keeps_its_height(open_map, width):
    assert_keeps_its_height(open_map(width))


@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_accessible_after_use(open_map, width, colours):
    figure = open_map(width, color_scheme=colours)
    figure.press("mirror cell")
    assert_accessible(figure)


@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_lines_are_seen(open_map, colours):
    figure = open_map(color_scheme=colours)
    paper = paper_in(figure, colours)
    lines = styles(figure.root.locator(".pe-curve, .pe-property .pe-outline, .pe-property-gap"), "stroke")
    assert min(contrast(each, paper) for each in lines) >= VISIBLE
    # In the map a frame has a rim of the paper's colour, so that it is seen on every cell.
    frames, rims = (set(styles(figure.map.locator(look), "stroke")) for look in (".pe-outline", ".pe-halo"))
    assert [contrast(frame, rim) >= VISIBLE for frame in frames for rim in rims] == [True]
    # What rises is told apart by its width too.
    widths = lambda lines: [number(width) for width in styles(lines, "strokeWidth")]
    rises = {each for _ in figure.states() for each in widths(figure.root.locator(".pe-property-rise"))}
    figure.reset()
    plain = widths(figure.chart("Monotonicity").locator(".pe-curve:not(.pe-property-rise)"))
    assert not rises or min(rises) >= 2 * max(plain)
