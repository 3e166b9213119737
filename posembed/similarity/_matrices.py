"""A matrix that is read in blocks of rows: as it was given, or of the similarities of a table's rows."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ..tables import check_finite_rows

# Entries of a matrix in work at a time; each array that is made of them takes a megabyte.
BLOCK = 2**17
# Two similarities of a row count as tied up to this part of the largest that its norm allows. A dot product of a
# thousand numbers in float64 is off by 1e-14 of that, and numbers stored in float32 mean nothing below 1e-8 of it.
TIED = 1e-12
# The rows of an attention map sum to one within the larger of this and eight roundings of its format.
SUM_TOLERANCE, ROUNDINGS = 1e-5, 8
# Smaller numbers are scaled no further: the power of two would itself overflow.
LEAST_EXPONENT = -1000


class MatrixInBlocks:
    """A matrix in blocks.

    Attributes:
        n: the number of rows and columns.
        tied: the difference up to which two entries of each row count as tied.
        noise: the standard deviation up to which nothing varies.
        scale: what the entries were multiplied by, so that no square overflows.
        causal: whether monotonicity looks at the past alone.
        masked: whether the future holds minus infinity, which blocks have as zero.
        is_attention: whether the rows are probabilities.
    """

    n: int
    tied: np.ndarray
    noise: float
    scale = 1.0
    causal = masked = is_attention = False

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return the rows from start to stop."""
        raise NotImplementedError

    def columns(self, start: int, stop: int) -> np.ndarray:
        """Return the columns from start to stop, as rows."""
        raise NotImplementedError

    def antisymmetric(self) -> float:
        """Return ||A - A^T||^2 / 4."""
        parts = (self.block(*each) - self.columns(*each) for each in blocks(self.n))
        return sum(float(np.einsum("ij,ij->", part, part)) for part in parts) / 4


class Similarities(MatrixInBlocks):
    """The similarities of a table's rows; the whole matrix is never made."""

    def __init__(self, weight: Tensor, *, cosine: bool):
        sizes = weight.abs().amax(dim=1, keepdim=True) if cosine else weight.abs().amax()
        # A power of two changes no digit.
        self.weight = torch.ldexp(weight, -torch.frexp(sizes).exponent.clamp(min=LEAST_EXPONENT))
        norms = self.weight.norm(dim=1)
        if cosine:
            self.weight /= torch.where(norms > 0, norms, 1.0)[:, None]
            norms = (norms > 0).double()
        self.n = len(weight)
        self.tied = (TIED * norms * norms.max()).numpy()
        self.noise = float(TIED * norms.max() ** 2)

    def block(self, start: int, stop: int) -> np.ndarray:
        return (self.weight[start:stop] @ self.weight.T).numpy()

    columns = block

    def antisymmetric(self) -> float:
        return 0.0


class Matrix(MatrixInBlocks):
    """A matrix as it was given."""

    def __init__(self, values: Tensor | np.ndarray):
        self.values, self.n = values, len(values)
        rounding = _rounding(values)
        found = _Survey(self.n)
        for start, stop in blocks(self.n):
            found.add(self._numbers(slice(start, stop)), start)
        found.check()
        self.masked, self.causal = found.masked, not found.open_future
        self.is_attention = found.is_attention(max(SUM_TOLERANCE, ROUNDINGS * rounding))
        # A power of two changes no digit.
        self.scale = 2.0 ** -max(math.frexp(found.largest)[1], LEAST_EXPONENT)
        self.noise = rounding * found.largest * self.scale
        self.tied = np.zeros(self.n)

    def block(self, start: int, stop: int) -> np.ndarray:
        return self._scaled(self._numbers(slice(start, stop)))

    def columns(self, start: int, stop: int) -> np.ndarray:
        return self._scaled(self._numbers(slice(None), slice(start, stop)).T)

    def _numbers(self, rows: slice, columns: slice = slice(None)) -> np.ndarray:
        part = self.values[rows, columns]
        return part.detach().cpu().double().numpy() if isinstance(part, Tensor) else part.astype(np.float64)

    def _scaled(self, part: np.ndarray) -> np.ndarray:
        return self.scale * (np.where(np.isneginf(part), 0.0, part) if self.masked else part)


class _Survey:
    """What kind of matrix it is, from its rows."""

    def __init__(self, n: int):
        self.n, self.rows_of_future, self.bad = n, np.zeros(n, bool), np.zeros(n, bool)
        self.open_future = self.partly_open = False
        self.largest = self.least = self.uneven = 0.0

    def add(self, rows: np.ndarray, start: int) -> None:
        """Take in the rows from start on."""
        here, places = slice(start, start + len(rows)), np.arange(self.n)
        absent = np.isneginf(rows) & (places > places[here, None])
        numbers = np.where(absent, 0.0, rows)
        self.rows_of_future[here] = absent.any(axis=1)
        self.bad[here] = ~np.isfinite(numbers).all(axis=1)
        self.open_future |= bool(np.triu(numbers, start + 1).any())
        self.partly_open |= bool((absent.sum(axis=1) < self.n - 1 - places[here]).any())
        self.largest = max(self.largest, float(np.abs(numbers).max()))
        self.least = min(self.least, float(numbers.min()))
        self.uneven = max(self.uneven, float(np.abs(numbers.sum(axis=1) - 1).max()))

    def check(self) -> None:
        check_finite_rows(self.bad, range(self.n), "the matrix", "only the future may be minus infinity")
        # A zero among minus infinities is a bias, not what a mask left out.
        if self.open_future or self.partly_open:
            advice = "minus infinity may only fill the whole future, above the diagonal"
            check_finite_rows(self.rows_of_future, range(self.n), "the matrix", advice)

    @property
    def masked(self) -> bool:
        return bool(self.rows_of_future.any())

    def is_attention(self, tolerance: float) -> bool:
        return not self.masked and self.least >= 0 and self.uneven <= tolerance


def _rounding(values: Tensor | np.ndarray) -> float:
    return float(torch.finfo(values.dtype).eps if isinstance(values, Tensor) else np.finfo(values.dtype).eps)


def blocks(n: int) -> Iterator[tuple[int, int]]:
    step = max(1, BLOCK // n)
    for start in range(0, n, step):
        yield start, min(start + step, n)
