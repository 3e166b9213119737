"""The two-layer network."""

import warnings

import numpy as np
from probing_tables import random_table

from posembed.probing import MLP


def circle(n=200, turns=1.7):
    angle = 2 * np.pi * turns * np.arange(n) / n
    return np.column_stack([np.cos(angle), np.sin(angle), np.cos(angle / 3)])


def test_it_says_quietly_that_it_did_not_come_to_rest():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        probe = MLP(max_iter=3).fit(circle(), np.arange(200.0))
        rested = MLP(max_iter=500, penalty=1e4).fit(circle(), np.arange(200.0))
    assert probe.n_iter_ == 3
    assert rested.n_iter_ < 500


def test_the_start_follows_the_seed():
    x, y = random_table(30, 4), np.arange(30.0)
    first, again, other = (MLP(max_iter=5, seed=seed).fit(x, y).predict(x) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_targets_are_scaled():
    """A factor on the labels is a factor on the predictions."""
    x, y = random_table(30, 4), np.arange(30.0)
    expected = 1024 * MLP(max_iter=20).fit(x, y).predict(x)
    np.testing.assert_allclose(MLP(max_iter=20).fit(x, 1024 * y).predict(x), expected, rtol=1e-12)
