"""Figures 3 and 4, sinusoids and rotation, driven by mouse, touch and keyboard, and their numbers against PyTorch."""

import functools
import math
import re

import pytest
import torch
from playwright.sync_api import expect

from posembed import sinusoidal
from posembed.encodings import RoPE
from posembed.widgets import RotationFigure, SinusoidFigure

from .checks import (
    assert_accessible,
    assert_drawings_follow_the_window,
    assert_in_sight,
    assert_keeps_its_height,
    assert_nothing_is_clipped,
    assert_tab_leads_to,
    assert_texts_are_large_enough,
    assert_texts_of_drawings_stand_out,
    paper_in,
)
from .chromium import middle, printed, styles, wait_until_still
from .colours import LIGHT_AND_DARK, READABLE, VISIBLE, contrast, ink_and_paper, luminance, pixels
from .figures import Figure, numbers

# A line is drawn to the hundredth of a pixel.
PIXEL = 0.01
N_OFFSETS = 128


def table(n_positions, d_model, base):
    return sinusoidal(n_positions, d_model, base=base, dtype=torch.float64)


class Chart:
    """A chart's curves as numbers again, from its lines in pixels and the ends of its axes."""

    def __init__(self, node, x_ends, y_ends, log=False):
        self.node, self.x_ends, self.y_ends, self.log = node, x_ends, y_ends, log

    def box(self):
        left, top, bottom, right = numbers(self.node.locator(".pe-axis").get_attribute("d"))
        return left, right, top, bottom

    def points(self, line):
        left, right, top, bottom = self.box()
        places = torch.tensor(numbers(self.node.locator(line).get_attribute("d")), dtype=torch.float64).view(-1, 2)
        shares = torch.stack([(places[:, 0] - left) / (right - left), (bottom - places[:, 1]) / (bottom - top)])
        (x_from, x_to), (y_from, y_to) = self.x_ends, self.y_ends
        if self.log:
            return x_from + shares[0] * (x_to - x_from), y_from * (y_to / y_from) ** shares[1]
        return x_from + shares[0] * (x_to - x_from), y_from + shares[1] * (y_to - y_from)

    def precision(self):
        """What a value may be off by, because lines end on hundredths of pixels."""
        _, _, top, bottom = self.box()
        return PIXEL * (self.y_ends[1] - self.y_ends[0]) / (bottom - top)


class Sinusoids(Figure):
    chapter = "encodings/sinusoidal-and-learned.html"
    label = "Explore the sinusoidal table"
    lines = ".pe-title, .pe-note"
    overlap, overhang = 2, 4

    def reset(self):
        super().reset()
        state = SinusoidFigure().state()
        places = {"width": state["widths"].index(state["d_model"]), "base": state["bases"].index(state["base"])}
        self.slide(position=state["position"], **places)

    def chart(self, title):
        return self.root.locator(".pe-chart").filter(has=self.page.locator(".pe-title", has_text=re.compile(title)))

    def titles(self):
        return self.root.locator(".pe-title").all_inner_texts()

    def line(self, title, line):
        return self.chart(title).locator(line).get_attribute("d")

    def choose(self, width, base):
        state = SinusoidFigure().state()
        self.slide(width=state["widths"].index(width), base=state["bases"].index(base))

    def states(self):
        yield
        self.choose(4, 10.0)
        yield
        self.choose(768, 1e6)
        yield
        self.slide(position=127)
        yield


class Rotation(Figure):
    chapter = "encodings/sinusoidal-and-learned.html"
    label = "Turn pairs of columns"
    lines = ".pe-title, .pe-note"
    overlap = 2
    sliders = ("position p", "offset k", "query at", "key at", "shift both")
    state = ("position", "offset", "query_position", "key_position", "shift")

    def reset(self):
        super().reset()
        start = RotationFigure().state()
        for view in ("rope", "offset"):
            self.view(view)
            for name, trait in zip(self.sliders, self.state, strict=True):
                if self.slider(name).is_visible():
                    self.slider(name).fill(str(start[trait]))

    def view(self, name):
        self.choice("view").select_option(RotationFigure().views[name])

    def faces(self):
        return self.root.locator(".pe-face").all()

    def rows(self):
        """The numbers below each face, by their name."""
        return [
            {row.locator("th").inner_text(): numbers(" ".join(row.locator("td").all_inner_texts())) for row in rows}
            for rows in (face.locator("tbody tr").all() for face in self.faces())
        ]

    def hands(self, look=""):
        """The ends of the hands of each face, right and up, in pixels from its middle."""
        return [
            [
                (x - cx, cy - y)
                for cx, cy, x, y in (numbers(d) for d in face.locator(f".pe-hand{look} path").evaluate_all(PATHS))
            ]
            for face in self.faces()
        ]

    def title(self):
        return self.root.locator(".pe-chart .pe-title").inner_text()

    def product(self):
        return numbers(self.title())[-1]

    def states(self):
        yield
        self.slide(position_p=0, offset_k=0)
        yield
        self.slide(position_p=40, offset_k=24)
        yield
        self.view("rope")
        self.slide(query_at=0, key_at=32, shift_both=100)
        yield


class RotationOfRelativePositions(Rotation):
    chapter = "encodings/relative-positions.html"


PATHS = "(nodes) => nodes.map((node) => node.getAttribute('d'))"


@pytest.fixture
def open_sinusoids(opened):
    return functools.partial(opened, Sinusoids)


@pytest.fixture
def open_rotation(opened):
    return functools.partial(opened, Rotation)


# Figure 3.


def test_the_table_is_the_first_picture(open_sinusoids, width):
    figure = open_sinusoids(width)
    assert figure.titles() == ["The table", "Row 20", "Row 20 times row 20 + k", "Wavelength of each pair"]
    expect(figure.status).to_contain_text("Width 64, base 10\u202f000")


def test_moving_the_position_moves_the_row_and_no_dot_product(open_sinusoids, width):
    figure = open_sinusoids(width)
    products = figure.line("times", ".pe-curve")
    rows = {figure.line("^Row 20$", ".pe-curve:not(.pe-second)")}
    figure.slider("position").focus()
    for position in (21, 22, 23):
        figure.page.keyboard.press("ArrowRight")
        assert figure.titles()[1:3] == [f"Row {position}", f"Row {position} times row {position} + k"]
        rows.add(figure.line(f"^Row {position}$", ".pe-curve:not(.pe-second)"))
        assert figure.line("times", ".pe-curve") == figure.line("times", ".pe-ghost") == products
        expect(figure.status).to_contain_text(f"Row {position} times row {position} + k is row 0 times row k")
        assert numbers(figure.status.inner_text().replace("e−", "e "))[-2:][1] >= 13
    assert len(rows) == 4
    expect(figure.slider("position")).to_have_attribute("aria-valuetext", "23")
    figure.page.keyboard.press("End")
    assert figure.titles()[1] == "Row 127"
    assert figure.line("times", ".pe-curve") == products


@pytest.mark.parametrize(("d_model", "base"), [(64, 10000.0), (768, 10000.0), (4, 10.0), (128, 1e6)])
def test_what_is_drawn_are_the_package_s_numbers(open_sinusoids, width, d_model, base):
    figure = open_sinusoids(width)
    figure.choose(d_model, base)
    figure.slide(position=37)
    rows = table(37 + N_OFFSETS + 1, d_model, base)
    columns = torch.arange(d_model)
    chart = Chart(figure.chart("^Row 37$"), (-0.5, d_model - 0.5), (-1, 1))
    for line, half in ((".pe-curve:not(.pe-second)", 0), (".pe-curve.pe-second", 1)):
        x, y = chart.points(line)
        assert (x - columns[half::2]).abs().max() < d_model * PIXEL
        assert (y - rows[37, half::2]).abs().max() <= chart.precision()
    products = rows[37:] @ rows[37]
    low = next(low for low in (0, -d_model / 4, -d_model / 2) if low <= products.min() + 1e-9)
    chart = Chart(figure.chart("times"), (0, N_OFFSETS), (low, d_model / 2))
    _, y = chart.points(".pe-curve")
    assert (y - products).abs().max() <= chart.precision()


@pytest.mark.parametrize(("d_model", "base"), [(64, 10000.0), (768, 10.0), (16, 1e6)])
def test_wavelengths_are_those_of_the_formula(open_sinusoids, d_model, base):
    figure = open_sinusoids()
    figure.choose(d_model, base)
    waves = 2 * math.pi * base ** (2 * torch.arange(d_model // 2, dtype=torch.float64) / d_model)
    chart = Chart(figure.chart("Wavelength"), (-0.5, d_model / 2 - 0.5), (1, 1e7), log=True)
    _, y = chart.points(".pe-curve")
    # A hundredth of a pixel, of about 84 for seven decades.
    assert (y / waves).log10().abs().max() < 0.002
    note = figure.chart("Wavelength").locator(".pe-note").inner_text().replace("\u202f", "")
    shortest, longest, within, pairs, rows = numbers(note)
    assert [shortest, longest] == pytest.approx([float(waves[0]), float(waves[-1])], abs=0.5)
    assert [within, pairs, rows] == [int((waves <= 128).sum()), d_model // 2, 128]


@pytest.mark.parametrize(("d_model", "base"), [(64, 10000.0), (768, 10000.0), (768, 1000.0), (4, 10.0)])
def test_the_end_of_monotony_is_marked(open_sinusoids, width, d_model, base):
    figure = open_sinusoids(width)
    figure.choose(d_model, base)
    rows = table(2048, d_model, base)
    products = rows @ rows[0]
    rise = int(products.diff().gt(0).nonzero()[0, 0]) + 1
    chart = figure.chart("times")
    expect(chart.locator(".pe-note")).to_have_text(
        f"Falls up to offset {rise - 1}, and rises for the first time from {rise - 1} to {rise}."
    )
    expect(figure.status).to_contain_text(f"first rises from offset {rise - 1} to {rise}.")
    expect(chart.locator(".pe-tick").last).to_have_text(f"falls to {rise - 1}")
    left, right, *_ = Chart(chart, None, None).box()
    place = float(chart.locator(".pe-end").get_attribute("cx"))
    assert (place - left) / (right - left) * N_OFFSETS == pytest.approx(rise - 1, abs=0.01)


def test_the_picture_is_the_table(open_sinusoids):
    """Each pixel of it: blue below zero, orange above, as clear as the number is small."""
    figure = open_sinusoids()
    drawn = pixels(figure.chart("The table").locator("image").first)
    wanted = table(128, 64, 10000.0)
    red, _, blue, alpha = (torch.tensor(drawn, dtype=torch.float64).view(128, 64, 4)).unbind(-1)
    assert (alpha / 255 - wanted.abs()).abs().max() <= 0.5 / 255 + 1e-9
    seen = wanted.abs() > 0.1
    assert ((red > blue) == (wanted > 0))[seen].all()


def test_the_picture_changes_with_width_and_base(open_sinusoids):
    figure = open_sinusoids()
    picture = lambda: figure.chart("The table").locator("image").first.get_attribute("href")
    pictures = [picture()]
    for name in ("width", "base"):
        figure.slider(name).press("ArrowRight")
        pictures.append(picture())
    figure.slider("position").press("ArrowRight")
    assert picture() == pictures[-1]
    assert len(set(pictures)) == 3
    expect(figure.status).to_contain_text("Row 21")
    expect(figure.slider("width")).to_have_attribute("aria-valuetext", "128")
    expect(figure.slider("base")).to_have_attribute("aria-valuetext", "100\u202f000")


def test_the_mouse_moves_sliders_and_picks_rows(open_sinusoids, width):
    figure = open_sinusoids(width)
    x, y = middle(figure.slider("position"))
    figure.page.mouse.move(x, y)
    figure.page.mouse.down()
    halfway = figure.titles()[1]
    figure.page.mouse.move(x + figure.slider("position").bounding_box()["width"] / 2 + 20, y, steps=5)
    figure.page.mouse.up()
    assert 50 < int(halfway.removeprefix("Row ")) < 78
    assert figure.titles()[1] == "Row 127"
    picture = figure.chart("The table").locator(".pe-target")
    height = picture.bounding_box()["height"]
    for share in (0.1, 0.5, 0.9):
        picture.click(position={"x": 30, "y": share * height})
        row = int(figure.slider("position").input_value())
        # A row is hardly more than a pixel.
        assert abs(row - share * 128) <= 1.5
        assert figure.titles()[1] == f"Row {row}"


def test_a_finger_moves_a_slider(open_sinusoids):
    figure = open_sinusoids(390, has_touch=True, is_mobile=True)
    start = 8 + (figure.slider("position").bounding_box()["width"] - 16) * 20 / 127
    figure.swipe("position", [start + part * 10 for part in range(13)])
    assert int(figure.titles()[1].removeprefix("Row ")) > 60
    figure.slider("width").tap(position={"x": 2, "y": 10})
    expect(figure.status).to_contain_text("Width 4, base 10\u202f000")


def test_the_sliders_stay_in_sight_on_a_phone(open_sinusoids):
    figure = open_sinusoids(390)
    assert_in_sight(figure.chart("Wavelength"), map(figure.slider, ("width", "base", "position")))


def test_drawings_say_what_they_show(open_sinusoids):
    figure = open_sinusoids()
    figure.slider("position").press("ArrowRight")
    names = [node.get_attribute("aria-label") for node in figure.root.get_by_role("img").all()]
    titles, notes = figure.titles(), figure.root.locator(".pe-note").all_inner_texts()
    assert names == [f"{title}. {note}" for title, note in zip(titles, notes, strict=True)]
    assert "21" in names[0]


# Figure 4.


def test_an_offset_turns_a_row_into_the_row_further_on(open_rotation, width):
    figure = open_rotation(width)
    for position, offset in [(3, 5), (0, 24), (40, 1), (17, 0)]:
        figure.slide(position_p=position, offset_k=offset)
        wanted = table(position + offset + 1, 8, 100.0)
        for pair, rows in enumerate(figure.rows()):
            columns = slice(2 * pair, 2 * pair + 2)
            assert rows[f"row {position}"] == pytest.approx(wanted[position, columns].tolist(), abs=0.005 + 1e-9)
            assert rows["turned"] == pytest.approx(wanted[position + offset, columns].tolist(), abs=0.005 + 1e-9)
            assert rows["turned"] == rows[f"row {position + offset}"]
        assert figure.product() == pytest.approx(float(wanted[position] @ wanted[position + offset]), abs=5e-4 + 1e-9)


def test_hands_stand_at_their_angles(open_rotation, width):
    figure = open_rotation(width)
    figure.slide(position_p=11, offset_k=7)
    rings = [tuple(map(float, (ring.get_attribute("cx"), ring.get_attribute("cy")))) for ring in rings_of(figure)]
    for pair, ((start, end), ring) in enumerate(zip(figure.hands(), rings, strict=True)):
        speed = 100 ** (-2 * pair / 8)
        assert distance(math.atan2(*start[::-1]), speed * 11) < 1e-9
        assert distance(math.atan2(*end[::-1]), speed * 18) < 1e-9
        middle = figure.faces()[pair].locator(".pe-clock")
        cx, cy = (float(middle.get_attribute(name)) for name in ("cx", "cy"))
        assert (ring[0] - cx, cy - ring[1]) == pytest.approx(end, abs=1e-9)


def rings_of(figure):
    return figure.root.locator(".pe-face .pe-end").all()


def distance(a, b):
    """How far two angles are apart."""
    return abs((a - b + math.pi) % (2 * math.pi) - math.pi)


def test_the_turn_does_not_depend_on_the_position(open_rotation):
    figure = open_rotation()
    turns = lambda: [math.atan2(*end[::-1]) - math.atan2(*start[::-1]) for start, end in figure.hands()]
    first, product = turns(), figure.product()
    figure.slider("position p").press("ArrowRight")
    expect(figure.status).to_contain_text("row 4 becomes row 9")
    assert max(map(distance, turns(), first)) < 1e-9
    assert figure.product() == product
    figure.slider("offset k").press("ArrowRight")
    expect(figure.status).to_contain_text("row 4 becomes row 10")
    assert min(map(distance, turns(), first)) > 0.01
    assert figure.product() != product


def product_of_rope(figure, m, n):
    rope = RoPE(8, base=100.0, layout="interleaved")
    query, key = (torch.tensor([vector], dtype=torch.float64) for vector in (figure.query, figure.key))
    turned = rope.rotate(query, torch.tensor([m])), rope.rotate(key, torch.tensor([n]))
    return (*(each[0] for each in turned), float(turned[0] @ turned[1].T))


@pytest.mark.parametrize("kind", [Rotation, RotationOfRelativePositions])
def test_rope_is_that_of_the_package(opened, width, kind):
    figure, state = opened(kind, width), RotationFigure()
    figure.view("rope")
    for m, n, shift in [(9, 3, 0), (9, 3, 100), (0, 32, 5), (32, 0, 1)]:
        figure.slide(query_at=m, key_at=n, shift_both=shift)
        query, key, product = product_of_rope(state, m + shift, n + shift)
        for pair, rows in enumerate(figure.rows()):
            columns = slice(2 * pair, 2 * pair + 2)
            assert rows["query"] == pytest.approx(query[columns].tolist(), abs=0.005 + 1e-9)
            assert rows["key"] == pytest.approx(key[columns].tolist(), abs=0.005 + 1e-9)
            assert rows["product"] == pytest.approx([float(query[columns] @ key[columns])], abs=0.005 + 1e-9)
        assert figure.title().startswith(f"Query at {m + shift} times key at {n + shift}: ")
        assert figure.product() == pytest.approx(product, abs=5e-4 + 1e-9)


@pytest.mark.parametrize("kind", [Rotation, RotationOfRelativePositions])
def test_the_product_stays_when_both_shift(opened, width, kind):
    figure = opened(kind, width)
    figure.view("rope")
    figure.slide(query_at=9, key_at=3, shift_both=0)
    product, hands = figure.product(), figure.hands()
    mark = mark_of(figure)
    figure.slider("shift both").focus()
    for shift in (1, 2, 3):
        figure.page.keyboard.press("ArrowRight")
        assert (figure.product(), mark_of(figure)) == (product, mark)
        expect(figure.status).to_have_text(
            re.compile(rf"^Both moved, to {9 + shift} and {3 + shift}: the product is still")
        )
        assert figure.hands() != hands
    for name, message in (("query at", "The query moved to 13"), ("key at", "The key moved to 7")):
        before = figure.product()
        figure.slider(name).press("ArrowRight")
        assert figure.product() != before
        expect(figure.status).to_have_text(re.compile(rf"^{message}: the product went from .* to .*\.$"))


def mark_of(figure):
    mark = figure.root.locator(".pe-chart .pe-end")
    return [mark.get_attribute(name) for name in ("cx", "cy")]


def test_the_curve_is_the_product_at_each_offset(open_rotation):
    figure, state = open_rotation(), RotationFigure()
    figure.view("rope")
    wanted = torch.tensor([product_of_rope(state, max(k, 0), max(-k, 0))[2] for k in range(-32, 33)])
    lowest = numbers(figure.root.locator(".pe-chart .pe-tick").first.text_content())[0]
    chart = Chart(figure.root.locator(".pe-chart"), (-32, 32), (lowest, -lowest))
    x, y = chart.points(".pe-curve")
    assert (y[::4] - wanted).abs().max() <= chart.precision()
    assert (x[::4] - torch.arange(-32, 33)).abs().max() < 0.01
    figure.slide(query_at=4, key_at=20, shift_both=33)
    left, right, top, bottom = chart.box()
    across, down = map(float, mark_of(figure))
    assert (across - left) / (right - left) * 64 - 32 == pytest.approx(-16, abs=0.01)
    assert lowest * (2 * (down - top) / (bottom - top) - 1) == pytest.approx(float(wanted[16]), abs=0.01)


def test_each_view_has_its_sliders(open_rotation):
    figure = open_rotation()
    visible = lambda: [name for name in figure.sliders if figure.slider(name).is_visible()]
    assert visible() == ["position p", "offset k"]
    choice = figure.choice("view")
    choice.focus()
    figure.page.keyboard.press("ArrowDown")
    assert visible() == ["query at", "key at", "shift both"]
    expect(figure.status).to_contain_text("Query at 9 times key at 3: the product is")
    assert_tab_leads_to(figure, map(figure.slider, visible()))
    choice.focus()
    figure.page.keyboard.press("ArrowUp")
    assert visible() == ["position p", "offset k"]


def test_the_mouse_and_a_finger_shift_both(open_rotation):
    figure = open_rotation()
    figure.view("rope")
    product = figure.product()
    figure.page.mouse.click(*middle(figure.slider("shift both")))
    assert 40 < int(figure.slider("shift both").input_value()) < 60
    assert figure.product() == product
    phone = open_rotation(390, has_touch=True, is_mobile=True)
    phone.view("rope")
    phone.swipe("shift both", [8 + part * 10 for part in range(10)])
    assert int(phone.slider("shift both").input_value()) > 20
    assert phone.product() == product


# Both.

BOTH = [Sinusoids, Rotation]


def fully_used(figure):
    """Bring a figure into the last of its states, which has the most in it."""
    for _ in figure.states():
        pass
    wait_until_still(figure.page)


@pytest.mark.parametrize("kind", BOTH)
def test_nothing_is_clipped(opened, width, kind):
    assert_nothing_is_clipped(opened(kind, width))


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_accessible_after_use(opened, width, kind, colours):
    figure = opened(kind, width, color_scheme=colours)
    fully_used(figure)
    assert_accessible(figure)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_drawings_can_be_read(opened, kind, colours):
    figure = opened(kind, 390, color_scheme=colours)
    paper = paper_in(figure, colours)
    assert_texts_are_large_enough(figure)
    assert_texts_of_drawings_stand_out(figure, paper)
    lines = figure.root.locator(".pe-curve, .pe-hand:not(.pe-faint) path, .pe-end")
    assert min(contrast(stroke, paper) for stroke in styles(lines, "stroke")) >= VISIBLE


@pytest.mark.parametrize("width", [390, 430, 520, 1280])
@pytest.mark.parametrize("kind", BOTH)
def test_the_figure_keeps_its_height(opened, width, kind):
    assert_keeps_its_height(opened(kind, width))


@pytest.mark.parametrize("kind", BOTH)
def test_drawings_follow_the_width_of_the_window(opened, kind):
    assert_drawings_follow_the_window(opened(kind))


@pytest.mark.parametrize("kind", BOTH)
def test_every_control_shows_its_focus(opened, kind):
    figure = opened(kind)
    for control in figure.root.locator("input, select").all():
        if control.is_visible():
            control.focus()
            figure.page.keyboard.press("Shift+Tab")
            assert_tab_leads_to(figure, [control])


@pytest.mark.parametrize("kind", BOTH)
def test_nothing_moves_by_itself(opened, kind):
    figure = opened(kind, reduced_motion="reduce")
    fully_used(figure)
    moving = "(node) => node.getAnimations({ subtree: true }).length"
    assert figure.root.evaluate(moving) == 0


def test_keys_in_a_control_stay_there(open_rotation):
    """JupyterLab has commands on single letters, which pick in a select too."""
    figure = open_rotation()
    figure.page.evaluate("() => { window.heard = []; document.addEventListener('keydown', (e) => heard.push(e.key)); }")
    figure.slider("position p").press("Home")
    figure.choice("view").press("r")
    assert figure.page.evaluate("() => heard") == []


def test_figures_of_one_page_do_not_move_each_other(open_sinusoids, opened):
    sinusoids = open_sinusoids()
    rotation = Rotation(sinusoids.page)
    before = rotation.root.inner_html()
    fully_used(sinusoids)
    assert rotation.root.inner_html() == before
    titles = sinusoids.titles()
    fully_used(rotation)
    assert sinusoids.titles() == titles


@pytest.mark.parametrize("kind", BOTH)
def test_paper_has_no_controls_and_all_numbers(opened, kind):
    figure = opened(kind, color_scheme="dark")
    with printed(figure.page):
        assert not figure.root.locator("input, select").first.is_visible()
        assert all(node.is_visible() for node in figure.root.get_by_role("img").all())
        _, paper = ink_and_paper(figure.root)
        assert luminance(paper) == 1
        assert contrast(styles(figure.root.locator(".pe-tick"), "fill")[0], paper) >= READABLE
