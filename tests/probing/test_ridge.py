"""Ridge regression and its choice of a strength, beside scikit-learn's and beside plain refitting."""

import numpy as np
import pytest
from probing_tables import linear_table, random_table
from sklearn import linear_model
from sklearn.model_selection import GridSearchCV

from posembed.probing import Ridge, estimators
from posembed.probing.estimators import DECADES, fitted_scaling
from posembed.probing.rows import shuffled_folds

# Wide, square and tall.
SHAPES = [(20, 60), (20, 20), (60, 20), (3, 2), (2, 3)]
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
@pytest.mark.parametrize("share", [1e-9, 1e-3, 100.0])
def test_errors_of_rows_left_out_are_those_of_refitting(n, d_model, share, n_folds, monkeypatch):
    monkeypatch.setattr(estimators, "DECADES", (share,))
    monkeypatch.setattr(estimators, "N_FOLDS", n_folds)
    x, y = random_table(n, d_model), np.arange(float(n))
    probe = Ridge(seed=3).fit(x, y)
    expected = refitted_errors(scaled(x), y, share * x.size, n_folds, 3)
    np.testing.assert_allclose(probe.left_out_errors_[:, 0], expected, rtol=1e-6, atol=1e-6 * n)


@shapes
@pytest.mark.parametrize("strength", [1e-3, 1e3])
def test_the_fit_is_scikit_learns(n, d_model, strength, monkeypatch):
    monkeypatch.setattr(estimators, "DECADES", (strength / (n * d_model),))
    x, y = random_table(n, d_model), random_table(n, 2, seed=1)
    expected = linear_model.Ridge(alpha=strength, solver="svd").fit(scaled(x), y).predict(scaled(x))
    np.testing.assert_allclose(Ridge().fit(x, y).predict(x), expected, rtol=1e-8, atol=1e-10)


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


def test_a_table_that_holds_nothing_is_given_up():
    """The strongest penalty leaves the mean."""
    x, y = random_table(200, 400), np.arange(200.0)
    probe = Ridge().fit(x, y)
    assert probe.strength_ == DECADES[-1] * x.size
    assert np.abs(probe.predict(random_table(50, 400, seed=1)) - y.mean()).max() < 2


def test_ties_go_to_the_stronger():
    probe = Ridge().fit(np.ones((9, 3)), np.arange(9.0))
    assert probe.strength_ == DECADES[-1] * 27
