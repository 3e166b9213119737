"""What the four probes have in common."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from probing_tables import random_table, rotation
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from posembed.probing import MLP, GradientDescent, LeastSquares, Ridge

PROBES = [LeastSquares(), Ridge(), GradientDescent(n_steps=300), MLP(n_hidden=4, max_iter=30)]
LINEAR = PROBES[:3]
every_probe = pytest.mark.parametrize("probe", PROBES, ids=lambda probe: type(probe).__name__)
linear_probe = pytest.mark.parametrize("probe", LINEAR, ids=lambda probe: type(probe).__name__)

# Wide and tall tables, with other rows to predict.
tables = st.builds(
    lambda n, d, seed: (
        random_table(n, d, seed),
        random_table(7, d, seed + 1),
        np.random.default_rng(seed).normal(size=n),
    ),
    st.integers(3, 14),
    st.integers(1, 10),
    st.integers(0, 1000),
)
# Rounding is magnified by the condition of the rows, which near-square random ones have up to some thousands of.
close = {"rtol": 1e-6, "atol": 1e-6}


# It sets numbers of wrong kinds too, which must be refused on fitting and not before.
@pytest.mark.bad_input
@every_probe
def test_scikit_learn_takes_it_for_a_regressor(probe):
    check_estimator(clone(probe), on_skip=None)


@linear_probe
@settings(max_examples=20)
@given(table=tables, seed=st.integers(0, 1000))
def test_a_rotation_of_the_columns_changes_no_prediction(probe, table, seed):
    """Of gradient descent, what it learns; where it starts from is not rotated with the table, so it is taken off."""
    x, other, y = table
    turn = rotation(x.shape[1], seed)

    def learned(rows, predicted):
        labels = np.column_stack([y, np.zeros_like(y)])
        start = clone(probe).fit(rows, labels[:, 1]).predict(predicted)
        return clone(probe).fit(rows, labels[:, 0]).predict(predicted) - start

    np.testing.assert_allclose(learned(x @ turn, other @ turn), learned(x, other), **close)


@every_probe
def test_an_output_does_not_depend_on_the_others(probe):
    x, y = random_table(20, 6), np.arange(20.0)
    alone = clone(probe).fit(x, y).predict(x)
    with_another = clone(probe).fit(x, np.column_stack([y, np.sin(y)])).predict(x)
    np.testing.assert_allclose(with_another[:, 0], alone, rtol=1e-9, atol=1e-9)


@every_probe
@pytest.mark.parametrize("value", [0.0, 0.1])
def test_equal_rows_give_the_mean_of_the_labels(probe, value):
    x, y = np.full((9, 4), value), np.arange(9.0) ** 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predicted = clone(probe).fit(x, y).predict(np.full((3, 4), value))
    np.testing.assert_allclose(predicted, y.mean(), rtol=1e-15)


@every_probe
@pytest.mark.parametrize("scale", [2.0**-600, 2.0**600])
def test_no_scale_is_too_large_or_too_small(probe, scale):
    x, y = random_table(20, 6), np.arange(20.0)
    expected = clone(probe).fit(x, y).predict(x)
    np.testing.assert_array_equal(clone(probe).fit(x * scale, y).predict(x * scale), expected)


@every_probe
def test_one_row_gives_its_label(probe):
    assert clone(probe).fit([[1.0, 2.0]], [5.0]).predict([[7.0, 0.0]]).tolist() == [5.0]
