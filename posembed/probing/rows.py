"""Which rows of a table are probed, which of them a probe is fitted to, and which it is tested on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from jaxtyping import Float, Int, Integer

from ..dense_tensors import float64_array
from ..errors import ProbeInputError, shown
from ..public import Seed, public
from ..seeds import generator
from ..tables import RowChoice, check_finite_rows, load_table, row_positions

Split = Literal["even-odd", "all", "folds", "half"]
SPLITS: tuple[Split, ...] = get_args(Split)

N_FOLDS = 5


def chosen_rows(
    table: Any, rows: RowChoice, *, at_least: int, purpose: str
) -> tuple[Float[np.ndarray, "n d_model"], Int[np.ndarray, " n"], str]:
    """Rows of what `load_table` takes in float64, their positions, rising, and where the table comes from.

    Rows that hold NaN are refused, and fewer than the purpose needs.
    """
    found = load_table(table)
    positions = row_positions(rows, len(found.weight), ProbeInputError)
    if len(positions) < at_least:
        raise ProbeInputError(
            f"{purpose} needs at least {at_least} rows, but rows={shown(rows)} of {found.source} has {len(positions)}"
        )
    x = float64_array(found.weight[torch.from_numpy(positions)])
    check_finite_rows(
        ~np.isfinite(x).all(axis=1), positions, found.source, "choose rows without them (rows=), or mend them"
    )
    return x, positions, found.source


class Part(NamedTuple):
    """One fit: indices into the chosen rows, in rising order.

    Attributes:
        train: rows that the probe is fitted to.
        test: rows that it predicts.

    Example:
        >>> from posembed.probing import Part
        >>> import numpy as np
        >>> Part(train=np.array([0, 2]), test=np.array([1])).test
        array([1])
    """

    train: Int[np.ndarray, " n_train"]
    test: Int[np.ndarray, " n_test"]


@public(ProbeInputError)
def split_rows(positions: Integer[np.ndarray, " n"], split: Split, *, seed: Seed = 0) -> list[Part]:
    """Divide rows into those a probe is fitted to and those it is tested on.

    Args:
        positions: of the rows, rising.
        split: "even-odd" fits to even positions and tests on odd ones: every tested row lies between two rows that were
            seen, but for a last odd one. "all" fits to all rows and tests on the same: the split that many show, and no
            test. "folds" divides the rows at random into five; each is tested by a probe fitted to the other four.
            "half" fits to the first half and tests on the second: extrapolation.
        seed: of the folds.

    Returns:
        One part, or five for "folds". No row is tested twice.

    Raises:
        ProbeInputError: an unknown split, positions that do not rise, or too few rows for it.

    Example:
        >>> import numpy as np
        >>> from posembed.probing import split_rows
        >>> split_rows(np.arange(5), "half")
        [Part(train=array([0, 1, 2]), test=array([3, 4]))]
    """
    if bool((positions[1:] <= positions[:-1]).any()):
        raise ProbeInputError(f"positions are {shown(positions)}; give an array of whole numbers that rise")
    indices = np.arange(len(positions))
    needed = N_FOLDS if split == "folds" else 2
    if len(positions) < needed:
        raise ProbeInputError(f"the split {split} needs at least {needed} rows, but there are {len(positions)}")
    if split == "all":
        return [Part(indices, indices)]
    if split == "half":
        middle = (len(positions) + 1) // 2
        return [Part(indices[:middle], indices[middle:])]
    if split == "folds":
        return [Part(np.delete(indices, fold), fold) for fold in shuffled_folds(len(positions), N_FOLDS, seed)]
    odd = positions % 2 == 1
    if odd.all() or not odd.any():
        raise ProbeInputError(
            f"the split even-odd needs even and odd positions, but all are {'odd' if odd.any() else 'even'}; "
            "take rows with a step of 1, or another split"
        )
    return [Part(indices[~odd], indices[odd])]


def shuffled_folds(n: int, n_folds: int, seed: int) -> Iterator[Int[np.ndarray, " m"]]:
    """Yield the rows of each fold in rising order; folds differ by one row at most."""
    order = generator(seed, "folds").permutation(n)
    for fold in np.array_split(order, min(n_folds, n)):
        yield np.sort(fold)
