"""A learned table: its rows, where they come from, what trains them, and positions without a row."""

from types import SimpleNamespace

import pytest
import torch
from small_models import build
from small_schemes import vectors
from torch import nn

from posembed.encodings import Learned
from posembed.errors import EncodingInputError, PositionOutOfRangeError
from posembed.tables import find_position_rows

SIGNED = [torch.int8, torch.int16, torch.int32, torch.int64]
UNSIGNED = [torch.uint8, torch.uint16, torch.uint32, torch.uint64]


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
    "wrap", [lambda t: t, lambda t: SimpleNamespace(weight=t), nn.Parameter], ids=["", "like", "parameter"]
)
def test_a_table_is_copied(wrap):
    table = vectors(5, 3)
    learned = Learned(table=wrap(table))
    assert torch.equal(learned.weight, table) and learned.weight.requires_grad
    table += 1
    assert not torch.equal(learned.weight, table)
    assert torch.equal(learned.weight, vectors(5, 3))


def test_the_rows_of_a_models_table_are_a_table():
    rows = find_position_rows(build("roberta")).rows  # they begin behind two rows that are no positions
    learned = Learned(table=rows)
    assert torch.equal(learned.weight, rows) and learned.weight.data_ptr() != rows.data_ptr()


def test_a_table_keeps_its_format_and_may_be_shortened():
    assert Learned(table=vectors(5, 3, dtype=torch.float64)).weight.dtype == torch.float64
    assert torch.equal(Learned(3, table=vectors(5, 3)).weight, vectors(5, 3)[:3])
    assert torch.equal(Learned(5, 3, table=vectors(5, 3)).weight, vectors(5, 3))


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


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED, ids=str)
def test_positions_of_every_integer_format(dtype):
    learned, x = Learned(200, 4), vectors(3, 4)
    expected = learned.add(x, torch.tensor([3, 126, 9]))
    assert torch.equal(learned.add(x, torch.tensor([3, 126, 9]).to(dtype)), expected)


def test_far_rows_of_a_long_table_are_told_apart_in_bfloat16():
    # Three columns under 128 each: whole numbers that bfloat16 holds exactly.
    p = torch.arange(1_000_000)
    table = torch.stack([p >> 14, (p >> 7) % 128, p % 128], -1).to(torch.bfloat16)
    positions = torch.arange(999_936, 1_000_000)
    added = Learned(table=table).add(torch.zeros(64, 3, dtype=torch.bfloat16), positions)
    assert torch.equal(added, table[-64:]) and len(added.unique(dim=0)) == 64


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_the_sum_is_rounded_once(dtype):
    table, x = vectors(50, 64), vectors(50, 64, seed=1, dtype=dtype)
    added = Learned(table=table).add(x, torch.arange(50))
    assert torch.equal(added, (x.float() + table).to(dtype))


def test_an_odd_width_and_one_row():
    assert Learned(1, 1).add(torch.zeros(1, 1, 1), torch.tensor([0])).shape == (1, 1, 1)


@pytest.mark.bad_input
@pytest.mark.parametrize("dtype", [torch.int64, torch.int16], ids=str)
def test_positions_without_a_row(dtype):
    learned = Learned(8, 4)
    too_far = (
        "position 11 has no row in a learned table of 8; make a longer table, shorten the text, or choose a scheme "
        "without a table"
    )
    negative = "position -2 is negative; the first row of a learned table is position 0"
    for positions, message in [([0, 11], too_far), ([8, 11], too_far), ([-1, -2], negative), ([-2, 11], negative)]:
        with pytest.raises(PositionOutOfRangeError) as error:
            learned.add(torch.zeros(2, 4), torch.tensor(positions, dtype=dtype))
        assert str(error.value) == message
    for nearest, message in [(8, "^position 8 has no row"), (-1, "^position -1 is negative")]:
        with pytest.raises(PositionOutOfRangeError, match=message):
            learned.add(torch.zeros(1, 4), torch.tensor([nearest]))
    learned.add(torch.zeros(2, 4), torch.tensor([7, 0]))


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((), {}, "learned needs n_positions and d_model, or a table"),
        ((4,), {}, "learned needs n_positions and d_model, or a table"),
        ((0, 4), {}, "n_positions is 0; it must be a whole number of at least 1"),
        ((4, 2.5), {}, "d_model is 2.5"),
        (
            (),
            {"table": nn.Embedding(4, 2)},
            "table is a Embedding, whose first rows may not be positions; give its rows",
        ),
        (
            (),
            {"table": [[1.0, 2.0]]},
            "table must be a floating-point tensor of shape (positions, d_model), or hold one",
        ),
        ((), {"table": SimpleNamespace(weight="no")}, "table must be a floating-point tensor"),
        ((), {"table": torch.zeros(3)}, "table must be a floating-point tensor of shape (positions, d_model)"),
        ((), {"table": torch.zeros(3, 2, dtype=torch.int64)}, "table must be a floating-point tensor"),
        ((), {"table": torch.zeros(0, 2)}, "the table of shape (0, 2) is empty or holds NaN or infinity"),
        ((), {"table": torch.full((3, 2), torch.nan)}, "the table of shape (3, 2) is empty or holds NaN or infinity"),
        ((), {"table": torch.full((3, 2), torch.inf)}, "mend it first"),
        ((4, 2), {"table": torch.zeros(3, 2)}, "the table has shape (3, 2), but (4, 2) was asked for"),
        ((3, 4), {"table": torch.zeros(3, 2)}, "the table has shape (3, 2), but (3, 4) was asked for"),
    ],
    ids=str,
)
def test_tables_that_are_refused(arguments, options, message):
    with pytest.raises(EncodingInputError) as error:
        Learned(*arguments, **options)
    assert message in str(error.value) and "\n" not in str(error.value)
