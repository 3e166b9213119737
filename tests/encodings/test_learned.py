"""A learned table: its rows, where they come from, what trains them, and positions without a row."""

from types import SimpleNamespace

import pytest
import torch
from refusals import refused
from small_schemes import vectors
from torch import Tensor, nn

from posembed.encodings import Learned
from posembed.errors import PositionOutOfRangeError


def test_each_token_gets_the_row_of_its_position():
    table, x, positions = vectors(9, 4), vectors(2, 3, 4, seed=1), torch.tensor([[5, 0, 8], [1, 1, 7]])
    added = Learned(table=table).add(x, positions)
    for row in range(2):
        for token in range(3):
            assert torch.equal(added[row, token], x[row, token] + table[positions[row, token]])


def test_rows_start_small_and_normal():
    torch.manual_seed(0)
    weight = Learned(2000, 50).weight
    assert weight.shape == (2000, 50) and weight.requires_grad
    # 100,000 draws: the estimates of mean and spread vary by about 0.003 and 0.002 of the spread.
    assert abs(weight.mean().item()) < 0.02 * 0.02 and weight.std().item() == pytest.approx(0.02, rel=0.01)
    assert Learned(2000, 50, std=3.0).weight.std().item() == pytest.approx(3.0, rel=0.01)


@pytest.mark.parametrize(
    "wrap",
    [lambda t: t, lambda t: SimpleNamespace(weight=t), nn.Parameter, Tensor.numpy],
    ids=["", "like", "parameter", "array"],
)
def test_a_table_is_copied(wrap):
    table = vectors(5, 3)
    learned = Learned(table=wrap(table))
    assert torch.equal(learned.weight, table) and learned.weight.requires_grad
    table += 1
    assert not torch.equal(learned.weight, table)
    assert torch.equal(learned.weight, vectors(5, 3))


def test_a_table_keeps_its_format():
    assert Learned(table=vectors(5, 3, dtype=torch.float64)).weight.dtype == torch.float64
    assert torch.equal(Learned(5, 3, table=vectors(5, 3)).weight, vectors(5, 3))


@pytest.mark.bad_input
@pytest.mark.parametrize("position", [8, -1, -9])
def test_positions_without_a_row(position):
    """A negative one would be the row of a late position, which Python counts from the end."""
    given = (torch.zeros(2, 4), torch.tensor([0, position]))
    message = f"position {position} has no row in a learned table of 8"
    assert refused(PositionOutOfRangeError, Learned(8, 4).add, *given).startswith(message)


def test_the_gradient_reaches_the_rows_that_were_used_and_no_others():
    learned, x = Learned(10, 4), vectors(2, 3, 4).requires_grad_()
    upstream = vectors(2, 3, 4, seed=1)
    learned.add(x, torch.tensor([[7, 2, 7], [2, 2, 0]])).backward(upstream)
    expected = torch.zeros(10, 4)
    expected[7] = upstream[0, 0] + upstream[0, 2]
    expected[2] = upstream[0, 1] + upstream[1, 0] + upstream[1, 1]
    expected[0] = upstream[1, 2]
    # Three terms, summed in another order.
    torch.testing.assert_close(learned.weight.grad, expected, rtol=0, atol=1e-6)
    assert torch.equal(x.grad, upstream)
