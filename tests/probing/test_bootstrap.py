"""Intervals of means over positions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posembed.errors import ProbeInputError
from posembed.probing import block_length, mean_interval
from posembed.probing.bootstrap import _circular_sums


def correlated(n, rng, memory=0.7):
    """Each value is partly the one before it; their mean is 1."""
    values = rng.normal(size=n + 100)
    for index in range(1, len(values)):
        values[index] += memory * values[index - 1]
    return values[100:] + 1.0


def coverage(intervals):
    return np.mean([found.low <= 1.0 <= found.high for found in intervals])


def test_most_intervals_hold_the_true_mean_of_correlated_values():
    """Close to 95 of 100, where an interval that takes them for independent holds it in less than two thirds."""
    rng = np.random.default_rng(0)
    series = [correlated(400, rng) for _ in range(300)]
    assert 0.87 <= coverage([mean_interval(values) for values in series]) <= 0.98
    half = 1.96 * np.array([values.std(ddof=1) for values in series]) / 20
    means = np.array([values.mean() for values in series])
    assert np.mean(np.abs(means - 1.0) <= half) < 0.66


def test_of_independent_values_it_is_about_that_of_students():
    values = np.random.default_rng(0).normal(size=2000)
    found = mean_interval(values)
    assert (found.high - found.low) / (2 * 1.96 * values.std() / 2000**0.5) == pytest.approx(1, abs=0.15)


@settings(max_examples=20)
@given(st.integers(1, 30), st.integers(0, 1000))
def test_sums_of_blocks_go_around_the_end(n, seed):
    values = np.random.default_rng(seed).normal(size=n)
    for length in range(1, n + 1):
        expected = [sum(values[(start + step) % n] for step in range(length)) for start in range(n)]
        np.testing.assert_allclose(_circular_sums(values, length), expected, atol=1e-12)


@given(st.integers(1, 200), st.floats(0.5, 0.99))
def test_a_constant_has_no_spread(n, level):
    found = mean_interval(np.full(n, 3.0), level=level)
    assert found.low == pytest.approx(3.0) and found.high == pytest.approx(3.0)
    assert found.block == block_length(n) and found.level == level


def test_a_wider_level_is_a_wider_interval_and_the_seed_decides():
    values = np.random.default_rng(0).normal(size=100)
    narrow, wide = mean_interval(values, level=0.5), mean_interval(values, level=0.99)
    assert wide.low < narrow.low < values.mean() < narrow.high < wide.high
    assert mean_interval(values) == mean_interval(values) != mean_interval(values, seed=1)


def test_a_factor_is_a_factor_on_the_ends():
    values = np.random.default_rng(0).normal(size=100)
    one, eight = mean_interval(values), mean_interval(8 * values)
    assert (8 * one.low, 8 * one.high) == (eight.low, eight.high)


@pytest.mark.bad_input
@pytest.mark.parametrize(("values", "level"), [([], 0.95), ([1.0], 0.0), ([1.0], 1.0), ([1.0], float("nan"))])
def test_what_has_no_interval(values, level):
    with pytest.raises(ProbeInputError, match="is not defined; give values and a level"):
        mean_interval(np.array(values), level=level)
