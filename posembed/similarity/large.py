"""The properties of tables with so many rows that a matrix of all their similarities would not fit into memory."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from ..seeds import generator

# The most rows whose similarities are all formed.
MOST_ROWS = 4096
# How many pairs of similarities are compared at random, and how many at a time.
N_PAIRS, AT_ONCE = 2**20, 2**14
# Below this share of their mean square the variance of the similarities is rounding.
ROUNDING = 1e-12


def sampled_monotonicity(x: Float[np.ndarray, "n d_model"], tied: Float[np.ndarray, " n"], reach: int) -> float:
    """The monotonicity of rows, from pairs of offsets drawn at random; each side of a row has as many as it holds.

    Args:
        x: the rows, of which two sides hold two offsets at least.
        tied: the difference up to which two similarities of each row count as tied.
        reach: the largest offset.

    Returns:
        An estimate with a standard error of 0.0005 at most.
    """
    n, draw = len(x), generator(0, "pairs of offsets")
    # Of each side of each row, how many offsets it has: the past of all rows, then their future.
    lengths = np.minimum(np.concatenate([np.arange(n), np.arange(n)[::-1]]), reach)
    until = np.cumsum(lengths * (lengths - 1) // 2)
    if not until[-1]:
        return math.nan
    points = 0.0
    for _ in range(N_PAIRS // AT_ONCE):
        side = np.searchsorted(until, draw.integers(until[-1], size=AT_ONCE), side="right")
        row, sign = side % n, np.where(side < n, -1, 1)
        one, other = draw.integers(1, lengths[side] + 1), draw.integers(1, lengths[side])
        # Two different offsets, each pair as likely as any.
        other += other >= one
        near, far = np.minimum(one, other), np.maximum(one, other)
        less = np.einsum("nd,nd->n", x[row], x[row + sign * near] - x[row + sign * far])
        points += float(np.where(np.abs(less) <= tied[row], 0.5, less > 0).sum())
    return points / (N_PAIRS // AT_ONCE * AT_ONCE)


def invariance_and_variance(x: Float[np.ndarray, "n d_model"]) -> tuple[float, bool]:
    """The translation invariance of the similarities of rows, exactly, and whether all of them together vary.

    Sums along the diagonals are the autocorrelation of the columns; the sum of all squares is that of the products of
    the columns, a much smaller matrix.
    """
    n = len(x)
    power = sum(np.abs(np.fft.rfft(column, 2 * n)) ** 2 for column in x.T)
    sums, counts = np.fft.irfft(power)[1:n], np.arange(n - 1, 0, -1)
    squares = float(((x.T @ x) ** 2).sum())
    # Above the main diagonal.
    above = (squares - float(((x**2).sum(axis=1) ** 2).sum())) / 2
    apart = above - float(sums.sum()) ** 2 / int(counts.sum())
    within = above - float((sums**2 / counts).sum())
    total = squares - float((x.sum(axis=0) ** 2).sum()) ** 2 / n**2
    return (1 - max(within, 0.0) / apart if apart > ROUNDING * above else math.nan), total > ROUNDING * squares
