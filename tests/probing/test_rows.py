"""Which rows are taken, which are fitted to and which are tested, and which choices are refused."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from probing_tables import random_table
from refusals import refused

from posembed.errors import PositionTableError, ProbeInputError
from posembed.probing import SPLITS, description_length, probe_order, probe_table, spectrum, split_rows
from posembed.probing.rows import chosen_rows

N = 40
TABLE = random_table(N, 6)


def take(rows, table=TABLE):
    return chosen_rows(table, rows, at_least=1, purpose="a test")


@pytest.mark.parametrize(
    ("rows", "positions"), [(None, range(N)), ((3, 9), range(3, 9)), (slice(1, 20, 3), range(1, 20, 3))]
)
def test_the_rows_asked_for_are_taken(rows, positions):
    found = take(rows)
    assert found.positions.tolist() == list(positions)
    np.testing.assert_array_equal(found.x, TABLE[list(positions)])


@pytest.mark.bad_input
@pytest.mark.parametrize("rows", [0, N + 1, (5, 5), True, "3"])
def test_what_is_no_choice_of_rows_is_refused_as_a_probes_input(rows):
    assert refused(ProbeInputError, take, rows).startswith("rows")


every_measure = pytest.mark.parametrize("measure", [probe_table, probe_order, description_length, spectrum])


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
def test_what_is_no_table_is_refused(measure):
    with pytest.raises(PositionTableError):
        measure({"weight": TABLE})
    with pytest.raises(PositionTableError):
        measure(torch.zeros(3, 4, dtype=torch.int8))


@every_measure
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_narrow_numbers_are_those_of_the_wide_table(measure, dtype):
    narrow = torch.tensor(TABLE).to(dtype)
    expected, found = measure(narrow.double()).to_dict(), measure(narrow).to_dict()
    del expected["source"], found["source"]
    assert found == expected


@pytest.mark.bad_input
@pytest.mark.parametrize("measure", [probe_table, probe_order, description_length])
@pytest.mark.parametrize("seed", [-1, 0.5, 2**32, True])
def test_a_bad_seed_is_refused(measure, seed):
    with pytest.raises(ProbeInputError, match="seed is .*; it must be a whole number from 0"):
        measure(TABLE, seed=seed)


@pytest.mark.parametrize(
    ("measure", "n", "message"),
    [
        (probe_table, 1, "a probe needs at least 2 rows, but rows=None of an array of shape (1, 6) has 1"),
        (probe_order, 3, "a probe of order needs at least 4 rows, but rows=None of an array of shape (3, 6) has 3"),
        (
            description_length,
            15,
            "a description length needs at least 16 rows, but rows=None of an array of shape (15, 6) has 15",
        ),
    ],
)
def test_too_few_rows_are_refused(measure, n, message):
    assert message in refused(ProbeInputError, measure, TABLE[:n])
    measure(TABLE[: n + 1])


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


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("positions", "split", "message"),
    [
        (range(9), "loo", "split is 'loo'; choose among even-odd, all, folds, half"),
        (range(4), "folds", "the split folds needs at least 5 rows, but there are 4"),
        (range(1), "even-odd", "the split even-odd needs at least 2 rows, but there are 1"),
        (range(1), "half", "the split half needs at least 2 rows, but there are 1"),
        (range(0, 9, 2), "even-odd", "needs even and odd positions, but all are even; take rows with a step of 1"),
        (range(1, 9, 2), "even-odd", "needs even and odd positions, but all are odd; take rows with a step of 1"),
    ],
)
def test_what_cannot_be_split(positions, split, message):
    assert message in refused(ProbeInputError, split_rows, np.array(positions), split)
