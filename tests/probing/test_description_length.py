"""Bits of positions, given rows."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probing_tables import linear_table, random_table
from scipy.stats import norm

from posembed import sinusoidal
from posembed.probing import Ridge, description_length
from posembed.probing.description_length import _shape, code_bits
from posembed.seeds import generator

centres = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5).map(np.array)
widths = st.floats(-2, 6).map(lambda power: 10.0**power)


def probabilities(predictions, width, escape, n_labels):
    """That the code gives to each label."""
    return np.exp2(-code_bits(predictions[:, None], np.arange(n_labels)[None], width, escape, n_labels))


@given(centres, widths, st.sampled_from([1e-9, 1e-3, 0.5]), st.integers(2, 200))
def test_the_probabilities_of_all_labels_add_up_to_one(predictions, width, escape, n_labels):
    """Otherwise it would be no code."""
    found = probabilities(predictions, width, escape, n_labels)
    assert (found >= escape / n_labels * (1 - 1e-12)).all()
    # Logarithms of up to (n_labels / width)^2 have an error of so many times 1e-16; wide ones are close to each other.
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-10 + 1e-15 * max(n_labels / width, width) ** 2)


@given(st.lists(st.floats(0, 19), min_size=1, max_size=5).map(np.array), st.floats(0.5, 50))
def test_they_are_those_of_the_normal_distribution_and_of_an_even_one(predictions, width):
    edges = norm.cdf((np.arange(21) - 0.5 - predictions[:, None]) / width)
    expected = 0.75 * np.diff(edges, axis=1) / (edges[:, -1:] - edges[:, :1]) + 0.25 / 20
    np.testing.assert_allclose(probabilities(predictions, width, 0.25, 20), expected, rtol=1e-6)


@pytest.mark.parametrize("n", [16, 17, 40])
def test_the_bits_are_those_of_blocks_that_double_each_coded_by_what_was_sent_before(n):
    table = linear_table(n, noise=5.0)
    order = generator(3, "order of sending").permutation(n)
    x, labels, ends = table[order], order.astype(float), [*(end for end in (8, 16, 32) if end < n), n]
    expected = 8 * np.log2(n)
    for start, stop in itertools.pairwise(ends):
        ridge = Ridge(seed=3).fit(x[:start], labels[:start])
        shape = _shape(labels[:start] - ridge.left_out_errors_[:, 0], labels[:start], n)
        expected += code_bits(ridge.predict(x[start:stop]), labels[start:stop], *shape, n).sum()
    found = description_length(table, seed=3)
    assert found.bits == pytest.approx(expected)
    assert found.uniform_bits == pytest.approx(n * np.log2(n))
    assert found.compression == pytest.approx(found.uniform_bits / found.bits)


def test_a_line_costs_next_to_nothing_once_it_is_known():
    found = description_length(linear_table(256))
    assert found.bits - 8 * 8 < 0.3 * 256 and found.compression > 10


def test_a_random_table_costs_what_the_uniform_code_costs():
    found = description_length(random_table(256, 64))
    for bits in (found.bits, found.random_table_bits, found.permuted_labels_bits):
        assert bits / found.uniform_bits == pytest.approx(1, abs=0.02)


def test_controls_of_a_table_that_knows_are_still_no_better():
    found = description_length(sinusoidal(256, 64))
    assert found.compression > 3
    assert min(found.random_table_bits, found.permuted_labels_bits) > 0.97 * found.uniform_bits


def test_the_shape_is_that_of_the_errors():
    rng = np.random.default_rng(0)
    labels = rng.integers(200, 800, size=2000).astype(float)
    errors = 5 * rng.normal(size=2000)
    width, escape = _shape(labels + errors, labels, 1000)
    assert width == pytest.approx(5, rel=0.2) and escape < 0.01
    errors[:200] = rng.uniform(-200, 200, size=200)
    width, escape = _shape(labels + errors, labels, 1000)
    assert width == pytest.approx(5, rel=0.2) and 0.05 <= escape <= 0.2
