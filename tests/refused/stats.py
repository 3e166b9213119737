"""Refused where an interval would say something wrong."""

import numpy as np
import pandas

from posembed.errors import ProbeInputError, RunError
from posembed.stats import Interval, difference, family, interval, mean_interval

CASES = {
    "one seed": (RunError, lambda: interval([1.0]), "an interval needs at least two finite numbers, one for each seed"),
    "a seed that failed": (RunError, lambda: interval([1.0, np.nan]), "at least two finite numbers"),
    "a level in percent": (
        RunError,
        lambda: interval([1.0, 2.0], level=95),
        "level is 95; it must be a number from 0 to 1",
    ),
    "seeds without partners": (RunError, lambda: difference([1.0, 2.0, 3.0], [1.0, 2.0]), "cannot be paired; give two"),
    "seeds in another order": (
        RunError,
        lambda: difference(pandas.Series([1.0, 2.0], [1, 2]), pandas.Series([1.9, 0.9], [2, 1])),
        "align them by seed first",
    ),
    "one number for all seeds": (RunError, lambda: difference([1.0, 2.0], 1.5), "cannot be paired; give two lists"),
    "masked numbers, which would count": (
        RunError,
        lambda: interval(np.ma.masked_array([1.0, 2.0, 1e6], mask=[0, 0, 1])),
        "at least two finite numbers",
    ),
    "complex numbers, of which a part would be lost": (
        ProbeInputError,
        lambda: mean_interval(np.array([1 + 1j, 2.0])),
        "there is no interval of",
    ),
    "a contrast without its p": (
        RunError,
        lambda: family({"one": interval([1.0, 2.0]), "other": Interval(0.0, -1.0, 1.0, 5)}),
        "the contrast 'other' has no p from 0 to 1",
    ),
    "an interval of one value": (
        ProbeInputError,
        lambda: mean_interval([1.0]),
        "give at least two numbers, one for each position or text",
    ),
}
