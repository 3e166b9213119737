"""Least squares by what defines it; test_table_probe.py holds it beside scikit-learn's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from probing_tables import random_table

from posembed.probing import LeastSquares


@given(st.integers(2, 8), st.integers(9, 14), st.integers(0, 1000))
def test_of_all_exact_weights_it_takes_the_smallest(n, d_model, seed):
    """They are a combination of the centred rows, so what is orthogonal to all of these changes no prediction."""
    x, y = random_table(n, d_model, seed), np.random.default_rng(seed).normal(size=n)
    centred, elsewhere = x - x.mean(axis=0), random_table(3, d_model, seed + 1)
    orthogonal = elsewhere - elsewhere @ np.linalg.pinv(centred) @ centred
    fitted = LeastSquares().fit(x, y)
    np.testing.assert_allclose(fitted.predict(x.mean(axis=0) + orthogonal), y.mean(), atol=1e-7)
