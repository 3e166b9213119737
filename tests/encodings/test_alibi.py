"""ALiBi: the slopes of any number of heads, and the bias that falls with the distance."""

import math

import peers
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_schemes import vectors

from posembed.encodings import ALiBi, alibi_slopes
from posembed.errors import EncodingInputError


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


def test_the_slopes_that_the_paper_prints():
    assert alibi_slopes(8).tolist() == [2.0**-i for i in range(1, 9)]
    # For 16 heads it takes the geometric means between them.
    assert alibi_slopes(16).tolist() == pytest.approx([2.0 ** (-i / 2) for i in range(1, 17)], rel=1e-15)
    # For 12: those of 8, and every second one of 16.
    in_between = [2.0**-0.5, 2.0**-1.5, 2.0**-2.5, 2.0**-3.5]
    assert alibi_slopes(12).tolist() == pytest.approx([2.0**-i for i in range(1, 9)] + in_between, rel=1e-15)


@pytest.mark.parametrize("power", range(8))
def test_slopes_of_powers_of_two_are_geometric_and_end_at_a_256th(power):
    slopes = alibi_slopes(2**power)
    assert slopes[-1] == 2.0**-8
    torch.testing.assert_close(slopes[1:] / slopes[:-1], slopes[:1].expand(len(slopes) - 1), rtol=1e-15, atol=0)


@pytest.mark.parametrize("n_heads", [*range(1, 34), 40, 71, 112, 128])
def test_the_slopes_are_those_of_other_libraries(n_heads):
    """Theirs are float32, made by repeated products."""
    for theirs in (peers.alibi_slopes_bloom, peers.alibi_slopes_mpt, peers.alibi_slopes_x_transformers):
        slopes = alibi_slopes(n_heads)
        their = theirs(n_heads).double()
        # MPT orders the heads in another way where their number is no power of two: the same slopes.
        if theirs is peers.alibi_slopes_mpt:
            slopes, their = slopes.sort().values, their.sort().values
        torch.testing.assert_close(their, slopes, rtol=n_heads * 2**-23, atol=0)


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


def test_the_bias_is_the_one_of_x_transformers():
    positions, key_positions = torch.arange(5) + 40, torch.arange(50)
    bias = ALiBi(8).bias(vectors(1, 8, 5, 2), vectors(1, 8, 50, 2), positions, key_positions)
    assert torch.equal(bias, peers.alibi_bias_x_transformers(8, positions, key_positions))


def test_the_bias_is_blooms_up_to_what_softmax_takes_away():
    bias = ALiBi(6).bias(vectors(1, 6, 1, 2), vectors(1, 6, 9, 2), torch.tensor([8]), torch.arange(9))
    bloom = peers.alibi_keys_bloom(6, torch.ones(1, 9))[0]
    torch.testing.assert_close(bias.softmax(-1), bloom.softmax(-1), rtol=0, atol=1e-7)


def test_it_stays_float32_in_a_bfloat16_model_where_far_keys_would_fall_together():
    offsets = -torch.arange(2**20, 2**20 + 64)
    bias = ALiBi(8).to(torch.bfloat16).bias_by_offset(offsets)
    assert bias.dtype == torch.float32 and torch.equal(bias, ALiBi(8).bias_by_offset(offsets))
    assert all(len(head.unique()) == 64 for head in bias)


def test_there_is_nothing_to_train():
    assert not list(ALiBi(8).parameters())


@pytest.mark.bad_input
@pytest.mark.parametrize("n_heads", [0, -1, 2.0, "8", None])
@pytest.mark.parametrize("make", [ALiBi, alibi_slopes])
def test_a_named_error_in_one_line(make, n_heads):
    with pytest.raises(EncodingInputError) as error:
        make(n_heads)
    assert str(error.value) == f"n_heads is {n_heads!r}; it must be a whole number of at least 1"
