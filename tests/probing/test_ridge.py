"""Ridge regression and its choice of a strength, beside scikit-learn's and beside plain refitting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probing_tables import linear_table, random_table
from sklearn import linear_model
from sklearn.model_selection import GridSearchCV

from posembed.probing import LeastSquares, Ridge
from posembed.probing._scaling import fitted_scaling
from posembed.probing.ridge import DECADES, shuffled_folds

# Wide, square and tall, and the tall ones on both sides of where the products of columns are taken instead.
SHAPES = [(20, 60), (20, 20), (22, 20), (27, 20), (39, 20), (60, 20), (30, 1), (3, 2), (2, 3)]
shapes = pytest.mark.parametrize(("n", "d_model"), SHAPES)


def scaled(x):
    return fitted_scaling(x).apply(x)


def refitted_errors(x, y, strength, n_folds, seed):
    """By scikit-learn, once for each fold."""
    errors = np.empty_like(y)
    for fold in shuffled_folds(len(y), n_folds, seed):
        kept = np.setdiff1d(np.arange(len(y)), fold)
        model = linear_model.Ridge(alpha=strength, solver="svd").fit(x[kept], y[kept])
        errors[fold] = y[fold] - model.predict(x[fold])
    return errors


@shapes
@pytest.mark.parametrize("n_folds", [2, 5, 60])
@pytest.mark.parametrize("share", [1e-9, 1e-6, 1e-3, 1.0, 100.0])
def test_errors_of_rows_left_out_are_those_of_refitting(n, d_model, share, n_folds):
    x, y = random_table(n, d_model), np.arange(float(n))
    strength = share * x.size
    probe = Ridge(strengths=[strength], n_folds=n_folds, seed=3).fit(x, y)
    expected = refitted_errors(scaled(x), y, strength, n_folds, 3)
    np.testing.assert_allclose(probe.left_out_errors_, expected, rtol=1e-6, atol=1e-6 * n)


@given(st.integers(3, 16), st.integers(1, 16), st.integers(2, 7), st.integers(0, 1000))
def test_errors_of_rows_left_out_are_those_of_refitting_any_table(n, d_model, n_folds, seed):
    x, y = random_table(n, d_model, seed), np.random.default_rng(seed).normal(size=n)
    probe = Ridge(strengths=[0.1], n_folds=n_folds, seed=seed).fit(x, y)
    expected = refitted_errors(scaled(x), y, 0.1, n_folds, seed)
    np.testing.assert_allclose(probe.left_out_errors_, expected, rtol=1e-8, atol=1e-8)


@shapes
@pytest.mark.parametrize("strength", [1e-3, 1.0, 1e3])
def test_the_fit_is_scikit_learns(n, d_model, strength):
    x, y = random_table(n, d_model), random_table(n, 2, seed=1)
    expected = linear_model.Ridge(alpha=strength, solver="svd").fit(scaled(x), y)
    fitted = Ridge(strengths=[strength]).fit(scaled(x), y)
    np.testing.assert_allclose(fitted.coef_, expected.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fitted.intercept_, expected.intercept_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("n", "d_model"), [(20, 60), (60, 20)])
def test_the_choice_is_that_of_a_search_by_scikit_learn(n, d_model):
    """For each output the one that a grid search over the same folds finds."""
    x = linear_table(n, d_model, noise=3.0)
    labels = np.column_stack([np.arange(float(n)), np.random.default_rng(0).permutation(float(n) * 1.0 * np.arange(n))])
    probe = Ridge(seed=1).fit(x, labels)
    folds = list(shuffled_folds(n, 5, 1))
    cv = [(np.setdiff1d(np.arange(n), fold), fold) for fold in folds]
    for output, strength in enumerate(probe.strength_):
        search = GridSearchCV(
            linear_model.Ridge(solver="svd"),
            {"alpha": np.array(DECADES) * x.size},
            cv=cv,
            scoring="neg_mean_absolute_error",
        ).fit(scaled(x), labels[:, output])
        assert strength == pytest.approx(search.best_params_["alpha"])


def test_almost_no_penalty_is_least_squares():
    x, y = random_table(60, 20), np.arange(60.0)
    other = random_table(9, 20, seed=1)
    expected = LeastSquares().fit(x, y).predict(other)
    np.testing.assert_allclose(Ridge(strengths=[1e-12 * x.size]).fit(x, y).predict(other), expected, rtol=1e-8)


def test_a_table_that_holds_nothing_is_given_up():
    """The strongest penalty leaves the mean, and the attribute says that the grid ended there."""
    x, y = random_table(200, 400), np.arange(200.0)
    probe = Ridge().fit(x, y)
    assert probe.grid_end_ == "strongest"
    assert np.abs(probe.predict(random_table(50, 400, seed=1)) - y.mean()).max() < 2


def test_a_table_without_noise_takes_the_weakest_penalty():
    assert Ridge().fit(linear_table(40), np.arange(40.0)).grid_end_ == "weakest"


def test_one_in_the_middle_is_no_end():
    probe = Ridge().fit(linear_table(80, 60, noise=10.0), np.arange(80.0))
    assert probe.grid_end_ is None
    weakest, strongest = min(DECADES) * 80 * 60, max(DECADES) * 80 * 60
    assert weakest < probe.strength_ < strongest


def test_each_output_has_its_own_strength():
    x = linear_table(40)
    probe = Ridge().fit(
        x, np.column_stack([np.arange(40.0), np.random.default_rng(0).permutation(40.0 * np.arange(40))])
    )
    assert probe.strength_[0] < probe.strength_[1]
    assert probe.grid_end_[0] == "weakest" and len(probe.grid_end_) == 2


def test_ties_go_to_the_stronger():
    probe = Ridge(strengths=[1.0, 2.0]).fit(np.ones((9, 3)), np.arange(9.0))
    assert probe.strength_ == 2.0


def test_equal_rows_are_predicted_by_the_mean_of_the_others():
    y = np.arange(10.0)
    probe = Ridge(seed=2).fit(np.ones((10, 3)), y)
    for fold in shuffled_folds(10, 5, 2):
        others = np.delete(y, fold)
        np.testing.assert_allclose(probe.left_out_errors_[fold], y[fold] - others.mean(), atol=1e-12)


def test_a_table_with_weak_directions_needs_the_weak_end_of_the_grid():
    """What the usual strengths from 1e-3 on would have lost: the position in a direction a million times smaller."""
    n = 100
    x = np.column_stack([random_table(n, 10), 1e-6 * np.arange(n)])
    usual = Ridge(strengths=10.0 ** np.arange(-3, 4)).fit(x, np.arange(n))
    assert np.abs(usual.left_out_errors_).mean() > 20
    assert np.abs(Ridge().fit(x, np.arange(n)).left_out_errors_).mean() < 0.5


def test_folds_are_a_partition_that_the_seed_shuffles():
    folds = list(shuffled_folds(23, 5, 0))
    assert sorted(np.concatenate(folds).tolist()) == list(range(23))
    assert {len(fold) for fold in folds} == {4, 5}
    assert [fold.tolist() for fold in folds] != [fold.tolist() for fold in shuffled_folds(23, 5, 1)]
    assert len(list(shuffled_folds(3, 5, 0))) == 3
