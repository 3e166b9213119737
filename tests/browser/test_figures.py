"""The figures of the built pages, driven by mouse, touch and keyboard, and their numbers against PyTorch."""

import functools
import math
import re

import pytest
import torch
from playwright.sync_api import expect
from torch import nn

from posembed.widgets import LookupFigure, ShuffleFigure

from .checks import assert_accessible, assert_tab_leads_to
from .chromium import styles, wait_until_still
from .colours import DARK, LIGHT_AND_DARK, ink_and_paper, luminance
from .figures import Figure, touch

SENTENCE = "I do like coding"
WORDS = SENTENCE.split()
# Half of the last decimal that a figure shows, and a little for sums that end on it exactly.
ROUNDING = 0.005 + 1e-6


def word(text):
    return f".pe-word:text-is('{text}')"


class Shuffle(Figure):
    chapter = "why/permutation-equivariance.html"
    label = "Shuffle the words of a sentence"

    def reset(self):
        super().reset()
        self.press("First order")
        wait_until_still(self.page)

    def word(self, text):
        return self.root.locator(word(text))

    def column(self, text):
        return self.root.locator(f".pe-column:has({word(text)})")

    def order(self):
        return self.root.locator(".pe-word").all_inner_texts()

    def cells(self, text):
        """The colours of a word's output."""
        return styles(self.column(text).locator(".pe-cell"), "backgroundColor")

    def all_cells(self):
        return {text: self.cells(text) for text in WORDS}

    def verdicts(self):
        """What stands under each word, and at the mean of all."""
        texts = self.root.locator(".pe-verdict").all_inner_texts()
        return dict(zip([*self.order(), "mean"], texts, strict=True))

    def centre(self, text):
        box = self.word(text).bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def arrange(self, order):
        """Bring the words into an order with the arrow keys."""
        for place, text in enumerate(order):
            for _ in range(self.order().index(text) - place):
                self.word(text).press("ArrowLeft")
        assert self.order() == order


class Lookup(Figure):
    chapter = "why/embedding-lookup.html"
    label = "Look up a row of an embedding table"

    def reset(self):
        super().reset()
        self.press("Start again")
        self.pick("2 cat").click()

    def rows(self):
        return [self.numbers(row) for row in self.root.locator("tbody tr").all()]

    def numbers(self, row):
        return [float(text.replace("−", "-")) for text in row.locator(".pe-number").all_inner_texts()]

    def product(self):
        return self.numbers(self.root.locator("tfoot tr"))

    def pick(self, text):
        return self.button(text)

    def picked(self):
        return self.root.locator(".pe-pick[aria-pressed=true]").all_inner_texts()

    def weights(self):
        return list(map(int, self.root.locator(".pe-weight").all_inner_texts()))

    def marked(self):
        """The ids whose row says that the last step has changed it."""
        marks = self.root.locator("tbody .pe-mark").all_inner_texts()
        return [id for id, mark in enumerate(marks) if "changed" in mark]


@pytest.fixture
def open_shuffle(opened):
    return functools.partial(opened, Shuffle)


@pytest.fixture
def open_lookup(opened):
    return functools.partial(opened, Lookup)


# Figure 1.


def assert_all_moved(figure, order, before):
    """The words stand in this order, and each has the output that it had."""
    assert figure.order() == order
    wait_until_still(figure.page)
    assert figure.all_cells() == before
    assert set(figure.verdicts().values()) == {"unchanged"}
    expect(figure.status).to_contain_text("the outputs moved with the words")


@pytest.mark.parametrize(
    ("dragged", "onto", "expected"),
    [("I", "coding", "do like coding I"), ("coding", "I", "coding I do like"), ("do", "like", "I like do coding")],
)
def test_dragging_moves_the_outputs(open_shuffle, width, dragged, onto, expected):
    figure = open_shuffle(width)
    before = figure.all_cells()
    assert len({tuple(cells) for cells in before.values()}) == len(WORDS)
    (x, y), (to_x, _) = figure.centre(dragged), figure.centre(onto)
    figure.page.mouse.move(x, y)
    figure.page.mouse.down()
    figure.page.mouse.move(to_x, y, steps=12)
    assert "pe-lifted" in figure.column(dragged).get_attribute("class")
    figure.page.mouse.up()
    assert_all_moved(figure, expected.split(), before)
    assert figure.root.locator(".pe-lifted").count() == 0


def test_dragging_back_ends_where_it_began(open_shuffle):
    figure = open_shuffle()
    (x, y), (to_x, _) = figure.centre("I"), figure.centre("coding")
    figure.page.mouse.move(x, y)
    figure.page.mouse.down()
    figure.page.mouse.move(to_x, y, steps=12)
    figure.page.mouse.move(x, y, steps=12)
    figure.page.mouse.up()
    assert figure.order() == WORDS


def drag(figure, dragged, onto):
    """Drag a word with a finger, a little downwards too, as fingers do."""
    (x, y), (to_x, _) = figure.centre(dragged), figure.centre(onto)
    touch(figure.page, [(x + (to_x - x) * part / 12, y + part) for part in range(13)])


def test_touch_drags_and_does_not_scroll(open_shuffle):
    figure = open_shuffle(390, has_touch=True, is_mobile=True)
    before, scrolled = figure.all_cells(), figure.page.evaluate("scrollY")
    drag(figure, "I", "coding")
    assert_all_moved(figure, ["do", "like", "coding", "I"], before)
    assert figure.page.evaluate("scrollY") == scrolled


def test_touch_drags_past_the_word_with_the_focus(open_shuffle):
    """A finger leaves the focus where it is, and so does a mouse in Safari."""
    figure = open_shuffle(390, has_touch=True, is_mobile=True)
    figure.word("I").focus()
    drag(figure, "coding", "I")
    assert figure.order() == ["coding", "I", "do", "like"]


def test_arrow_keys_move_a_word_and_keep_the_focus(open_shuffle, width):
    figure = open_shuffle(width)
    before = figure.all_cells()
    scrolled = figure.page.evaluate("[scrollX, scrollY]")
    figure.word("I").focus()
    for order in ["do I like coding", "do like I coding", "do like coding I", "do like coding I"]:
        figure.page.keyboard.press("ArrowRight")
        assert figure.order() == order.split()
        expect(figure.word("I")).to_be_focused()
    figure.page.keyboard.press("ArrowLeft")
    assert_all_moved(figure, ["do", "like", "I", "coding"], before)
    expect(figure.word("I")).to_have_accessible_name("I, place 3 of 4; the arrow keys move it")
    assert figure.page.evaluate("[scrollX, scrollY]") == scrolled


def test_tab_reaches_every_word_in_the_order_shown(open_shuffle):
    figure = open_shuffle()
    figure.arrange(["coding", "I", "do", "like"])
    figure.root.get_by_role("button", name="First order").focus()
    assert_tab_leads_to(figure, map(figure.word, ["coding", "I", "do", "like"]))


@pytest.mark.parametrize("breaker", ["add positions", "causal mask"])
def test_what_breaks_equivariance_changes_the_outputs(open_shuffle, width, breaker):
    figure = open_shuffle(width)
    figure.switch(breaker)
    expect(figure.root.get_by_role("switch", name=breaker)).to_be_checked()
    before = figure.all_cells()
    assert set(figure.verdicts().values()) == {"unchanged"}
    figure.word("I").press("ArrowRight")
    changed = {text for text, verdict in figure.verdicts().items() if verdict.startswith("changed ")}
    assert {"I", "do"} <= changed
    assert figure.cells("I") != before["I"]
    expect(figure.status).to_have_text(
        re.compile(r"^“do I like coding”: outputs changed by up to [1-9]\d* % of the largest one\.$")
    )
    figure.switch(breaker)
    assert set(figure.verdicts().values()) == {"unchanged"}


def test_shuffle_and_first_order(open_shuffle):
    figure = open_shuffle()
    before = figure.all_cells()
    for _ in range(6):
        earlier = figure.order()
        figure.press("Shuffle")
        assert figure.order() != earlier
        assert sorted(figure.order()) == sorted(WORDS)
    figure.press("First order")
    assert figure.order() == WORDS
    wait_until_still(figure.page)
    assert figure.all_cells() == before
    expect(figure.status).to_have_text(f"“{SENTENCE}”: each word has the output it had in the first order.")


def test_changes_are_announced(open_shuffle):
    figure = open_shuffle()
    expect(figure.status).to_have_attribute("aria-live", "polite")
    first = figure.status.inner_text()
    figure.word("I").press("ArrowRight")
    assert figure.status.inner_text() != first


@pytest.mark.parametrize(("choice", "moving"), [("reduce", False), ("no-preference", True)])
def test_reduced_motion_is_honoured(open_shuffle, choice, moving):
    figure = open_shuffle(reduced_motion=choice)
    running = figure.word("I").evaluate(
        """(word) => {
          word.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
          return document.getAnimations().some((animation) => animation.effect.target.closest(".pe-figure"));
        }"""
    )
    assert figure.order() == ["do", "I", "like", "coding"]
    assert running == moving


@pytest.fixture(scope="module")
def layer(encoder):
    return {name: torch.tensor(table) for name, table in ShuffleFigure(encoder, SENTENCE).layer.items()}


def outputs(layer, order, positions, causal):
    """The layer's outputs for an order of the words: a list of places, or of words with their places."""
    n = len(order)
    rows = torch.tensor([n + word * n + place if positions else word for place, word in enumerate(order)])
    logits = layer["logits"][:, rows][:, :, rows]
    if causal:
        logits = logits.masked_fill(torch.ones(n, n).triu(1).bool(), -math.inf)
    return (logits.softmax(dim=-1) @ layer["values"][:, rows]).sum(dim=0) + layer["bias"]


def expected_verdicts(layer, order, positions, causal):
    places = [WORDS.index(text) for text in order]
    first = outputs(layer, range(len(WORDS)), positions, causal)
    now = outputs(layer, places, positions, causal)
    shares = (now - first[places]).abs().amax(dim=1) / first.abs().max()
    mean = (now.mean(dim=0) - first.mean(dim=0)).abs().max() / first.abs().max()
    return dict(zip([*order, "mean"], map(float, [*shares, mean]), strict=True))


def agrees(verdict, share):
    if verdict == "unchanged":
        return share < ROUNDING
    return abs(int(verdict.removeprefix("changed ").removesuffix(" %")) / 100 - share) <= ROUNDING


@pytest.mark.parametrize("positions", [False, True], ids=["bare", "positions"])
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_shares_are_those_of_the_layer(open_shuffle, layer, positions, causal):
    figure = open_shuffle()
    for on, name in ((positions, "add positions"), (causal, "causal mask")):
        if on:
            figure.switch(name)
    for order in ["coding like do I", "do I like coding", "like coding I do"]:
        figure.arrange(order.split())
        shares = expected_verdicts(layer, order.split(), positions, causal)
        wrong = {text: verdict for text, verdict in figure.verdicts().items() if not agrees(verdict, shares[text])}
        assert wrong == {}, shares
        figure.press("First order")


# Figure 2.


def test_picking_shows_the_product(open_lookup, width):
    figure = open_lookup(width)
    assert figure.picked() == ["2 cat"]
    for id, text in [(5, "5 ran"), (0, "0 [PAD]"), (7, "7 mat")]:
        figure.pick(text).click()
        assert figure.picked() == [text]
        assert figure.weights() == [int(row == id) for row in range(8)]
        assert figure.product() == figure.rows()[id]
        expect(figure.status).to_contain_text(f"the product is row {id} of the table")


def test_arrow_keys_pick(open_lookup, width):
    figure = open_lookup(width)
    figure.pick("2 cat").focus()
    for key, text in [("ArrowDown", "3 dog"), ("ArrowUp", "2 cat"), ("ArrowUp", "1 the"), ("ArrowUp", "0 [PAD]")]:
        figure.page.keyboard.press(key)
        assert figure.picked() == [text]
        expect(figure.pick(text)).to_be_focused()
        assert figure.product() == figure.rows()[int(text[0])]
    figure.page.keyboard.press("ArrowUp")
    assert figure.picked() == ["0 [PAD]"]


def trained(padding, steps):
    """The figure's table after some steps of PyTorch's own optimiser."""
    state = LookupFigure().state()
    layer = nn.Embedding.from_pretrained(
        torch.tensor(state["table"], dtype=torch.float64), freeze=False, padding_idx=0 if padding else None
    )
    optimizer = torch.optim.SGD(layer.parameters(), lr=state["learning_rate"])
    targets = torch.tensor(state["targets"], dtype=torch.float64)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = 0.5 * (layer(torch.tensor(state["batch"])) - targets).pow(2).sum()
        loss.backward()
        optimizer.step()
    return layer.weight.detach()


def assert_shows(figure, table):
    assert (torch.tensor(figure.rows(), dtype=torch.float64) - table).abs().max() <= ROUNDING


@pytest.mark.parametrize("padding", [False, True], ids=["plain", "padding_idx"])
def test_steps_are_those_of_pytorch(open_lookup, width, padding):
    figure = open_lookup(width)
    first = figure.rows()
    assert_shows(figure, trained(padding, 0))
    if padding:
        figure.switch("padding_idx=0")
    used = sorted(set(LookupFigure().batch) - ({0} if padding else set()))
    for steps in (1, 2, 3):
        figure.press("Take a gradient step")
        assert_shows(figure, trained(padding, steps))
        assert figure.marked() == used
        assert figure.product() == figure.rows()[2]
    kept = [id for id in range(8) if figure.rows()[id] == first[id]]
    assert kept == [id for id in range(8) if id not in used]
    expect(figure.status).to_contain_text(f"{len(used)} of 8 rows changed")


def test_start_again_restores_the_table(open_lookup):
    figure = open_lookup()
    first = figure.rows()
    figure.press("Take a gradient step")
    assert figure.rows() != first
    figure.press("Start again")
    assert figure.rows() == first
    assert figure.marked() == []
    expect(figure.status).to_have_text("The table is as it was at the start.")


def test_what_the_step_did_is_announced(open_lookup):
    figure = open_lookup()
    expect(figure.status).to_have_attribute("aria-live", "polite")
    figure.press("Take a gradient step")
    expect(figure.status).to_have_text("One step: 6 of 8 rows changed. No gradient reached dog, ran.")


# Both.


def fully_used(figure):
    """Bring a figure into the state with the most in it."""
    if isinstance(figure, Shuffle):
        figure.switch("add positions")
        figure.word("coding").press("ArrowLeft")
    else:
        figure.press("Take a gradient step")
    wait_until_still(figure.page)


@pytest.mark.parametrize("opener", ["open_shuffle", "open_lookup"])
def test_nothing_is_clipped(request, opener, width):
    figure = request.getfixturevalue(opener)(width)
    fully_used(figure)
    assert figure.too_wide() == []


@pytest.mark.parametrize("opener", ["open_shuffle", "open_lookup"])
@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_accessible_after_use(request, opener, colours):
    figure = request.getfixturevalue(opener)(color_scheme=colours)
    fully_used(figure)
    assert_accessible(figure)


@pytest.mark.parametrize("opener", ["open_shuffle", "open_lookup"])
def test_dark_is_dark(request, opener):
    figure = request.getfixturevalue(opener)(color_scheme="dark")
    ink, paper = ink_and_paper(figure.root)
    assert luminance(paper) < DARK < luminance(ink)
    _, frame = ink_and_paper(figure.root.locator("xpath=.."))
    assert luminance(frame) < DARK, "a bright frame around the dark figure"


def test_the_figure_keeps_its_height(open_shuffle, width):
    """What stands below must not jump while a reader tries things."""
    figure = open_shuffle(width)
    first = figure.height()
    fully_used(figure)
    assert abs(figure.height() - first) < 1
