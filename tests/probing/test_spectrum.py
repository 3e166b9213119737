"""Principal components beside scikit-learn's, and what is counted of them."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from probing_tables import linear_table, random_table, with_spectrum
from sklearn.decomposition import PCA

from posembed import sinusoidal
from posembed.probing import spectrum

shapes = pytest.mark.parametrize("shape", [(30, 8), (8, 30), (20, 20), (40, 1), (2, 5)])


@shapes
def test_it_is_scikit_learns_pca(shape):
    table = random_table(*shape) + 4.0
    found, expected = spectrum(table), PCA().fit(table)
    np.testing.assert_allclose(found.explained_variance_ratio, expected.explained_variance_ratio_, atol=1e-12)
    scores = expected.transform(table)[:, : found.components.shape[1]]
    # The same up to signs.
    np.testing.assert_allclose(np.abs(found.components), np.abs(scores), atol=1e-9)
    assert found.components.shape == (shape[0], min(*shape, 16))


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=6), st.integers(0, 100))
def test_ranks_are_those_of_the_formulas(values, seed):
    values = np.array(values)
    found = spectrum(with_spectrum(12, 9, values, seed=seed))
    shares = values / values.sum()
    assert found.effective_rank == pytest.approx(np.exp(-(shares * np.log(shares)).sum()), rel=1e-6)
    assert found.participation_ratio == pytest.approx((values**2).sum() ** 2 / (values**4).sum(), rel=1e-6)
    assert found.participation_ratio * (1 + 1e-9) >= 1
    # Of k directions of the same size both are k; anything else is fewer.
    assert max(found.effective_rank, found.participation_ratio) <= len(values) * (1 + 1e-6)


@pytest.mark.parametrize("rank", [1, 4, 7])
def test_equal_directions_are_counted(rank):
    found = spectrum(with_spectrum(20, 9, np.ones(rank)))
    assert found.n_components_for(1.0 - 1e-9) == rank
    assert found.n_components_for(0.5) == (rank + 1) // 2


def test_signs_do_not_depend_on_chance():
    """Each direction has a positive largest entry, so a table turned over gives scores turned over."""
    table = random_table(30, 8)
    np.testing.assert_allclose(spectrum(-table).components, -spectrum(table).components, atol=1e-9)
    # Four points on two axes: the larger is turned to where its direction is positive.
    found = spectrum(np.array([[-3.0, 0.0], [3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]))
    np.testing.assert_allclose(found.components, [[-3, 0], [3, 0], [0, 1], [0, -1]], atol=1e-12)


@pytest.mark.parametrize("table", [torch.full((9, 4), 0.1), torch.ones(1, 4)])
def test_equal_rows_have_no_spectrum(table):
    found = spectrum(table)
    assert set(found.explained_variance_ratio) == {0.0}
    assert (found.effective_rank, found.participation_ratio, found.helix) == (0.0, 0.0, None)
    assert found.n_components_for(0.9) == 0
    assert not found.components.any()
    assert "0 components hold 90 %" in str(found)


def test_rows_are_chosen():
    found = spectrum(linear_table(60), rows=range(10, 50, 4))
    assert found.positions.tolist() == list(range(10, 50, 4))
    assert found.n_components_for(0.999) == 1


def test_the_helix_of_a_sinusoid_is_in_positions():
    """Of every second row too."""
    for rows in (None, range(0, 300, 2)):
        helix = spectrum(sinusoidal(300, 2, base=10.0), rows=rows).helix
        assert helix.period == pytest.approx(2 * np.pi, rel=1e-6)
        assert helix.components == (0, 1)


@pytest.mark.parametrize("size", [1e-200, 1e-100, 1e90, 1e160, 1e300])
def test_numbers_whose_squares_are_none_have_the_spectrum_of_any_others(size):
    rows = np.random.default_rng(0).normal(size=(40, 8)).cumsum(axis=0)
    small, large = spectrum(rows), spectrum(rows * size)
    assert large.explained_variance_ratio == pytest.approx(small.explained_variance_ratio)
    assert large.effective_rank == pytest.approx(small.effective_rank)
