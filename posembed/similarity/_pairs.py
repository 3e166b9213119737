"""Counts over pairs of offsets: how often the nearer of two is the larger, in O(L^2 log L)."""

from __future__ import annotations

import math

import numpy as np

from ._matrices import MatrixInBlocks


class Pairs:
    """How many pairs of offsets are in order, tied, and there at all."""

    def __init__(self, source: MatrixInBlocks, max_offset: int | None):
        self.source, n = source, source.n
        self.reach = min(max_offset or n, n - 1)
        self.in_order = self.tied = self.all = 0

    def add(self, block: np.ndarray, start: int) -> None:
        """Take in the rows from start on."""
        rows = np.arange(start, start + len(block))[:, None]
        before = np.minimum(rows, self.reach)
        after = np.zeros_like(rows) if self.source.causal else np.minimum(self.source.n - 1 - rows, self.reach)
        self.all += int((before * (before - 1) + after * (after - 1)).sum()) // 2
        if (before + after).max() > 1:
            values = _from_near_to_far(block, rows, before, after)
            tied = self.source.tied[start : start + len(block), None]
            in_order, equal = _count(values, before, before + after, tied)
            self.in_order, self.tied = self.in_order + in_order, self.tied + equal

    def monotonicity(self) -> float:
        return (self.in_order + self.tied / 2) / self.all if self.all else math.nan


def _from_near_to_far(block: np.ndarray, rows: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Lay each row out as its past, then its future, each from the diagonal outwards, then infinity."""
    places = np.arange((before + after).max())
    columns = np.where(places < before, rows - 1 - places, rows + 1 + places - before)
    there = places < before + after
    values = np.take_along_axis(block, np.where(there, columns, 0), axis=1)
    return np.where(there, values, np.inf)


def _count(values: np.ndarray, before: np.ndarray, there: np.ndarray, tied: np.ndarray) -> tuple[int, int]:
    """Count, within each part of each row, the pairs whose earlier value is larger, and those that are tied.

    Values that follow each other by no more than `tied` in the order of their size make one group of ties. Each value
    becomes one integer: its part, its group, its place. Sorted, these give the places in the order of the values, ties
    in the order of their places; out of order there, as they were in the row, are the pairs whose earlier value is
    larger, and those alone, because a part's places all come before the next part's.
    """
    n_rows, width = values.shape
    bits = (width - 1).bit_length()
    order = np.argsort(values, axis=1)
    ranked = np.take_along_axis(values, order, axis=1)
    groups = np.zeros((n_rows, width), np.int64)
    with np.errstate(invalid="ignore"):  # infinity less infinity, of two places that are not there
        np.cumsum(ranked[:, 1:] - ranked[:, :-1] > tied, axis=1, out=groups[:, 1:])
    keys = ((order >= before).astype(np.int64) << bits | groups) << bits | order
    keys = keys.astype(np.int32 if 2 * bits < 31 else np.int64)
    keys.sort(axis=1)
    absent = width - there
    ties = _tied_pairs(keys >> bits) - int((absent * (absent - 1)).sum()) // 2
    return _inversions(keys & ((1 << bits) - 1)), ties


def _tied_pairs(ranked: np.ndarray) -> int:
    """Count the pairs of equal numbers in each row, in all; equal ones stand side by side."""
    starts = np.ones(ranked.shape, bool)
    np.not_equal(ranked[:, 1:], ranked[:, :-1], out=starts[:, 1:])
    if starts.all():
        return 0
    places = np.arange(ranked.shape[1])
    # Each number makes a pair with all those since its run began.
    return int((places - np.maximum.accumulate(np.where(starts, places, 0), axis=1)).sum())


def _inversions(orders: np.ndarray) -> int:
    """Count the pairs "larger before smaller" in rows that are orders of 0 to width - 1.

    A pair is counted at the highest bit in which its numbers differ: among numbers with the same higher bits, each zero
    that a one precedes stands one place further right than it would if they were sorted.
    """
    n_rows, width = orders.shape
    sorted_row = np.arange(width)[None]
    orders = orders.astype(np.uint16 if width <= 2**16 else np.uint32)
    return _places_of_zeros(orders) - n_rows * _places_of_zeros(sorted_row)


def _places_of_zeros(orders: np.ndarray) -> int:
    """Sum the columns of all zero bits, each bit seen in the order that sorting by the bits above it leaves."""
    (n_rows, width), total = orders.shape, 0
    for bit in reversed(range((width - 1).bit_length())):
        is_one = (orders & (1 << bit)).ravel() != 0
        zeros, ones = np.flatnonzero(~is_one), np.flatnonzero(is_one)
        n_zeros = len(zeros) // n_rows  # the same in each row
        total += int(zeros.sum()) - n_zeros * width * (n_rows * (n_rows - 1) // 2)
        flat, orders = orders.ravel(), np.empty_like(orders)
        orders[:, :n_zeros] = flat[zeros].reshape(n_rows, n_zeros)
        orders[:, n_zeros:] = flat[ones].reshape(n_rows, width - n_zeros)
    return total
