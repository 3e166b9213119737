"""What a few seeds say: a mean with an interval, and differences between runs that share a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import RunError


@dataclass(frozen=True)
class Interval:
    """A mean over runs and the interval that holds the true mean in so many of a hundred such experiments.

    Attributes:
        mean: of the values.
        low: the lower end.
        high: the upper end.
        n: the number of values.

    Example:
        >>> from posembed.experiments import Interval
        >>> print(Interval(0.5, 0.4, 0.6, 5))
        0.500 (0.400 to 0.600, 5 seeds)
    """

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f}, {self.n} seeds)"

    @property
    def excludes_zero(self) -> bool:
        """Whether zero lies outside."""
        return self.low > 0 or self.high < 0


def interval(values: Sequence[float], *, level: float | int = 0.95) -> Interval:
    """The mean of independent values and Student's t interval.

    Args:
        values: at least two; one for each seed.
        level: the share of experiments whose interval holds the true mean, between 0 and 1.

    Returns:
        The interval. It takes the values to be normally distributed, which a few seeds can neither show nor refute.

    Raises:
        RunError: fewer than two values, one that is no finite number, or a level that is no share.

    Example:
        >>> from posembed.experiments import interval
        >>> print(interval([1.0, 2.0, 3.0]))
        2.000 (-0.484 to 4.484, 3 seeds)
    """
    from scipy.stats import t

    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise RunError(f"level is {level!r}; it must lie between 0 and 1")
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 1 or len(array) < 2 or not np.isfinite(array).all():
        given = " ".join(repr(values).split())
        raise RunError(f"an interval needs at least two finite numbers, one for each seed; given were {given}")
    mean, error = float(array.mean()), float(array.std(ddof=1) / len(array) ** 0.5)
    reach = float(t.ppf((1 + level) / 2, len(array) - 1)) * error
    return Interval(mean, mean - reach, mean + reach, len(array))


def difference(values: Sequence[float], others: Sequence[float], *, level: float | int = 0.95) -> Interval:
    """The mean difference of values that belong together pair by pair: the same seed, hence the same batches.

    Args:
        values: one for each seed.
        others: one for each seed, in the same order.
        level: as for `interval`.

    Raises:
        RunError: another number of values than of others, or what `interval` refuses.

    Example:
        >>> from posembed.experiments import difference
        >>> print(difference([1.0, 2.0, 3.0], [0.9, 1.8, 2.7]))
        0.200 (-0.048 to 0.448, 3 seeds)
    """
    if len(values) != len(others):
        raise RunError(f"{len(values)} values cannot be paired with {len(others)}; give one of each for each seed")
    return interval([a - b for a, b in zip(values, others, strict=True)], level=level)
