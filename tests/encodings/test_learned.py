"""A learned table: its rows, where they come from, what trains them, and positions without a row."""

from types import SimpleNamespace

import pytest
import torch
from small_schemes import vectors
from torch import Tensor, nn

from posembed.encodings import Learned


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
