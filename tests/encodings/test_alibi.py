"""ALiBi: the slopes of any number of heads, and the bias that falls with the distance."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_schemes import vectors

from posembed.encodings import ALiBi, alibi_slopes


def authors_slopes(n_heads):
    """The recursion of the authors' code: a power of two by itself, else the one below and half of the one above."""

    def of_a_power_of_two(n):
        first = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [first * first**i for i in range(n)]

    if math.log2(n_heads).is_integer():
        return of_a_power_of_two(n_heads)
    closest = 2 ** math.floor(math.log2(n_heads))
    return of_a_power_of_two(closest) + authors_slopes(2 * closest)[0::2][: n_heads - closest]


@pytest.mark.parametrize("n_heads", range(1, 131))
def test_the_slopes_are_the_authors(n_heads):
    slopes = alibi_slopes(n_heads)
    assert slopes.dtype == torch.float64
    # They multiply up to 128 times, each time rounding by half a unit of the last place.
    assert slopes.tolist() == pytest.approx(authors_slopes(n_heads), rel=130 * 2**-53, abs=0)


@given(
    n_heads=st.integers(1, 20),
    positions=st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=4),
    key_positions=st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=4),
)
def test_the_bias_is_minus_slope_times_distance(n_heads, positions, key_positions):
    q, k = vectors(1, n_heads, len(positions), 2), vectors(1, n_heads, len(key_positions), 2)
    bias = ALiBi(n_heads).bias(q, k, torch.tensor(positions), torch.tensor(key_positions))
    expected = [[[-m * abs(i - j) for j in key_positions] for i in positions] for m in authors_slopes(n_heads)]
    # A slope in float32, times a whole number that float32 holds, rounded.
    torch.testing.assert_close(bias, torch.tensor(expected), rtol=2.0**-23, atol=0)
    back = ALiBi(n_heads).bias(k, q, torch.tensor(key_positions), torch.tensor(positions))
    assert torch.equal(back, bias.mT)  # the form for bidirectional models is symmetric


def test_the_slopes_that_the_paper_prints():
    assert alibi_slopes(8).tolist() == [2.0**-i for i in range(1, 9)]
    # For 16 heads it takes the geometric means between them.
    assert alibi_slopes(16).tolist() == pytest.approx([2.0 ** (-i / 2) for i in range(1, 17)], rel=1e-15)
    # For 12: those of 8, and every second one of 16.
    in_between = [2.0**-0.5, 2.0**-1.5, 2.0**-2.5, 2.0**-3.5]
    assert alibi_slopes(12).tolist() == pytest.approx([2.0**-i for i in range(1, 9)] + in_between, rel=1e-15)


def test_it_stays_float32_in_a_bfloat16_model_where_far_keys_would_fall_together():
    offsets = -torch.arange(2**20, 2**20 + 64)
    bias = ALiBi(8).to(torch.bfloat16).bias_by_offset(offsets)
    assert bias.dtype == torch.float32 and torch.equal(bias, ALiBi(8).bias_by_offset(offsets))
    assert all(len(head.unique()) == 64 for head in bias)
