"""Figure 10, counting, driven by mouse, touch and keyboard, and its numbers against the package's layer."""

import functools
import re

import pytest
import torch
from playwright.sync_api import expect

from posembed.mechanisms import CountingTransformer
from posembed.widgets import CountingFigure
from posembed.widgets.counting import N_TOKENS, VOCABULARY, WORDS

from .checks import (
    assert_accessible,
    assert_announces,
    assert_drawings_follow_the_window,
    assert_in_sight,
    assert_keeps_its_height,
    assert_nothing_is_clipped,
    assert_tab_leads_to,
    assert_texts_are_large_enough,
    assert_texts_of_drawings_stand_out,
    paper_in,
)
from .chromium import printed, serve_folder, styles, wait_until_still
from .colours import LIGHT_AND_DARK, VISIBLE, contrast, ink_and_paper, luminance
from .figures import Figure, numbers, write_alone

PLACES = range(1, N_TOKENS + 1)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of a folder with a page that holds the figure alone."""
    folder = tmp_path_factory.mktemp("counting")
    write_alone(Counting, CountingFigure(), folder)
    with serve_folder(folder) as address:
        yield address


class Counting(Figure):
    chapter = "counting.html"
    label = "Count the tokens with a causal mask"
    lines = ".pe-count-row > *"
    overlap = 2

    def reset(self):
        super().reset()
        self.page.mouse.move(1, 1)
        self.switch("causal mask")
        self.choose(token=4, n_positions=N_TOKENS)

    def choose(self, token=None, n_positions=None):
        if token is not None:
            self.slider("token").fill(str(token - 1))
        if n_positions is not None:
            self.slider("network counts up to").fill(str(n_positions - 2))

    def token(self):
        """The place that is chosen, wherever it is shown."""
        (chosen,) = [k for k, chip in enumerate(self.chips(), 1) if chip.get_attribute("aria-checked") == "true"]
        marked = self.root.locator(".pe-count-places .pe-count-chosen").inner_text()
        assert self.slider("token").get_attribute("aria-valuetext") == marked == str(chosen)
        return chosen

    def chips(self):
        return self.root.get_by_role("radio").all()

    def chip(self, place):
        return self.root.get_by_role("radio").nth(place - 1)

    def words(self):
        return [text.split()[0] for text in self.root.get_by_role("radio").all_inner_texts()]

    def results(self):
        return self.root.locator(".pe-count-results > *").all_inner_texts()

    def wrong(self):
        """The places whose number is crossed."""
        crosses = "(nodes) => nodes.map((node) => getComputedStyle(node, '::after').content)"
        found = self.root.locator(".pe-count-results > *").evaluate_all(crosses)
        return [place for place, content in enumerate(found, 1) if "✗" in content]

    def attention(self):
        return self.root.locator(".pe-count-attention").inner_text()

    def sum(self):
        return self.root.locator(".pe-note").last.inner_text()

    def shares(self):
        """The parts of the strip, as shares of its length."""
        widths = self.picture.locator("rect").evaluate_all("(nodes) => nodes.map((node) => node.getBBox().width)")
        return [width / sum(widths) for width in widths]

    @property
    def picture(self):
        return self.root.locator(".pe-drawing")

    def place(self, locator):
        """What a point of the chart stands for, by the ends of its axes."""
        left, top, bottom, end = numbers(self.picture.locator(".pe-axis").get_attribute("d"))
        x, y = (float(locator.get_attribute(name)) for name in ("cx", "cy"))
        return (x - left) / (end - left), (bottom - y) / (bottom - top) * N_TOKENS

    def dots(self, look):
        return [self.place(dot) for dot in self.picture.locator(look).all()]

    def states(self):
        for n_positions in (2, 3, 8, N_TOKENS):
            for token in (1, 2, 5, 10, N_TOKENS):
                self.choose(token=token, n_positions=n_positions)
                yield
        self.press("Shuffle the words")
        wait_until_still(self.page)
        yield
        self.switch("causal mask")
        for token in (1, 7, N_TOKENS):
            self.choose(token=token)
            yield


def counted(words, n_positions, causal=True):
    """What the package's layer says of each token: the share that arrives, and what comes out."""
    model = CountingTransformer(n_positions, vocab_size=len(VOCABULARY))
    model.attention.causal = causal
    steps = model.steps(torch.tensor([[VOCABULARY.index(word) for word in words]]))
    return steps.share[0].tolist(), [round(count) for count in steps.count[0].tolist()]


@pytest.fixture
def open_counting(opened):
    return functools.partial(opened, Counting)


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
@pytest.mark.parametrize("n_positions", [2, 7, N_TOKENS])
def test_each_token_has_the_package_s_numbers(open_counting, width, n_positions, causal):
    figure = open_counting(width)
    if not causal:
        figure.switch("causal mask")
    figure.choose(n_positions=n_positions)
    shares, counts = counted(figure.words(), n_positions, causal)
    assert list(map(int, figure.results())) == counts
    assert figure.wrong() == [place for place in PLACES if counts[place - 1] != place]
    for token in PLACES:
        figure.choose(token=token)
        assert figure.token() == token
        seen = token if causal else N_TOKENS
        assert figure.shares() == pytest.approx([1 / seen] * seen)
        assert figure.shares()[0] == pytest.approx(shares[token - 1])
        assert figure.place(figure.picture.locator(".pe-count-point")) == pytest.approx(
            (shares[token - 1], counts[token - 1]), abs=1e-6
        )
        assert figure.sum().endswith(f" = {counts[token - 1]}.")


def test_dots_are_where_the_tokens_should_be(open_counting, width):
    figure = open_counting(width)
    figure.choose(token=10, n_positions=8)
    met = [(1 / place, place) for place in range(1, 9)]
    missed = [(1 / place, place) for place in range(9, N_TOKENS + 1)]
    for look, wanted in ((".pe-bullet", met), (".pe-count-missed", missed)):
        assert [pytest.approx(dot, abs=1e-6) for dot in figure.dots(look)] == wanted
    assert figure.picture.locator(".pe-count-gap").count() == 1
    figure.choose(token=8)
    assert figure.picture.locator(".pe-count-gap").count() == 0
    # Without the mask all of them stand above one share, where no line goes through more than one.
    figure.choose(n_positions=N_TOKENS)
    figure.switch("causal mask")
    dots = [*figure.dots(".pe-count-missed"), *figure.dots(".pe-bullet")]
    assert [pytest.approx(dot, abs=1e-6) for dot in dots] == [(1 / N_TOKENS, place) for place in PLACES]


def test_buttons_step_up_to_the_ends(open_counting, width):
    figure = open_counting(width)
    for name, end, step in (("next token", N_TOKENS, 1), ("previous token", 1, -1)):
        while (before := figure.token()) != end:
            figure.press(name)
            assert figure.token() == before + step
            expect(figure.status).to_have_text(
                re.compile(rf"^Token {before + step}: .* {before + step} comes out, its position\.$")
            )
        figure.press(name)
        assert figure.token() == end


def test_arrow_keys_step_on_the_slider_and_on_the_tokens(open_counting, width):
    figure = open_counting(width)
    scrolled = figure.page.evaluate("scrollY")
    for start in (figure.slider("token"), figure.chip(4)):
        figure.choose(token=4)
        start.focus()
        for key, token in [("ArrowRight", 5), ("ArrowUp", None), ("ArrowLeft", None), ("ArrowDown", None)]:
            before = figure.token()
            figure.page.keyboard.press(key)
            assert abs(figure.token() - before) == 1
            assert token in (None, figure.token())
    expect(figure.chip(figure.token())).to_be_focused()
    for _ in PLACES:
        figure.page.keyboard.press("ArrowRight")
    assert figure.token() == N_TOKENS
    expect(figure.chip(N_TOKENS)).to_be_focused()
    assert figure.page.evaluate("scrollY") == scrolled


def test_a_click_and_a_tap_choose_a_token(open_counting, width):
    figure = open_counting(width)
    for place in (1, 7, N_TOKENS):
        figure.chip(place).click()
        assert figure.token() == place
    phone = open_counting(390, has_touch=True, is_mobile=True)
    phone.chip(6).tap()
    expect(phone.status).to_contain_text("Token 6:")
    assert phone.token() == 6
    width = phone.slider("token").bounding_box()["width"]
    phone.swipe("token", [width * part / 10 for part in range(5, 10)])
    assert phone.token() >= 9


def test_shuffling_moves_words_and_no_number(open_counting, width):
    figure = open_counting(width)
    figure.choose(token=6, n_positions=8)
    results, shares, total = figure.results(), figure.shares(), figure.sum()
    orders = {tuple(figure.words())}
    for _ in range(4):
        figure.press("Shuffle the words")
        words = figure.words()
        assert words[0] == WORDS[0]
        assert sorted(words) == sorted(WORDS)
        assert (figure.results(), figure.shares(), figure.sum(), figure.token()) == (results, shares, total, 6)
        assert counted(words, 8)[1] == list(map(int, results))
        assert f"“{words[5]}”" in figure.attention()
        expect(figure.status).to_have_text(f"The words moved, the counts did not: {', '.join(results)}.")
        orders.add(tuple(words))
    assert len(orders) == 5
    expect(figure.chip(6)).to_have_accessible_name(f"{figure.words()[5]}, token 6 of {N_TOKENS}, seen")


def test_without_the_mask_there_is_nothing_to_count_with(open_counting, width):
    figure = open_counting(width)
    figure.switch("causal mask")
    expect(figure.root.get_by_role("switch", name="causal mask")).not_to_be_checked()
    assert len(set(figure.results())) == 1
    said = set()
    for token in PLACES:
        figure.choose(token=token)
        said.add(figure.status.inner_text().removeprefix(f"Token {token}"))
    assert said == {f": 1/{N_TOKENS} arrives and {N_TOKENS} comes out, as at every token. Nothing tells them apart."}
    figure.switch("causal mask")
    assert figure.results() == [str(place) for place in PLACES]


def test_past_the_network_s_last_position_it_says_the_last(open_counting, width):
    figure = open_counting(width)
    figure.choose(token=10)
    figure.slider("network counts up to").focus()
    figure.page.keyboard.press("ArrowLeft")
    expect(figure.status).to_have_text("Token 10: 1/10 arrives and 10 comes out, its position.")
    figure.page.keyboard.press("ArrowLeft")
    expect(figure.status).to_have_text("Token 10: 1/10 arrives. Up to 1/9 all units are at zero: 9 comes out, not 10.")
    assert figure.wrong() == [10, 11]


def test_what_is_not_seen_is_told_apart_without_colour(open_counting):
    figure = open_counting()
    assert styles(figure.root.get_by_role("radio"), "borderStyle") == ["solid"] * 4 + ["dashed"] * (N_TOKENS - 4)
    expect(figure.chip(4)).to_have_accessible_name(f"{figure.words()[3]}, token 4 of {N_TOKENS}, seen")
    expect(figure.chip(5)).to_have_accessible_name(f"{figure.words()[4]}, token 5 of {N_TOKENS}")


def test_changes_are_announced(open_counting):
    figure = open_counting()
    changes = [
        lambda: figure.press("next token"),
        lambda: figure.press("Shuffle the words"),
        lambda: figure.choose(n_positions=3),
        lambda: figure.switch("causal mask"),
    ]
    assert_announces(figure, changes)


def test_drawings_say_what_they_show(open_counting):
    figure = open_counting()
    expect(figure.picture).to_have_accessible_name(f"{figure.attention()} {figure.sum()}")
    expect(figure.root.locator(".pe-count-results")).to_have_accessible_name(f"In order: {', '.join(map(str, PLACES))}")


def test_tab_reaches_every_control_and_shows_where_it_is(open_counting):
    figure = open_counting()
    figure.slider("token").focus()
    controls = [
        *(figure.button("previous token"), figure.button("next token"), figure.root.get_by_role("switch")),
        *(figure.button("Shuffle the words"), figure.slider("network counts up to"), figure.chip(4)),
    ]
    assert_tab_leads_to(figure, controls)
    figure.page.keyboard.press("Tab")
    assert figure.root.locator(":focus").count() == 0


@pytest.mark.parametrize(("choice", "moving"), [("reduce", False), ("no-preference", True)])
def test_reduced_motion_is_honoured(open_counting, choice, moving):
    figure = open_counting(reduced_motion=choice)
    running = figure.button("Shuffle the words").evaluate(
        """(button) => {
          button.click();
          return document.getAnimations().some((animation) => animation.effect.target.closest(".pe-figure"));
        }"""
    )
    assert running == moving


def test_the_token_slider_stays_in_sight_on_a_phone(open_counting):
    figure = open_counting(390)
    assert_in_sight(figure.status, [figure.slider("token")])


@pytest.mark.parametrize("size", [320, 390, 1280])
def test_nothing_is_clipped(open_counting, size):
    assert_nothing_is_clipped(open_counting(size))


@pytest.mark.parametrize("size", [320, 390, 430, 520, 1280])
def test_the_figure_keeps_its_height(open_counting, size):
    assert_keeps_its_height(open_counting(size))


def test_drawings_follow_the_width_of_the_window(open_counting):
    assert_drawings_follow_the_window(open_counting())


@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_accessible_after_use(open_counting, width, colours):
    figure = open_counting(width, color_scheme=colours)
    assert_accessible(figure)
    figure.choose(token=10, n_positions=8)
    figure.switch("causal mask")
    assert_accessible(figure)


@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_drawings_can_be_read(open_counting, width, colours):
    figure = open_counting(width, color_scheme=colours)
    figure.choose(token=10, n_positions=8)
    paper = paper_in(figure, colours)
    assert_texts_are_large_enough(figure)
    assert_texts_of_drawings_stand_out(figure, paper)
    lines = ".pe-curve, .pe-count-way, .pe-count-gap, .pe-count-missed, .pe-count-point, rect"
    assert min(contrast(stroke, paper) for stroke in styles(figure.picture.locator(lines), "stroke")) >= VISIBLE


def test_paper_has_no_controls_and_all_numbers(open_counting):
    figure = open_counting(color_scheme="dark")
    with printed(figure.page):
        assert not figure.root.locator("input").first.is_visible()
        assert all(node.is_visible() for node in [figure.picture, *figure.chips(), figure.status])
        assert luminance(ink_and_paper(figure.root)[1]) == 1


def test_readable_without_javascript(open_address, site):
    page = open_address(f"{site}/{Counting.chapter}", java_script_enabled=False)
    rows = page.locator(".posembed-root tbody tr").all_inner_texts()
    assert [row.split()[:3] for row in rows] == [[str(place), WORDS[place - 1], str(place)] for place in PLACES]
    assert "needs JavaScript" in page.locator("caption").inner_text()


def test_opens_from_a_file(open_address, tmp_path):
    figure = Counting(open_address(write_alone(Counting, CountingFigure(), tmp_path).as_uri()))
    figure.press("next token")
    expect(figure.status).to_have_text("Token 5: 1/5 arrives and 5 comes out, its position.")
