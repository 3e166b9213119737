"""Which of two rows comes first."""

import itertools
import json
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from probing_tables import linear_table, random_table

from posembed import sinusoidal
from posembed.errors import ProbeInputError
from posembed.probing import SPLITS, probe_order, split_rows
from posembed.probing.order import _accuracy, _Pairs, _pairs_to_fit

every_split = pytest.mark.parametrize("split", SPLITS)


@given(st.integers(2, 12), st.integers(0, 1000))
def test_the_accuracy_is_the_share_of_pairs_in_the_right_order(n, seed):
    """Counted one by one, with ties."""
    rng = np.random.default_rng(seed)
    scores, order = rng.integers(4, size=n).astype(float), rng.permutation(n)
    rows = np.sort(rng.choice(n, size=max(2, n - 2), replace=False))
    right, by_row = [], {row: [] for row in rows}
    for a, b in itertools.combinations(rows, 2):
        later, earlier = (a, b) if order[a] > order[b] else (b, a)
        share = (scores[later] > scores[earlier]) + 0.5 * (scores[later] == scores[earlier])
        right.append(share)
        by_row[a].append(share)
        by_row[b].append(share)
    pairs = _Pairs(scores, order, rows)
    assert _accuracy([pairs]) == pytest.approx(np.mean(right))
    np.testing.assert_allclose(pairs.by_row(), [np.mean(by_row[row]) for row in rows])


@every_split
def test_rows_along_a_line_are_in_order_also_beyond_its_end(split):
    result = probe_order(linear_table(40, noise=0.01), split=split)
    assert result.accuracy == result.train_accuracy == 1.0
    assert (result.interval.low, result.interval.high) == (1.0, 1.0)
    assert all(part.accuracy == 1.0 for part in result.by_distance)
    assert result.held_out == (split != "all")


@pytest.mark.parametrize("split", ["even-odd", "folds", "half"])
@pytest.mark.parametrize("table", [random_table(150, 80), linear_table(150, 80, noise=1.0)], ids=["random", "line"])
def test_controls_are_at_chance(table, split):
    """One half, within four standard errors of the accuracy of so many independent rows."""
    controls = probe_order(table, split=split).baselines
    n_tested = 30 if split == "folds" else 75
    bound = 4 * 2 * (1 / 12 / n_tested) ** 0.5
    assert controls.chance == 0.5
    for runs in (controls.permuted_labels_runs, controls.random_table_runs):
        assert len(runs) == 5 and len(set(runs)) > 1
        assert np.abs(np.array(runs) - 0.5).max() < bound
        assert abs(np.mean(runs) - 0.5) < bound / 2


@pytest.mark.parametrize("seed", range(3))
def test_a_random_table_is_at_chance_and_its_interval_says_so(seed):
    result = probe_order(random_table(200, 100, seed=seed), split="folds")
    assert result.interval.low < 0.5 < result.interval.high
    assert result.train_accuracy > 0.7


def test_without_a_test_a_random_table_seems_to_know_the_order():
    result = probe_order(random_table(100, 200), split="all")
    assert not result.held_out
    assert result.accuracy > 0.8 and min(result.baselines.random_table, result.baselines.permuted_labels) > 0.8


def test_a_score_that_rises_over_one_half_may_fall_over_the_other():
    """Half a turn of a circle: the end of it is the beginning of the way back."""
    angle = np.pi * np.arange(100) / 50
    table = np.column_stack([np.cos(angle), np.sin(angle)])
    assert probe_order(table, split="half").train_accuracy > 0.95
    assert probe_order(table, split="half").accuracy < 0.05


@every_split
def test_distances_cover_all_pairs(split):
    result = probe_order(linear_table(40, noise=20.0), split=split, seed=1)
    n_pairs = sum(len(part.test) * (len(part.test) - 1) // 2 for part in split_rows(np.arange(40), split, seed=1))
    assert sum(part.n_pairs for part in result.by_distance) == n_pairs
    weighted = sum(part.accuracy * part.n_pairs for part in result.by_distance) / n_pairs
    assert weighted == pytest.approx(result.accuracy)
    for part in result.by_distance:
        assert part.stop == 2 * part.start and part.start & (part.start - 1) == 0


def test_distances_are_in_positions():
    result = probe_order(linear_table(60), rows=range(0, 60, 5), split="all")
    assert [part.start for part in result.by_distance] == [4, 8, 16, 32]


def test_far_rows_are_easier():
    result = probe_order(sinusoidal(256, 64), split="folds")
    assert result.by_distance[-1].accuracy == 1.0 > result.by_distance[0].accuracy


@settings(max_examples=10)
@given(st.floats(1e-6, 1e6), st.integers(0, 20))
def test_scale_and_offset_of_the_table_change_nothing(scale, seed):
    table = linear_table(40, 6, noise=20.0, seed=seed)
    expected, found = probe_order(table), probe_order(scale * table + scale)
    assert found.accuracy == pytest.approx(expected.accuracy, abs=0.01)


def test_a_table_read_backwards_gives_the_same_accuracy():
    """The two answers are one another's mirror image: there is no intercept that prefers one."""
    table = linear_table(80, 10, noise=30.0)
    forwards, backwards = probe_order(table, split="all"), probe_order(table[::-1].copy(), split="all")
    assert backwards.accuracy == pytest.approx(forwards.accuracy, abs=0.02)


@given(st.integers(2, 30), st.integers(0, 100))
def test_no_row_is_paired_with_itself_and_none_is_left_out(n, seed):
    rows = np.arange(n) * 3 + 1
    first, second = _pairs_to_fit(rows, seed)
    assert (first != second).all()
    assert set(first) == set(rows) and set(second) <= set(rows)


@every_split
def test_equal_rows_are_all_ties(split):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = probe_order(torch.full((30, 3), 0.1), split=split)
    assert result.accuracy == result.baselines.permuted_labels == 0.5


@pytest.mark.parametrize("shape", [(4, 1), (4, 9), (10, 2)])
def test_small_tables(shape):
    for split in ("even-odd", "all", "half", "folds") if shape[0] == 10 else ("even-odd", "all", "half"):
        result = probe_order(random_table(*shape), split=split)
        assert 0 <= result.interval.low <= result.interval.high <= 1
        json.dumps(result.to_dict(), allow_nan=False)


def test_the_seed_decides():
    table = linear_table(40, noise=20.0)
    first, again, other = (probe_order(table, split="folds", seed=seed).to_dict() for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "loo"}, "split is 'loo'; choose among"),
        ({"split": "folds", "rows": 9}, "the split folds leaves fewer than two of 9 rows to compare; take more rows"),
        ({"rows": slice(0, 20, 3), "split": "folds"}, "the split folds leaves fewer than two of 7 rows"),
        ({"rows": (0, 4, 2)}, "give a number, a"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ProbeInputError, match=message):
        probe_order(random_table(20, 3), **options)
