"""Bits of positions, given rows."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from probing_tables import linear_table, random_table
from scipy.stats import norm

from posembed import sinusoidal
from posembed.probing import description_length, label_probabilities
from posembed.probing._random import generator
from posembed.probing.description_length import FIRST_BLOCK, _block_ends, _shape

centres = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5).map(np.array)
widths = st.floats(-2, 6).map(lambda power: 10.0**power)


@given(centres, widths, st.sampled_from([0.0, 1e-3, 0.5]), st.integers(2, 200))
def test_the_probabilities_of_all_labels_add_up_to_one(predictions, width, escape, n_labels):
    """Otherwise it would be no code."""
    found = label_probabilities(predictions, width, escape, n_labels)
    assert found.shape == (len(predictions), n_labels)
    assert (found >= escape / n_labels * (1 - 1e-12)).all()
    # Logarithms of up to (n_labels / width)^2 have an error of so many times 1e-16; wide ones are close to each other.
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-10 + 1e-15 * max(n_labels / width, width) ** 2)


@given(st.lists(st.floats(0, 19), min_size=1, max_size=5).map(np.array), st.floats(0.5, 50))
def test_they_are_those_of_the_normal_distribution(predictions, width):
    edges = norm.cdf((np.arange(21) - 0.5 - predictions[:, None]) / width)
    expected = np.diff(edges, axis=1) / (edges[:, -1:] - edges[:, :1])
    np.testing.assert_allclose(label_probabilities(predictions, width, 0.0, 20), expected, rtol=1e-6, atol=1e-12)


def test_a_wide_normal_is_the_uniform_code():
    np.testing.assert_allclose(label_probabilities(np.array([3.0]), 1e5, 0.0, 16), 1 / 16, rtol=1e-6)


@pytest.mark.parametrize("n", [16, 17, 31, 64, 100])
def test_blocks_double_what_was_sent(n):
    ends = _block_ends(n)
    assert ends[0] == FIRST_BLOCK and ends[-1] == n
    assert all(later == min(2 * earlier, n) for earlier, later in itertools.pairwise(ends))


def test_the_parts_add_up():
    found = description_length(linear_table(100, noise=5.0))
    assert found.bits == pytest.approx(sum(found.bits_by_block))
    assert found.uniform_bits == pytest.approx(100 * np.log2(100))
    assert found.compression == pytest.approx(found.uniform_bits / found.bits)
    assert found.bits_by_block[0] == pytest.approx(FIRST_BLOCK * np.log2(100))
    assert found.random_table_bits == pytest.approx(np.mean(found.random_table_runs))
    assert found.permuted_labels_bits == pytest.approx(np.mean(found.permuted_labels_runs))


def test_a_block_costs_what_the_rows_before_it_tell():
    """The receiver decodes with what was sent before: rows that come later play no part."""
    table = linear_table(100, noise=5.0)
    before = description_length(table)
    order = generator(0, "order of sending").permutation(100)
    table[order[before.block_ends[2] :]] += 100.0
    after = description_length(table)
    assert after.bits_by_block[:3] == before.bits_by_block[:3]
    assert after.bits_by_block[3] != before.bits_by_block[3]


def test_a_line_costs_next_to_nothing_once_it_is_known():
    found = description_length(linear_table(256))
    assert sum(found.bits_by_block[1:]) < 0.3 * 256
    assert found.compression > 10


@pytest.mark.parametrize("seed", range(3))
def test_a_random_table_costs_what_the_uniform_code_costs(seed):
    found = description_length(random_table(256, 64, seed=seed))
    for bits in (found.bits, found.random_table_bits, found.permuted_labels_bits):
        assert bits / found.uniform_bits == pytest.approx(1, abs=0.02)


def test_controls_of_a_table_that_knows_are_still_no_better():
    found = description_length(sinusoidal(256, 64))
    assert found.compression > 3
    assert min(*found.random_table_runs, *found.permuted_labels_runs) > 0.97 * found.uniform_bits


def test_less_noise_is_fewer_bits():
    bits = [description_length(linear_table(200, noise=noise)).bits for noise in (0.1, 1.0, 10.0, 1000.0)]
    assert bits == sorted(bits)
    assert bits[-1] == pytest.approx(200 * np.log2(200), rel=0.02)


def test_one_row_unlike_all_others_costs_no_more_than_a_few():
    table = linear_table(256, noise=0.1)
    clean = description_length(table).bits
    table[255] = 0.0
    assert description_length(table).bits < clean + 0.1 * 256 * 8


def test_the_shape_is_that_of_the_errors():
    rng = np.random.default_rng(0)
    labels = rng.integers(200, 800, size=2000).astype(float)
    errors = 5 * rng.normal(size=2000)
    width, escape = _shape(labels + errors, labels, 1000)
    assert width == pytest.approx(5, rel=0.2) and escape < 0.01
    errors[:200] = rng.uniform(-200, 200, size=200)
    width, escape = _shape(labels + errors, labels, 1000)
    assert width == pytest.approx(5, rel=0.2) and 0.05 <= escape <= 0.2


def test_equal_rows_tell_nothing():
    found = description_length(torch.ones(64, 3))
    assert found.compression == pytest.approx(1, abs=0.03)


def test_the_seed_decides():
    table = linear_table(64, noise=5.0)
    first, again, other = (description_length(table, seed=seed).to_dict() for seed in (0, 0, 1))
    assert first == again != other
