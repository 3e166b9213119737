"""Means with their intervals: of seeds, and of positions whose neighbours are alike."""

import numpy as np
import pandas as pd
import pytest
import torch

from posembed import probing, training
from posembed.errors import ProbeInputError
from posembed.seeds import generator
from posembed.stats import N_RESAMPLES, Interval, difference, family, interval, mean_interval


def test_the_interval_is_students():
    """t with 4 degrees of freedom is 2.776 at 97.5 %: any table of it says so."""
    values = [2.0, 4.0, 4.0, 5.0, 5.0]
    found = interval(values)
    reach = 2.776445 * np.std(values, ddof=1) / np.sqrt(5)
    assert (found.mean, found.n) == (4.0, 5)
    assert (found.low, found.high) == pytest.approx((4 - reach, 4 + reach), abs=1e-5)
    assert str(found) == "4.000 (2.479 to 5.521, 5 seeds)"


def test_a_difference_takes_what_seeds_share_away():
    values = [1.0, 2.0, 3.0, 4.0]
    found = difference([value + 0.1 for value in values], values)
    assert (found.mean, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))
    assert found.excludes_zero and difference(values, [value + 0.1 for value in values]).excludes_zero
    assert not interval(values[:2]).excludes_zero
    assert not Interval(1.0, 0.0, 2.0, 2).excludes_zero and not Interval(-1.0, -2.0, 0.0, 2).excludes_zero
    wide = difference(values, values[::-1], level=0.99)
    assert (wide.mean, wide.high) == pytest.approx((0, interval([-3.0, -1.0, 1.0, 3.0], level=0.99).high))


@pytest.mark.parametrize(("n", "block", "level"), [(2, 1, 0.9), (3, 1, 0.95), (10, 4, 0.95), (16, 4, 0.5)])
def test_the_bootstrap_draws_blocks_of_neighbours_and_the_first_follows_the_last(n, block, level):
    values, blocks = np.random.default_rng(n).normal(size=n), -(-n // block)
    starts = generator(3, "bootstrap").integers(n, size=(N_RESAMPLES, blocks))
    means = [np.mean([values[(at + k) % n] for at in row for k in range(block)][:n]) for row in starts]
    found = mean_interval(values, level=level, seed=3)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    assert (found.level, found.block) == (level, block)


def test_of_sums_it_is_that_of_the_mean_of_all_that_was_added():
    """Each resample is the sum of some texts' errors over the number of their tokens."""
    sums, sizes = np.array([0.0, 6.0, 3.0, 0.0, 8.0]), np.array([9, 2, 3, 9, 4])
    starts = generator(3, "bootstrap").integers(5, size=(N_RESAMPLES, 3))
    drawn = np.array([[(at + k) % 5 for at in row for k in range(2)][:5] for row in starts])
    found = mean_interval(sums, sizes=sizes, seed=3)
    low, high = np.quantile(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), [0.025, 0.975])
    assert (found.low, found.high) == pytest.approx((low, high)) and found.low >= 0
    assert mean_interval(4 * sums, sizes=np.full(5, 4)).high == pytest.approx(mean_interval(sums).high)


def test_of_independent_values_it_is_about_that_of_students():
    values = np.random.default_rng(0).normal(size=2000)
    found = mean_interval(values)
    assert (found.high - found.low) / (2 * 1.96 * values.std() / 2000**0.5) == pytest.approx(1, abs=0.15)
    assert mean_interval(values) == found != mean_interval(values, seed=1)


def test_the_names_are_also_where_readers_look_for_them():
    assert training.interval is interval and training.difference is difference
    assert probing.mean_interval is mean_interval


def test_holms_correction_by_hand():
    """By hand: 0.01 x 4, 0.02 x 3, then 0.03 x 2 and 0.04 x 1, of which none falls below the one before."""
    p_values = dict(zip("abcd", (0.03, 0.01, 0.04, 0.02), strict=True))
    found = family({name: Interval(0.0, 0.0, 0.0, 5, p) for name, p in p_values.items()})
    np.testing.assert_allclose(found["holm"], [0.06, 0.04, 0.06, 0.06])
    assert family({"one": Interval(0.0, -1.0, 1.0, 5, 0.9), "two": Interval(0.0, -1.0, 1.0, 5, 0.8)})["holm"].max() == 1


def test_of_forty_intervals_about_two_leave_out_zero_if_every_true_mean_is_zero():
    """And Holm's correction leaves any in about 5 of 100 such studies; where nothing is zero most do."""
    draws = np.random.default_rng(0).normal(size=(400, 40, 5))
    studies = [[interval(values) for values in study] for study in draws.tolist()]
    left_out = [sum(each.excludes_zero for each in study) for study in studies]
    # Its standard error is 0.07, and that of the share below 0.01.
    assert np.mean(left_out) == pytest.approx(2, abs=0.25)
    kept = [(family({str(n): each for n, each in enumerate(study)})["holm"] < 0.05).any() for study in studies]
    assert np.mean(kept) < 0.05 + 0.03
    real = [interval(values).excludes_zero for values in (3 + draws[0]).tolist()]
    assert sum(real) > 35


def test_p_is_that_of_students_test():
    """t = 2 / (1 / sqrt(4)) = 4 with three degrees of freedom."""
    values = 2 + np.array([-1.0, 1.0, -1.0, 1.0]) * (3 / 4) ** 0.5
    assert interval(values.tolist()).p == pytest.approx(0.0280, abs=5e-5)
    assert interval((-values).tolist()).p == interval(values.tolist()).p


@pytest.mark.bad_input  # what type checkers refuse is right all the same
def test_intervals_are_computed_in_float64_whatever_is_given():
    exact = np.random.default_rng(0).normal(size=256).astype("f2")
    (one, other) = (mean_interval(exact.astype(kind)) for kind in ("f2", "f8"))
    assert (one.low, one.high) == (other.low, other.high)
    assert interval(torch.tensor([1.0, 2.0, 3.0], dtype=torch.bfloat16)).mean == 2.0
    turned = torch.complex(torch.ones(3), torch.tensor([1.0, 2.0, 3.0])).conj().imag  # its sign is a mark
    assert interval(turned).mean == -2.0


@pytest.mark.bad_input
def test_sizes_in_another_order_of_rows_are_refused():
    values, sizes = pd.Series([10.0, 40.0, 90.0], list("abc")), pd.Series([3, 2, 1], list("cba"))
    with pytest.raises(ProbeInputError, match="not the same, in one order"):
        mean_interval(values, sizes=sizes)
    assert mean_interval(values, sizes=sizes[values.index]).high < 40


@pytest.mark.parametrize("sizes", [np.ones(20), np.ones(80), np.zeros(40), np.full(40, np.nan)])
def test_sizes_that_are_not_one_a_value_are_refused(sizes):
    with pytest.raises(ProbeInputError, match="give a number above 0 for each of 40 values"):
        mean_interval(np.arange(40.0), sizes=sizes)
