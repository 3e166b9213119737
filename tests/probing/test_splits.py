"""Which rows are fitted to and which are tested."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posembed.errors import ProbeInputError
from posembed.probing import SPLITS, split_rows

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


def test_folds_are_shuffled_by_the_seed():
    first, again, other = (split_rows(np.arange(50), "folds", seed=seed)[0].test.tolist() for seed in (0, 0, 1))
    assert first == again != other
    assert first != list(range(10))


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
        (range(9), None, "split is None; choose among"),
        (range(4), "folds", "the split folds needs at least 5 rows, but there are 4"),
        (range(1), "even-odd", "the split even-odd needs at least 2 rows, but there are 1"),
        (range(1), "all", "the split all needs at least 2 rows, but there are 1"),
        (range(1), "half", "the split half needs at least 2 rows, but there are 1"),
        (range(0, 9, 2), "even-odd", "needs even and odd positions, but all are even; take rows with a step of 1"),
        (range(1, 9, 2), "even-odd", "needs even and odd positions, but all are odd; take rows with a step of 1"),
    ],
)
def test_what_cannot_be_split(positions, split, message):
    with pytest.raises(ProbeInputError, match=message):
        split_rows(np.array(positions), split)
