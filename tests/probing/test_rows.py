"""Which rows are taken, and which choices are refused."""

import numpy as np
import pytest
import torch
from probing_tables import random_table

from posembed.errors import PositionTableError, ProbeInputError
from posembed.probing import description_length, probe_order, probe_table, spectrum
from posembed.probing._rows import chosen_rows
from posembed.tables import as_table

N = 40
TABLE = random_table(N, 6)


def take(rows, table=TABLE):
    return chosen_rows(table, rows, at_least=1, purpose="a test")


@pytest.mark.parametrize(
    ("rows", "positions"),
    [
        (None, range(N)),
        (7, range(7)),
        (N, range(N)),
        ((3, 9), range(3, 9)),
        (slice(5, None), range(5, N)),
        (slice(None, 5), range(5)),
        (slice(-8, None), range(N - 8, N)),
        (slice(2, -2), range(2, N - 2)),
        (slice(1, 20, 3), range(1, 20, 3)),
        (range(4, 10), range(4, 10)),
        (range(0, 10, 4), range(0, 10, 4)),
        (range(0, N + 1, 3), range(0, N, 3)),
        ((N - 1, N), range(N - 1, N)),
    ],
)
def test_rows_are_those_of_a_python_list(rows, positions):
    found = take(rows)
    assert found.positions.tolist() == list(positions)
    np.testing.assert_array_equal(found.x, TABLE[list(positions)])


@pytest.mark.bad_input
def test_numbers_of_numpy_are_numbers():
    assert take(np.int64(7)).positions.tolist() == take((np.int32(0), np.uint8(7))).positions.tolist() == list(range(7))


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (0, "rows=0 holds no rows"),
        (-3, "rows=-3 holds no rows"),
        (N + 1, f"rows={N + 1} goes beyond the table, which has rows 0 to {N - 1}"),
        ((5, 5), r"rows=\(5, 5\) holds no rows"),
        ((9, 3), r"rows=\(9, 3\) holds no rows"),
        ((-3, 9), r"rows=\(-3, 9\) holds no rows; give a start of at least 0"),
        ((3, N + 2), "goes beyond the table"),
        (slice(3, N + 2), "goes beyond the table"),
        (slice(-N - 1, None), "holds no rows"),
        (slice(9, 3), "holds no rows"),
        (slice(0, 9, 0), "has the step 0; it must be at least 1"),
        (slice(9, 0, -1), "has the step -1; it must be at least 1"),
        (range(9, 0, -1), "has the step -1; it must be at least 1"),
        (range(4, 4), "holds no rows"),
        (range(0, N + 3), "goes beyond the table"),
        (True, "rows is True; give a number, a"),
        (2.5, "rows is 2.5; give a number, a"),
        ("3", "rows is '3'; give a number, a"),
        ((1, 2, 3), r"rows is \(1, 2, 3\); give a number, a"),
        ([1, 2], r"rows is \[1, 2\]; give a number, a"),
        ((1.0, 2.0), r"rows is \(1.0, 2.0\); give a number, a"),
        (slice(1.0, 2.0), "give a number, a"),
    ],
)
def test_what_is_no_choice_of_rows(rows, message):
    with pytest.raises(ProbeInputError, match=message) as caught:
        take(rows)
    assert "\n" not in str(caught.value)


every_measure = pytest.mark.parametrize("measure", [probe_table, probe_order, description_length, spectrum])


@every_measure
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_rows_that_are_not_finite_are_named(measure, value):
    table = torch.tensor(TABLE)
    table[3, 1] = table[7, 0] = value
    with pytest.raises(PositionTableError, match=r"^rows 3, 7 of .* hold NaN or infinity; leave them out with rows=$"):
        measure(table)
    with pytest.raises(PositionTableError, match="^row 7 of .* holds NaN"):
        measure(table, rows=(4, 30))
    assert measure(table, rows=slice(8, None)).n_rows == N - 8


def test_of_many_rows_that_are_not_finite_a_few_are_named():
    with pytest.raises(ProbeInputError, match="^rows 0, 1, 2, 3, 4, 5, 6, 7 and 32 more of"):
        probe_table(np.full((N, 3), np.nan))


@every_measure
def test_what_is_no_table_is_refused(measure):
    with pytest.raises(PositionTableError):
        measure({"weight": TABLE})
    with pytest.raises(PositionTableError):
        measure(torch.zeros(3, 4, dtype=torch.int8))


@every_measure
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_narrow_numbers_are_those_of_the_wide_table(measure, dtype):
    narrow = torch.tensor(TABLE).to(dtype)
    expected, found = measure(narrow.double()).to_dict(), measure(narrow).to_dict()
    del expected["source"], found["source"]
    assert found == expected


@every_measure
def test_a_loaded_table_keeps_its_source(measure):
    table = as_table(torch.tensor(TABLE))
    assert measure(table).source == table.source


@pytest.mark.bad_input
@pytest.mark.parametrize("measure", [probe_table, probe_order, description_length])
@pytest.mark.parametrize("seed", [-1, 0.5, 2**32, None, True])
def test_a_bad_seed_is_refused(measure, seed):
    with pytest.raises(ProbeInputError, match="seed is .*; it must be a whole number from 0"):
        measure(TABLE, seed=seed)


@pytest.mark.parametrize(
    ("measure", "n", "message"),
    [
        (probe_table, 1, r"a probe needs at least 2 rows, but rows=None of .* has 1"),
        (probe_order, 3, r"a probe of order needs at least 4 rows, but rows=None of .* has 3"),
        (description_length, 15, r"a description length needs at least 16 rows, but rows=None of .* has 15"),
    ],
)
def test_too_few_rows_are_refused(measure, n, message):
    with pytest.raises(ProbeInputError, match=message):
        measure(TABLE[:n])
    measure(TABLE[: n + 1])
