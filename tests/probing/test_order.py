"""Which of two rows comes first."""

import itertools
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from probing_tables import linear_table, random_table

from posembed.probing import SPLITS, mean_interval, order, probe_order

every_split = pytest.mark.parametrize("split", SPLITS)


@given(st.integers(4, 14), st.integers(0, 1000), st.sampled_from(["even-odd", "all"]))
def test_the_accuracy_is_the_share_of_pairs_in_the_right_order(n, seed, split):
    """Counted one by one, with ties, and row by row for the interval."""
    scores = np.random.default_rng(seed).integers(4, size=n).astype(float)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "_scores", lambda *given: scores)
        found = probe_order(random_table(n, 2), split=split, seed=seed)
    tested = range(1, n, 2) if split == "even-odd" else range(n)
    right = {row: [] for row in tested}
    for a, b in itertools.combinations(tested, 2):
        share = (scores[b] > scores[a]) + 0.5 * (scores[b] == scores[a])
        right[a].append(share)
        right[b].append(share)
    by_row = np.array([np.mean(shares) for shares in right.values()])
    assert found.accuracy == pytest.approx(by_row.mean())
    once = mean_interval(by_row, seed=seed)
    low, high = (found.accuracy + 2 * (end - by_row.mean()) for end in (once.low, once.high))
    assert (found.interval.low, found.interval.high) == pytest.approx((max(low, 0), min(high, 1)))


@every_split
def test_rows_along_a_line_are_in_order_also_beyond_its_end(split):
    result = probe_order(linear_table(40, noise=0.01), split=split)
    assert (result.accuracy, result.interval.low, result.interval.high) == (1.0, 1.0, 1.0)
    assert result.held_out == (split != "all")


@pytest.mark.parametrize("split", ["even-odd", "folds", "half"])
@pytest.mark.parametrize("table", [random_table(150, 80), linear_table(150, 80, noise=1.0)], ids=["random", "line"])
def test_controls_are_at_chance(table, split):
    """One half, within four standard errors of the accuracy of so many independent rows."""
    controls = probe_order(table, split=split)
    n_tested = 30 if split == "folds" else 75
    bound = 4 * 2 * (1 / 12 / n_tested) ** 0.5
    for runs in (controls.permuted_labels, controls.random_table):
        assert len(runs) == 5 and len(set(runs)) > 1
        assert np.abs(np.array(runs) - 0.5).max() < bound
        assert abs(np.mean(runs) - 0.5) < bound / 2


@every_split
def test_equal_rows_are_all_ties(split):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = probe_order(torch.full((30, 3), 0.1), split=split)
    assert {result.accuracy, *result.permuted_labels} == {0.5}


def test_the_seed_decides():
    table = linear_table(40, noise=20.0)
    first, again, other = (probe_order(table, split="folds", seed=seed).to_dict() for seed in (0, 0, 1))
    assert first == again != other
