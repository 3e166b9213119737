"""Centre the rows of a table and divide by one number for all its columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class Scaling(NamedTuple):
    """What was subtracted and divided by, to do the same to other rows.

    `unit` comes first and is a power of two, so that neither squares of huge entries overflow nor those of tiny ones
    vanish. A table of equal rows has the scale zero and becomes zeros.
    """

    unit: float
    centre: Float[np.ndarray, " d_model"]
    scale: float

    def apply(self, x: Float[np.ndarray, "n d_model"]) -> Float[np.ndarray, "n d_model"]:
        """Centre and divide rows as the fitted ones were."""
        if self.scale == 0:
            return np.zeros_like(x)
        moved = x / self.unit
        moved -= self.centre
        moved /= self.scale
        return moved


def fitted_scaling(x: Float[np.ndarray, "n d_model"]) -> Scaling:
    """The column means and the one root mean square of all centred entries.

    Columns are not divided by their own spread: that blows up those which hold nothing but noise (GPT-2's first 512
    rows are read with an error of 8 positions then, and of 1 without).
    """
    unit = power_of_two(x)
    moved = x / unit
    # Less the first row before the mean is taken: equal rows then give zeros, not the rounding of a mean.
    first = moved[0].copy()
    moved -= first
    mean = moved.mean(axis=0)
    moved -= mean
    return Scaling(unit, first + mean, root_mean_square(moved))


def power_of_two(x: Float[np.ndarray, "..."]) -> float:
    """The largest power of two up to the largest absolute entry; 1 where all are zero."""
    largest = float(np.abs(x).max())
    return 2.0 ** max(int(np.floor(np.log2(largest))), -1022) if largest > 0 else 1.0


def root_mean_square(x: Float[np.ndarray, "..."]) -> float:
    """The root of the mean of the squares, without overflow or underflow."""
    largest = float(np.abs(x).max())
    return largest * float(np.sqrt(np.mean((x / largest) ** 2))) if largest > 0 else 0.0
