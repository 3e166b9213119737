"""Least squares beside numpy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probing_tables import linear_table, random_table, with_spectrum
from sklearn.linear_model import LinearRegression

from posembed.probing import LeastSquares
from posembed.probing.least_squares import SMALLEST_RECIPROCAL_CONDITION


def by_numpy(x, y, other):
    """The minimum-norm solution for centred rows, by singular values."""
    mean = x.mean(axis=0)
    weights = np.linalg.lstsq(x - mean, y - y.mean(axis=0), rcond=None)[0]
    return (other - mean) @ weights + y.mean(axis=0)


shapes = pytest.mark.parametrize(
    ("n", "d_model"), [(40, 8), (8, 40), (20, 20), (21, 20), (20, 21), (20, 1), (2, 5), (5, 2)]
)


@shapes
@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4, 1e6, 1e8])
def test_it_equals_numpys(n, d_model, condition):
    values = np.geomspace(1, 1 / condition, min(n - 1, d_model))
    x, y = with_spectrum(n, d_model, values), np.arange(float(n))
    other = x[::-1] + 0.1 * random_table(n, d_model) / np.sqrt(d_model)
    expected = by_numpy(x, y, other)
    # A backward stable solver loses as many digits as the condition has, and no more.
    tolerance = 1e-13 * max(n, d_model) * condition * np.abs(expected).max()
    np.testing.assert_allclose(LeastSquares().fit(x, y).predict(other), expected, rtol=0, atol=tolerance)


@shapes
@pytest.mark.parametrize("rank", [1, 3])
def test_it_equals_numpys_where_rows_depend_on_each_other(n, d_model, rank):
    x = with_spectrum(n, d_model, np.ones(min(rank, n - 1, d_model)))
    y, other = np.arange(float(n)), random_table(6, d_model)
    expected = by_numpy(x, y, other)
    np.testing.assert_allclose(LeastSquares().fit(x, y).predict(other), expected, rtol=1e-9, atol=1e-9)


def test_it_equals_numpys_where_rows_repeat():
    x = np.repeat(random_table(10, 30), 2, axis=0)
    y, other = np.arange(20.0), random_table(6, 30, seed=1)
    np.testing.assert_allclose(LeastSquares().fit(x, y).predict(other), by_numpy(x, y, other), rtol=1e-9)


@given(st.integers(2, 12), st.integers(1, 12), st.integers(0, 1000))
def test_no_other_weights_leave_less(n, d_model, seed):
    """The residuals of least squares are orthogonal to every column and to ones."""
    x, y = random_table(n, d_model, seed), np.random.default_rng(seed).normal(size=n)
    residuals = y - LeastSquares().fit(x, y).predict(x)
    np.testing.assert_allclose(residuals @ np.column_stack([x, np.ones(n)]), 0, atol=1e-8)


@given(st.integers(2, 8), st.integers(9, 14), st.integers(0, 1000))
def test_of_all_exact_weights_it_takes_the_smallest(n, d_model, seed):
    """Then they are a combination of the centred rows."""
    x, y = random_table(n, d_model, seed), np.random.default_rng(seed).normal(size=n)
    weights = LeastSquares().fit(x, y).coef_
    centred = x - x.mean(axis=0)
    projected = np.linalg.pinv(centred) @ (centred @ weights)
    np.testing.assert_allclose(weights, projected, rtol=1e-6, atol=1e-8)


def test_it_equals_scikit_learns_for_several_outputs():
    x, y = random_table(50, 10), random_table(50, 3, seed=1)
    expected = LinearRegression().fit(x, y)
    fitted = LeastSquares().fit(x, y)
    np.testing.assert_allclose(fitted.coef_, expected.coef_, rtol=1e-10)
    np.testing.assert_allclose(fitted.intercept_, expected.intercept_, rtol=1e-10)


def test_a_linear_table_is_read_exactly_and_beyond_its_end():
    table = linear_table(60)
    np.testing.assert_allclose(LeastSquares().fit(table[:30], np.arange(30)).predict(table), np.arange(60), atol=1e-9)


@pytest.mark.parametrize(("n", "d_model"), [(60, 20), (20, 60)])
@pytest.mark.parametrize("condition", [1e3, 1e9])
def test_both_ways_of_solving_are_taken(n, d_model, condition, monkeypatch):
    """Well conditioned rows never reach the singular values, badly conditioned ones always do."""
    called = []
    lstsq = np.linalg.lstsq
    monkeypatch.setattr(np.linalg, "lstsq", lambda *a, **k: called.append(1) or lstsq(*a, **k))
    x = with_spectrum(n, d_model, np.geomspace(1, 1 / condition, min(n - 1, d_model)))
    LeastSquares().fit(x, np.arange(float(n)))
    assert bool(called) == (condition**-2 < SMALLEST_RECIPROCAL_CONDITION)
