"""Means with their intervals."""

import numpy as np
import pytest

from posembed.errors import RunError
from posembed.experiments import difference, interval


def test_the_interval_is_students():
    """t with 4 degrees of freedom is 2.776 at 97.5 %: any table of it says so."""
    values = [2.0, 4.0, 4.0, 5.0, 5.0]
    found = interval(values)
    reach = 2.776445 * np.std(values, ddof=1) / np.sqrt(5)
    assert (found.mean, found.n) == (4.0, 5)
    assert (found.low, found.high) == pytest.approx((4 - reach, 4 + reach), abs=1e-5)


def test_nineteen_of_twenty_intervals_hold_the_mean():
    draws = np.random.default_rng(0).normal(3.0, 2.0, size=(2000, 5))
    held = np.mean([interval(list(row)).low <= 3.0 <= interval(list(row)).high for row in draws])
    assert held == pytest.approx(0.95, abs=0.015)  # three standard errors


def test_a_difference_takes_what_seeds_share_away():
    values = [1.0, 2.0, 3.0, 4.0]
    found = difference([value + 0.1 for value in values], values)
    assert found.low == pytest.approx(0.1) and found.high == pytest.approx(0.1)
    assert found.excludes_zero
    assert not interval(values[:2]).excludes_zero
    assert difference(values, [value + 0.1 for value in values]).excludes_zero


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "values", [[], [1.0], [1.0, float("nan")], [1.0, float("inf")], 1.0, "ab", [1.0, "b"], np.ones((2, 2))], ids=str
)
def test_what_has_no_interval(values):
    with pytest.raises(RunError, match="at least two finite numbers") as caught:
        interval(values)
    assert "\n" not in str(caught.value)


@pytest.mark.bad_input
@pytest.mark.parametrize("level", [0, 1, 95, -0.95, float("nan"), "95 %", True])
def test_a_level_that_is_no_share(level):
    with pytest.raises(RunError, match="level is .*; it must lie between 0 and 1"):
        interval([1.0, 2.0], level=level)


def test_pairs_need_partners():
    with pytest.raises(RunError, match="3 values cannot be paired with 2"):
        difference([1.0, 2.0, 3.0], [1.0, 2.0])
