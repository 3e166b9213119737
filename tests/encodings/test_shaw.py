"""Shaw's relative positions against loops over every query and key, with each kind of vectors."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_schemes import vectors

from posembed import sinusoidal
from posembed.encodings import Shaw


def by_loops(q, row_of, positions, key_positions, clip):
    """q_i . a_(j - i) / sqrt(d_head), entry by entry."""
    bias = torch.empty(*q.shape[:3], len(key_positions), dtype=q.dtype)
    for i, query_position in enumerate(positions.tolist()):
        for j, key_position in enumerate(key_positions.tolist()):
            offset = key_position - query_position
            if clip is not None:
                offset = max(-clip, min(clip, offset))
            bias[..., i, j] = q[..., i, :] @ row_of(offset) / math.sqrt(q.shape[-1])
    return bias


@given(
    positions=st.lists(st.integers(-30, 30), min_size=1, max_size=5),
    key_positions=st.lists(st.integers(-30, 30), min_size=1, max_size=5),
    clip=st.integers(1, 40),
    d_head=st.integers(1, 6),
)
def test_learned_vectors(positions, key_positions, clip, d_head):
    torch.manual_seed(0)
    shaw = Shaw(d_head, max_distance=clip, std=1.0).double()
    assert shaw.weight.shape == (2 * clip + 1, d_head)
    q = vectors(2, 3, len(positions), d_head, dtype=torch.float64)
    k = vectors(2, 1, len(key_positions), d_head, dtype=torch.float64)  # its numbers do not matter
    positions, key_positions = torch.tensor(positions), torch.tensor(key_positions)
    bias = shaw.bias(q, k, positions, key_positions)
    expected = by_loops(q, lambda offset: shaw.weight[clip + offset], positions, key_positions, clip)
    # Sums of six float64 products, in any order.
    torch.testing.assert_close(bias, expected, rtol=0, atol=1e-14)


def test_offsets_beyond_the_limit_share_one_vector():
    shaw, q = Shaw(4, max_distance=3, std=1.0), vectors(1, 2, 1, 4)
    bias = lambda offset: shaw.bias(q, q, torch.tensor([0]), torch.tensor([offset]))
    assert torch.equal(bias(3), bias(4)) and torch.equal(bias(3), bias(10**9))
    assert torch.equal(bias(-3), bias(-4)) and torch.equal(bias(-3), bias(-(10**9)))
    assert len({tuple(bias(offset).flatten().tolist()) for offset in range(-3, 4)}) == 7


@pytest.mark.parametrize(
    ("kind", "dtype", "tolerance"),
    [
        ("sinusoidal", torch.float32, 1e-6),
        ("sinusoidal", torch.float64, 1e-13),
        # Trained frequencies begin there, as float32 numbers: an angle of 29 is off by 29 times half a unit.
        ("learnable_sinusoidal", torch.float32, 4e-6),
    ],
    ids=str,
)
@pytest.mark.parametrize("limit", [5, None])
def test_sinusoidal_vectors_are_rows_of_the_sinusoids_at_the_offsets(limit, kind, dtype, tolerance):
    shaw = Shaw(6, max_distance=limit, vectors=kind)
    q, k, table = vectors(1, 2, 3, 6, dtype=dtype), vectors(1, 2, 4, 6, dtype=dtype), sinusoidal(30, 6, dtype=dtype)

    def row_of(offset):
        """Sines are odd, cosines even."""
        row = table[abs(offset)].clone()
        row[::2] *= math.copysign(1, offset)
        return row

    positions, key_positions = torch.tensor([0, 12, 20]), torch.tensor([0, 11, 12, 29])
    expected = by_loops(q, row_of, positions, key_positions, limit)
    torch.testing.assert_close(shaw.bias(q, k, positions, key_positions), expected, rtol=0, atol=tolerance)
    trained = [name for name, _ in shaw.named_parameters()]
    assert trained == ([] if kind == "sinusoidal" else ["sinusoids.frequencies"])


def test_vectors_start_where_asked():
    torch.manual_seed(0)
    assert Shaw(500, max_distance=100).weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert Shaw(500, max_distance=100, std=2.0).weight.std().item() == pytest.approx(2.0, rel=0.02)
    assert Shaw(8).weight.shape == (33, 8)


def test_gradients_reach_the_vectors_that_were_met_and_the_queries():
    torch.manual_seed(0)
    shaw, positions = Shaw(4, max_distance=3, std=1.0).double(), torch.tensor([0, 2])
    q = vectors(1, 2, 2, 4, dtype=torch.float64).requires_grad_()
    upstream = vectors(1, 2, 2, 2, seed=1, dtype=torch.float64)
    shaw.bias(q, q, positions, positions).backward(upstream)
    expected = torch.zeros(7, 4, dtype=torch.float64)
    for i in range(2):
        for j in range(2):
            expected[3 + 2 * (j - i)] += upstream[0, :, i, j] @ q[0, :, i].detach() / 2
    torch.testing.assert_close(shaw.weight.grad, expected, rtol=0, atol=1e-14)
    assert shaw.weight.grad[[0, 2, 4, 6]].eq(0).all()
    assert q.grad.abs().min() > 0
