"""The properties of a position table, against loops over rows, sides and offsets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from scipy.stats import kendalltau
from torch import Tensor

from posembed import sinusoidal
from posembed.similarity import properties

from .case import Candidate, Case
from .goals import faster_than

N_POSITIONS, D_MODEL, QUICK_POSITIONS, QUICK_D_MODEL = 1024, 768, 24, 8
# Sums of a million numbers in float64, in another order.
ROUNDED = 1e-10


def cases(quick: bool) -> list[Case]:
    """One table, whose 1024 rows make a million similarities."""
    size = (QUICK_POSITIONS, QUICK_D_MODEL) if quick else (N_POSITIONS, D_MODEL)
    plain = "row by row, side by side, offset by offset against all larger offsets, as the definition reads"
    counting = "the same loops, ties counted once for each side"
    rows = "all pairs of a side at once: a whole matrix for each"
    kendall = "the rank correlation of each side"
    candidates = [
        Candidate("posembed", _posembed, "monotonicity, translation invariance and symmetry"),
        Candidate("plain loops", _calling(_loop_over_offsets), plain, once=True),
        Candidate("tuned loops", _calling(_count_larger), counting),
        Candidate("row by row", _calling(_compare_pairs), rows),
        Candidate("scipy kendalltau", _calling(_correlate_ranks), kendall),
    ]
    name, reference = f"table {size[0]} x {size[1]}", partial(_all_three, in_order=_compare_pairs)
    return [
        Case(
            "properties", name, partial(_table, *size), candidates, reference, ROUNDED, [faster_than("plain loops", 40)]
        )
    ]


def _table(n_positions: int, d_model: int) -> Tensor:
    """Sinusoids under noise: similarities fall with the distance, and no two are equal."""
    noise = torch.randn(n_positions, d_model, generator=torch.Generator().manual_seed(0))
    return sinusoidal(n_positions, d_model) + noise


def _posembed(table: Tensor) -> Callable[[], Tensor]:
    def call() -> Tensor:
        found = properties(table)
        return torch.tensor([found.monotonicity, found.translation_invariance, found.symmetry], dtype=torch.float64)

    return call


def _calling(in_order: Callable[[np.ndarray], float]) -> Callable[[Tensor], Callable[[], Tensor]]:
    return lambda table: partial(_all_three, table, in_order=in_order)


def _all_three(table: Tensor, *, in_order: Callable[[np.ndarray], float]) -> Tensor:
    """As in the definitions; `in_order` counts the pairs of a side, nearest first, whose nearer value is larger."""
    table = table.double()
    matrix = (table @ table.T).numpy()
    n = len(matrix)
    points = sum(in_order(matrix[i, :i][::-1]) + in_order(matrix[i, i + 1 :]) for i in range(n))
    n_pairs = sum(i * (i - 1) for i in range(n))
    diagonals = [np.diagonal(matrix, offset) for offset in range(1 - n, n) if offset]
    within = sum(((each - each.mean()) ** 2).sum() for each in diagonals)
    total = matrix[~np.eye(n, dtype=bool)].var() * n * (n - 1)
    uneven = ((matrix - matrix.T) ** 2).sum() / (4 * ((matrix - matrix.mean()) ** 2).sum())
    return torch.tensor([points / n_pairs, 1 - within / total, 1 - uneven], dtype=torch.float64)


def _loop_over_offsets(side: np.ndarray) -> float:
    points = 0.0
    for m in range(len(side)):
        further = side[m + 1 :]
        points += (side[m] > further).sum() + 0.5 * (side[m] == further).sum()
    return points


def _count_larger(side: np.ndarray) -> float:
    larger = sum(np.count_nonzero(side[m] > side[m + 1 :]) for m in range(len(side) - 1))
    return larger + _ties(side) / 2


def _compare_pairs(side: np.ndarray) -> float:
    larger = np.count_nonzero(np.triu(side[:, None] > side, 1))
    return larger + _ties(side) / 2


def _correlate_ranks(side: np.ndarray) -> float:
    if len(side) < 2:
        return 0.0
    # Of pairs without ties, those that rise less those that fall, by all of them.
    tau = kendalltau(np.arange(len(side)), side).statistic
    return (1 - tau) / 2 * len(side) * (len(side) - 1) / 2


def _ties(side: np.ndarray) -> int:
    counts = np.unique(side, return_counts=True)[1]
    return int((counts * (counts - 1)).sum()) // 2
