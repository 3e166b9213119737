"""What scores are compared with."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probing_tables import random_table

from posembed.probing import constant_guess, permuted_labels, random_tables_like
from posembed.seeds import generator


@given(st.integers(1, 50), st.integers(1, 5), st.integers(0, 100))
def test_permuted_labels_are_the_same_labels(n, k, seed):
    labels = np.random.default_rng(seed).normal(size=n)
    permuted = permuted_labels(labels, k, seed=seed)
    assert permuted.shape == (n, k)
    np.testing.assert_array_equal(np.sort(permuted, axis=0), np.sort(labels)[:, None].repeat(k, axis=1))


def test_permutations_differ_and_tell_nothing_of_the_labels():
    labels = np.arange(400.0)
    permuted = permuted_labels(labels, 20)
    correlations = np.corrcoef(np.column_stack([labels, permuted]).T) - np.eye(21)
    assert np.abs(correlations).max() < 5 / 20  # five standard errors
    assert np.array_equal(permuted, permuted_labels(labels, 20))
    assert not np.array_equal(permuted, permuted_labels(labels, 20, seed=1))


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_random_tables_have_the_tables_size_scale_and_mean(scale):
    x = (random_table(300, 40) * 3 + 5) * scale
    tables = list(random_tables_like(x, 3))
    assert len(tables) == 3
    for table in tables:
        assert table.shape == x.shape
        assert (table / scale).std() == pytest.approx((x / scale).std(), rel=0.05)
        assert (table / scale).mean() == pytest.approx(5, rel=0.05)
    # No row is like another, nor like one of the table or of another draw.
    pooled = np.concatenate([x, *tables]) / scale - 5
    units = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
    assert np.abs(units @ units.T - np.eye(len(units))).max() < 1


def test_of_equal_rows_there_is_a_random_table_too():
    (table,) = random_tables_like(np.full((30, 4), 2.0), 1)
    assert table.std() > 0.5


@given(st.lists(st.integers(0, 100), min_size=1, max_size=12), st.integers(0, 100))
def test_no_constant_errs_less(train, other):
    train = np.array(train)
    assert np.abs(train - constant_guess(train)).sum() <= np.abs(train - other).sum() + 1e-9


def test_each_purpose_has_a_stream_of_its_own():
    draws = {purpose: generator(0, purpose).integers(2**60) for purpose in ("folds", "start", "pairs", "bootstrap")}
    assert len(set(draws.values())) == len(draws)
