"""Which rows are taken, which are fitted to and which are tested, and which choices are refused."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from probing_tables import random_table

from posembed.errors import PositionTableError
from posembed.probing import SPLITS, probe_order, probe_table, spectrum, split_rows
from posembed.probing.rows import chosen_rows

N = 40
TABLE = random_table(N, 6)


@pytest.mark.parametrize(
    ("rows", "positions"), [(None, range(N)), ((3, 9), range(3, 9)), (slice(1, 20, 3), range(1, 20, 3))]
)
def test_the_rows_asked_for_are_taken(rows, positions):
    x, found, _ = chosen_rows(TABLE, rows, at_least=1, purpose="a test")
    assert found.tolist() == list(positions)
    np.testing.assert_array_equal(x, TABLE[list(positions)])


every_measure = pytest.mark.parametrize("measure", [probe_table, probe_order, spectrum])


@every_measure
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_rows_that_are_not_finite_are_named(measure, value):
    table = torch.tensor(TABLE)
    table[3, 1] = table[7, 0] = value
    with pytest.raises(
        PositionTableError,
        match=r"^rows 3, 7 of .* hold NaN or infinity; choose rows without them \(rows=\), or mend them$",
    ):
        measure(table)
    with pytest.raises(PositionTableError, match="^row 7 of .* holds NaN"):
        measure(table, rows=(4, 30))
    assert measure(table, rows=slice(8, None)).n_rows == N - 8


@every_measure
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_narrow_numbers_are_those_of_the_wide_table(measure, dtype):
    narrow = torch.tensor(TABLE).to(dtype)
    expected, found = measure(narrow.double()).to_dict(), measure(narrow).to_dict()
    del expected["source"], found["source"]
    assert found == expected


# Which of them are tested.

positions = st.builds(lambda start, n: np.arange(start, start + n), st.integers(0, 9), st.integers(5, 60))


@pytest.mark.parametrize("split", [split for split in SPLITS if split != "all"])
@given(positions=positions, seed=st.integers(0, 100))
def test_no_tested_row_has_been_seen_and_none_is_tested_twice(split, positions, seed):
    parts = split_rows(positions, split, seed=seed)
    for part in parts:
        assert not set(part.train) & set(part.test)
        assert sorted([*part.train, *part.test]) == list(range(len(positions)))
        assert (np.diff(part.train) > 0).all() and (np.diff(part.test) > 0).all()
    tested = np.concatenate([part.test for part in parts])
    assert len(set(tested)) == len(tested)


@given(positions=positions)
def test_even_positions_train_and_odd_ones_test(positions):
    (part,) = split_rows(positions, "even-odd")
    assert (positions[part.train] % 2 == 0).all() and (positions[part.test] % 2 == 1).all()


@given(positions=positions, seed=st.integers(0, 100))
def test_every_row_is_in_one_of_five_folds(positions, seed):
    parts = split_rows(positions, "folds", seed=seed)
    assert len(parts) == 5
    assert sorted(np.concatenate([part.test for part in parts])) == list(range(len(positions)))
    assert max(len(part.test) for part in parts) - min(len(part.test) for part in parts) <= 1


@given(positions=positions)
def test_the_first_half_trains(positions):
    (part,) = split_rows(positions, "half")
    assert part.train.max() < part.test.min()
    assert len(part.train) - len(part.test) in (0, 1)


def test_all_tests_what_it_trains_on():
    (part,) = split_rows(np.arange(6), "all")
    assert part.train.tolist() == part.test.tolist() == list(range(6))
