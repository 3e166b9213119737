"""Pairs of components that turn together, and those that only seem to."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from probing_tables import random_table

from posembed.probing import spectrum
from posembed.probing.spectrum import _on_grid, _sinusoid
from posembed.probing.spectrum import find_helix as found_in


def circle(n, period, phase=90.0, start=0.3):
    angle = 2 * np.pi * np.arange(n) / period + start
    return np.column_stack([np.cos(angle), np.cos(angle - np.radians(phase))])


def find_helix(scores, total_variance=None, step=1):
    whole = float(((scores - scores.mean(axis=0)) ** 2).sum()) if total_variance is None else total_variance
    return found_in(scores, step=step, total_variance=whole)


@given(st.integers(8, 40), st.floats(0.3, 2.8), st.integers(0, 1000))
def test_what_a_frequency_explains_is_what_least_squares_says(n, frequency, seed):
    y = random_table(n, 3, seed)
    y -= y.mean(axis=0)
    angles = frequency * np.arange(n)
    basis = np.column_stack([np.cos(angles), np.sin(angles), np.ones(n)])
    fitted, *_ = np.linalg.lstsq(basis, y, rcond=None)
    explained, coefficients = _sinusoid(y, frequency)
    np.testing.assert_allclose(explained, ((basis @ fitted) ** 2).sum(axis=0), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(coefficients, fitted[:2], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n", [32, 33, 97, 512])
def test_all_frequencies_at_once_explain_what_each_does(n):
    """Both are sums of n products in float64, so what they differ by is rounding."""
    y = np.cumsum(random_table(n, 3), axis=0)
    y -= y.mean(axis=0)
    grid, explained = _on_grid(y)
    assert grid[0] * n == pytest.approx(np.pi) and grid[-1] == pytest.approx(np.pi - 2 * np.pi / n)
    one_by_one = np.stack([_sinusoid(y, frequency)[0] for frequency in grid])
    np.testing.assert_allclose(explained, one_by_one, rtol=1e-9, atol=1e-11 * one_by_one.max())


@settings(max_examples=25)
@given(st.integers(64, 200), st.floats(3.0, 50.0), st.sampled_from([-90.0, 90.0]), st.floats(0, 6))
def test_a_circle_is_found_with_its_own_period(n, period, phase, start):
    """Which is no whole number, and does not divide the length."""
    found = find_helix(circle(n, period, phase, start), step=3)
    assert found.components == (0, 1)
    assert found.period == pytest.approx(3 * period, rel=1e-6)
    assert found.share == pytest.approx(1, abs=1e-9)
    assert found.phase == pytest.approx(phase, abs=1e-3)


@pytest.mark.parametrize("phase", [60.0, -60.0, 120.0, -120.0])
def test_the_phase_is_that_of_the_second_less_the_first(phase):
    assert find_helix(circle(200, 31.7, phase)).phase == pytest.approx(phase, abs=1e-3)


def test_two_that_swing_to_and_fro_together_are_no_helix():
    assert find_helix(circle(200, 31.7, 10.0)) is None
    assert find_helix(circle(200, 31.7, 175.0)) is None


def test_less_than_a_turn_is_no_helix():
    assert find_helix(circle(200, 240)) is None
    assert find_helix(circle(200, 180)) is not None


def test_noise_leaves_a_share_unexplained():
    scores = circle(400, 37.3) + 0.5 * random_table(400, 2)
    found = find_helix(scores)
    assert found.period == pytest.approx(37.3, rel=0.01)
    # A circle has the variance 1/2 in each direction, the noise 1/4.
    assert found.share == pytest.approx(2 / 3, abs=0.05)


def test_a_thin_ellipse_is_none():
    assert find_helix(circle(300, 37.3) * [1.0, 0.5]) is None


def test_of_two_circles_the_larger_is_taken():
    scores = np.column_stack([circle(300, 20.0), 3 * circle(300, 50.0)])
    assert find_helix(scores).components == (2, 3)
    assert find_helix(scores[:, [0, 2, 1]]).components != (2, 3)


def test_a_circle_that_holds_next_to_nothing_of_the_table_is_none():
    scores = np.column_stack([10 * np.linspace(-1, 1, 300), circle(300, 20.0)])
    assert find_helix(scores) is None
    assert find_helix(scores[:, 1:]) is not None
    assert find_helix(scores[:, 1:], total_variance=float((scores**2).sum())) is None


@pytest.mark.parametrize("n", [32, 100])
def test_random_tables_have_none(n):
    assert all(spectrum(random_table(n, 20, seed=seed)).helix is None for seed in range(5))


def test_random_walks_hardly_ever_have_one():
    """Their components look like waves: were the same size and the same frequency of both not asked for, most would."""
    walks = [np.cumsum(random_table(120, 60, seed=seed), axis=0) for seed in range(40)]
    assert sum(spectrum(walk).helix is not None for walk in walks) <= 4


@pytest.mark.parametrize(("turns_off", "found"), [(0.05, True), (0.5, False)])
def test_a_ring_keeps_an_even_pace(turns_off, found):
    turns = np.linspace(0, 87, 512)
    turns += turns_off / 2 * np.sin(np.linspace(0, 3 * np.pi, 512))
    assert (find_helix(np.column_stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)])) is not None) == found


def test_few_rows_fit_anything():
    assert find_helix(circle(31, 8.0)) is None
    assert find_helix(circle(32, 8.0)) is not None


def test_nothing_turns_in_equal_rows():
    assert find_helix(np.zeros((100, 4))) is None
    assert find_helix(np.zeros((100, 0))) is None
