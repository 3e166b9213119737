"""CoPE against loops over every query and key: gates, counted positions, and the bias between two of them."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_schemes import vectors

from posembed.encodings import CoPE


def made(d_head=4, n_positions=5, dtype=torch.float64):
    cope = CoPE(d_head, n_positions=n_positions).to(dtype)
    cope.weight.data = vectors(n_positions, d_head, seed=7, dtype=dtype)
    return cope


def by_loops(cope, q, k, visible):
    """The paper's formulas, entry by entry; each key head serves as many query heads as there are for it."""
    n_keys, group = k.shape[2], q.shape[1] // k.shape[1]
    counted, bias = (torch.zeros(*q.shape[:3], n_keys, dtype=q.dtype) for _ in range(2))
    for b, h, i, j in itertools.product(*map(range, counted.shape)):
        gates = [
            1 / (1 + math.exp(-(q[b, h, i] @ k[b, h // group, t]).item() / math.sqrt(q.shape[3])))
            for t in range(j, n_keys)
            if visible.expand_as(counted)[b, h, i, t]
        ]
        counted[b, h, i, j] = sum(gates)
        position = min(counted[b, h, i, j].item(), cope.n_positions - 1)
        below, share = math.floor(position), position % 1
        at_below, at_above = (q[b, h, i] @ cope.weight[p] for p in (below, math.ceil(position)))
        bias[b, h, i, j] = (1 - share) * at_below + share * at_above
    return counted, bias


def causal(n_queries, n_keys):
    """The queries are the last of the keys."""
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries)


def bias_of(cope, q, k, visible):
    return cope.bias(q, k, torch.arange(q.shape[2]), torch.arange(k.shape[2]), visible=visible)


@given(
    n_queries=st.integers(1, 4),
    before=st.integers(0, 3),
    kv_heads=st.sampled_from([1, 2, 4]),
    n_positions=st.integers(1, 8),
    scale=st.sampled_from([0.1, 1.0, 5.0]),
)
def test_it_is_the_papers_formulas(n_queries, before, kv_heads, n_positions, scale):
    n_keys = n_queries + before
    q, k = (
        scale * vectors(2, 4, n_queries, 4, dtype=torch.float64),
        vectors(2, kv_heads, n_keys, 4, dtype=torch.float64),
    )
    cope = made(n_positions=n_positions)
    visible = causal(n_queries, n_keys)
    counted, bias = by_loops(cope, q, k, visible)
    torch.testing.assert_close(cope.counted(q, k, visible), counted, rtol=0, atol=1e-12)
    # A position is rounded by a few units of 2**-53, and the bias by as many times the rows' difference.
    torch.testing.assert_close(bias_of(cope, q, k, visible), bias, rtol=0, atol=1e-12 * max(1.0, scale**2))


def test_masked_keys_do_not_count():
    q, k, cope = vectors(2, 2, 5, 4, dtype=torch.float64), vectors(2, 1, 5, 4, dtype=torch.float64), made()
    visible = causal(5, 5) & torch.tensor([[1, 0, 1, 1, 0], [1, 1, 1, 0, 1]], dtype=torch.bool)[:, None, None]
    expected = by_loops(cope, q, k, visible)
    torch.testing.assert_close(cope.counted(q, k, visible), expected[0], rtol=0, atol=1e-12)
    torch.testing.assert_close(bias_of(cope, q, k, visible), expected[1], rtol=0, atol=1e-12)
    # The numbers of a key that nobody sees do not matter.
    other = k.clone()
    other[0, :, 1], other[1, :, 3] = 100.0, -100.0
    assert torch.equal(bias_of(cope, q, other, visible), bias_of(cope, q, k, visible))


def test_at_first_it_adds_nothing():
    q = vectors(1, 2, 3, 4)
    assert not bias_of(CoPE(4), q, q, causal(3, 3)).any()
    assert CoPE(4).weight.shape == (64, 4)


@pytest.mark.parametrize("autocast", [False, True], ids=["cast", "autocast"])
def test_many_open_gates_are_counted_in_bfloat16(autocast):
    q = torch.full((1, 1, 600, 4), 10.0, dtype=torch.bfloat16)
    cope = CoPE(4).to(torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        counted = cope.counted(q, q, causal(600, 600))
    assert counted.dtype == torch.float32
    assert counted[0, 0, -1].tolist() == list(range(600, 0, -1))


def test_positions_beyond_the_last_share_its_row():
    q = torch.full((1, 1, 6, 4), 100.0)  # every gate is open: each key counts as one
    cope = made(n_positions=3, dtype=torch.float32)
    assert cope.counted(q, q, causal(6, 6))[0, 0, 5].tolist() == [6, 5, 4, 3, 2, 1]
    bias = bias_of(cope, q, q, causal(6, 6))[0, 0, 5]
    rows = q[0, 0, 5] @ cope.weight.T
    torch.testing.assert_close(bias, rows[[2, 2, 2, 2, 2, 1]], rtol=1e-6, atol=0)


def test_between_two_positions_the_bias_is_in_between():
    q, k = torch.ones(1, 1, 1, 4), torch.zeros(1, 1, 3, 4)  # every gate is half open
    cope = made(dtype=torch.float32)
    rows = cope.weight.sum(1)
    expected = torch.stack([(rows[1] + rows[2]) / 2, rows[1], (rows[0] + rows[1]) / 2])
    torch.testing.assert_close(bias_of(cope, q, k, causal(1, 3)).flatten(), expected, rtol=0, atol=1e-6)


def test_positions_given_from_outside_do_not_matter():
    q, cope = vectors(1, 2, 3, 4, dtype=torch.float64), made()
    elsewhere = cope.bias(q, q, torch.tensor([9, 2, 7]), torch.tensor([100, 0, 3]), visible=causal(3, 3))
    assert torch.equal(elsewhere, bias_of(cope, q, q, causal(3, 3)))
