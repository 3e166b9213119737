"""Sums over the diagonals of a matrix: what the offset explains, symmetry, locality."""

from __future__ import annotations

import math

import numpy as np

from ._matrices import MatrixInBlocks


class Diagonals:
    """The mean of each diagonal, by j - i from 1 - n to n - 1, and the variance inside it.

    Sums are taken of differences from a diagonal's first entry, so those of a Toeplitz matrix are exactly zero.
    """

    def __init__(self, source: MatrixInBlocks):
        self.source, n = source, source.n
        self.offsets = np.arange(1 - n, n)
        self.counts = n - np.abs(self.offsets)
        self.first = np.concatenate([source.columns(0, 1)[0, :0:-1], source.block(0, 1)[0]])
        self.sums, self.squares = np.zeros((2, 2 * n - 1))

    def add(self, block: np.ndarray, start: int) -> None:
        """Take in the rows from start on."""
        n, stop = self.source.n, start + len(block)
        # Row i of the matrix of first entries is first[n - 1 - i : 2n - 1 - i].
        first = np.lib.stride_tricks.sliding_window_view(self.first, n)[n - stop : n - start][::-1]
        slanted = _slanted(block - first)
        here = slice(n - stop, n - stop + slanted.shape[1])
        self.sums[here] += slanted.sum(axis=0)
        self.squares[here] += np.einsum("ij,ij->j", slanted, slanted)

    def invariance(self) -> float:
        chosen = self.offsets < 0 if self.source.masked else self.offsets != 0
        within, total = self._variation(chosen)
        return max(0.0, 1 - within / total) if self._varies(total, chosen) else math.nan

    def symmetry(self) -> float:
        everything = np.ones(len(self.offsets), bool)
        _, total = self._variation(everything)
        if self.source.masked or not self._varies(total, everything):
            return math.nan
        return max(0.0, 1 - self.source.antisymmetric() / total)

    def locality(self) -> float:
        if not self.source.is_attention:
            return math.nan
        sums = (self.sums + self.counts * self.first) / self.source.scale
        return float(sums @ np.exp2(-np.abs(self.offsets))) / self.source.n

    def _variation(self, chosen: np.ndarray) -> tuple[float, float]:
        """The squared deviations from the diagonals' means, and from the mean of all."""
        counts, sums, first = self.counts[chosen], self.sums[chosen], self.first[chosen]
        if not len(counts):
            return 0.0, 0.0
        within = float(np.maximum(self.squares[chosen] - sums**2 / counts, 0).sum())
        means = first - first[0] + sums / counts
        between = float(counts @ (means - counts @ means / counts.sum()) ** 2)
        return within, within + between

    def _varies(self, total: float, chosen: np.ndarray) -> bool:
        return total > self.source.noise**2 * int(self.counts[chosen].sum())


def _slanted(block: np.ndarray) -> np.ndarray:
    """Shift each row by one more than the row below it: columns become diagonals, from the last row's first on."""
    n_rows, n_columns = block.shape
    padded = np.zeros((n_rows, n_columns + n_rows))
    padded[:, :n_columns] = block[::-1]
    return padded.ravel()[:-n_rows].reshape(n_rows, n_columns + n_rows - 1)
