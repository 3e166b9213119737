"""Figure 10: its weights are those of the layer that counts, and its JavaScript makes the same of a text."""

import itertools

import pytest
import torch
from widget_checks import rows_of, run_tests

from posembed.mechanisms import CountingTransformer
from posembed.mechanisms.counting import COUNT, SHARE
from posembed.widgets import CountingFigure
from posembed.widgets.counting import N_TOKENS, VOCABULARY, WORDS

IN_ORDER = list(range(N_TOKENS))
BACKWARDS = [0, *reversed(range(1, N_TOKENS))]
TURNED = [0, *range(4, N_TOKENS), 1, 2, 3]


def steps(order, n_positions, causal):
    """What the package's layer makes of the words in an order."""
    model = CountingTransformer(n_positions, vocab_size=len(VOCABULARY))
    model.attention.causal = causal
    return model.steps(torch.tensor([[VOCABULARY.index(WORDS[word]) for word in order]]))


def case(order, n_positions, causal):
    found = steps(order, n_positions, causal)
    numbers = {"shares": found.share, "hidden": found.hidden, "counts": found.count}
    return {"order": order, "n_positions": n_positions, "causal": causal} | {
        name: tensor[0].tolist() for name, tensor in numbers.items()
    }


def curve(n_positions):
    """The network at many shares, also between those that a text can have."""
    shares = torch.linspace(0, 1, 201, dtype=torch.float64)
    states = torch.zeros(len(shares), 3, dtype=torch.float64)
    states[:, SHARE] = shares
    values = CountingTransformer(n_positions).feed_forward(states)[:, COUNT]
    return {"n_positions": n_positions, "shares": shares.tolist(), "values": values.tolist()}


def test_the_module(tmp_path):
    figure = CountingFigure()
    lengths = range(2, N_TOKENS + 1)
    choices = itertools.product((IN_ORDER, BACKWARDS, TURNED), lengths, (True, False))
    fixtures = {
        "state": figure.state(),
        "cases": [case(*choice) for choice in choices],
        "curves": [curve(length) for length in lengths],
    }
    private = "studied, aboutAttention, aboutNetwork, verdict, shown, fraction, right, besides, range"
    run_tests("counting", tmp_path, figure.source(), fixtures, private=private)


def test_what_is_chosen_at_first():
    figure = CountingFigure()
    assert (figure.n_positions, figure.token, figure.causal, figure.order) == (N_TOKENS, 4, True, IN_ORDER)
    # Words come again, the first alone carries the mark, and each is short enough for its place on a phone.
    assert len(set(WORDS)) < len(WORDS)
    assert WORDS.count(WORDS[0]) == 1
    assert max(map(len, WORDS)) <= 3


@pytest.mark.parametrize(("n_positions", "order"), [(2, IN_ORDER), (8, TURNED)])
def test_without_javascript_it_is_a_table_of_the_same_numbers(n_positions, order):
    figure = CountingFigure()
    figure.n_positions, figure.order = n_positions, order
    header, *rows = rows_of(figure)
    assert header == ["place", "word", "sees", "arrives of the mark", "comes out", "comes out without the mask"]
    assert f"counts its tokens, up to {n_positions}." in figure.fallback_html()
    masked, open_to_all = steps(order, n_positions, True), steps(order, n_positions, False)
    for k, row in enumerate(rows):
        assert row[:3] == [str(k + 1), WORDS[order[k]], str(k + 1)]
        assert float(row[3]) == pytest.approx(float(masked.share[0, k]), abs=0.0005 + 1e-9)
        assert row[4:] == [str(min(k + 1, n_positions)), str(n_positions)]
        wanted = [float(each.count[0, k]) for each in (masked, open_to_all)]
        assert [float(cell) for cell in row[4:]] == pytest.approx(wanted)
    assert len(rows) == N_TOKENS
