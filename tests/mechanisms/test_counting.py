"""The layer that counts."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posembed.mechanisms import CountingTransformer

EPSILON = torch.finfo(torch.float64).eps


def texts(length, n=1, vocab_size=2, seed=0):
    """Random words behind the first."""
    ids = torch.randint(1, vocab_size, (n, length), generator=torch.Generator().manual_seed(seed))
    ids[:, 0] = 0
    return ids


def in_fractions(model, share):
    """The feed-forward network at one share, from its weights, without any rounding."""
    first, last = model.feed_forward[0], model.feed_forward[2]
    whole = lambda tensor: [Fraction(value) for value in tensor.tolist()]
    hidden = [
        max(weight * share + bias, Fraction(0))
        for weight, bias in zip(whole(first.weight[:, 1]), whole(first.bias), strict=True)
    ]
    return sum(weight * unit for weight, unit in zip(whole(last.weight[2]), hidden, strict=True)) + Fraction(
        last.bias[2].item()
    )


@given(st.integers(2, 60), st.integers(1, 100))
def test_the_weights_count_exactly_and_stop_at_the_last(n_positions, t):
    """By arithmetic, whatever float64 rounds."""
    model = CountingTransformer(n_positions)
    assert in_fractions(model, Fraction(1, t)) == min(t, n_positions)


@pytest.mark.parametrize("n_positions", [2, 3, 10, 64, 1024])
def test_the_module_counts_within_the_rounding_of_its_sums(n_positions):
    """The T terms of the sum are as large as T^2 together."""
    count = CountingTransformer(n_positions)(texts(n_positions))[0]
    wanted = torch.arange(1, n_positions + 1)
    assert count.dtype == torch.float64
    assert (count - wanted).abs().max() <= n_positions**2 * EPSILON
    assert torch.equal(count.round().long(), wanted)


@given(st.integers(0, 100))
def test_which_words_follow_changes_nothing(seed):
    model = CountingTransformer(12, vocab_size=7)
    ids = texts(12, n=3, vocab_size=7, seed=seed)
    torch.testing.assert_close(model(ids), torch.arange(1.0, 13).double().expand(3, -1), rtol=0, atol=1e-12)


def test_the_steps_are_what_the_docstring_says():
    n = 9
    model, ids = CountingTransformer(n), texts(n, n=2)
    steps, t = model.steps(ids), torch.arange(1, n + 1, dtype=torch.float64)
    even = torch.ones(n, n, dtype=torch.float64).tril() / t[:, None]
    units = (torch.arange(2, n + 1) / t[:, None] - 1).clamp(min=0)
    for found, wanted in ((steps.attention, even), (steps.share, 1 / t), (steps.hidden, units), (steps.count, t)):
        torch.testing.assert_close(found, wanted.expand_as(found), rtol=0, atol=1e-12)
    assert torch.equal(steps.count, model(ids))
