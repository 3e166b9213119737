"""Figure 7: three properties of a matrix of positions, cell by cell: its row's order, its diagonal, its mirror cell."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from ..dense_tensors import float64_array
from ..errors import FigureInputError
from ..public import public
from ..similarity import Properties, properties_of_matrix
from ..similarity.properties import zeros_hide_the_future
from .base import InteractiveFigure, html_table, rounded

PROPERTIES = ("monotonicity", "translation_invariance", "symmetry")
# More cells than this a side are too small to point at.
MOST_ROWS = 64
LETTERS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
# Three letters make a number below 2^18: the middle for zero, and 0 for what is not seen. A value's unit, 2^16 steps,
# is the power of two below the largest, so that multiples of a half, a quarter and so on stay what they are.
MIDDLE, STEPS = 2**17, 2**16
# Of the cells off the main diagonal, so many have colours of their own. The rest share the strongest, if they are far
# larger: one row of a table may be.
COLOURED, FAR = 0.98, 1.25

# The same text on every machine, whatever the order of its sums.
DECIMALS = 6
Given = Tensor | np.ndarray


class PropertiesFigure(InteractiveFigure):
    """Point at a cell of a matrix, and see how far its row, its diagonal and its mirror cell have the three properties.

    The chosen cell's row is drawn against the offset, with the share of its pairs of offsets that are in order
    (monotonicity); its diagonal, with mean and spread (translation invariance); and its row beside the column that
    mirrors it (symmetry). The three numbers of each matrix are those of `posembed.similarity.properties_of_matrix`.

    Args:
        matrices: by name, each "seq seq" with 2 to 64 rows: dot products of a table's rows, a relative bias, an
            attention map. Where a matrix is causal, the cells above its diagonal hold zero or minus infinity.
        max_offset: the largest offset that monotonicity compares; None: all.
        note: what the reader must know of the matrices, such as which checkpoint they are from.

    Raises:
        FigureInputError: matrices without names, one of a single row or of too many, a stack of them; what
            `posembed.properties_of_matrix` refuses has its errors.

    Example:
        >>> import torch
        >>> from posembed.widgets import PropertiesFigure
        >>> at = torch.arange(6.0)
        >>> figure = PropertiesFigure({"signed distance": at - at[:, None]})
        >>> figure.matrices[0]["properties"]
        {'monotonicity': 0.5, 'translation_invariance': 1.0, 'symmetry': 0.0}
    """

    module = "properties.js"
    height = (1310, 814)

    @public(FigureInputError)
    def __init__(self, matrices: Mapping[str, Given], *, max_offset: int | None = None, note: str = "") -> None:
        packed = [_packed(name, given, max_offset) for name, given in matrices.items()]
        name, n = packed[0]["name"], packed[0]["n"]
        cell = [max(1, n // 3), n // 6]
        super().__init__(matrices=packed, max_offset=max_offset, note=note, matrix=name, cell=cell)

    def fallback_html(self) -> str:
        """Show the three numbers of each matrix."""
        reach = "" if self.max_offset is None else f" Monotonicity compares offsets up to {self.max_offset}."
        return html_table(
            f"three properties of matrices of positions, cell by cell.{reach} Of the whole matrices:",
            ["matrix", *(name.replace("_", " ") for name in PROPERTIES)],
            [[each["name"], *(_shown(each["properties"][name]) for name in PROPERTIES)] for each in self.matrices],
        )


def _packed(name: Any, given: Any, max_offset: int | None) -> dict[str, Any]:
    """Pack a matrix: three letters a cell for its value, one for its place in its row's order, which rounding loses."""
    found = _measured(name, given, max_offset).to_dict()
    values = float64_array(given) if isinstance(given, Tensor) else given.astype(np.float64)
    if zeros_hide_the_future(values):
        values = np.where(np.tri(len(values), dtype=bool), values, -np.inf)
    seen = np.isfinite(values)
    future = "open" if seen.all() else "absent"
    exponent = math.frexp(np.abs(values[seen]).max())[1] - 1
    units = np.ldexp(np.where(seen, values, 0.0), -exponent)
    codes = np.rint(units * STEPS).clip(1 - MIDDLE, MIDDLE - 1).astype(int) + MIDDLE
    return {
        "name": name,
        "n": len(values),
        "unit": math.ldexp(1.0, exponent),
        "full": _full_colour(units, future),
        "future": future,
        "values": _letters(np.where(seen, codes, 0), 3),
        "order": _letters(np.stack([np.unique(row, return_inverse=True)[1] for row in values]), 1),
        "properties": {each: None if found[each] is None else rounded(found[each], DECIMALS) for each in PROPERTIES},
    }


def _measured(name: str, given: Any, max_offset: int | None) -> Properties:
    if given.ndim > 2:
        raise FigureInputError(f"{name}: matrix is a {type(given).__name__} {tuple(given.shape)}; give 'seq seq'")
    found = properties_of_matrix(given, max_offset=max_offset)
    if not 1 < (n := len(given)) <= MOST_ROWS:
        step = -(-n // MOST_ROWS)
        raise FigureInputError(
            f"{name} has {n} rows; give 2 to {MOST_ROWS}, of many one of {step}: [::{step}, ::{step}]"
        )
    return found


def _full_colour(units: np.ndarray, future: str) -> float:
    """The size from which a cell has the strongest colour."""
    looked_at = ~np.eye(len(units), dtype=bool) if future == "open" else np.tri(len(units), k=-1, dtype=bool)
    sizes = np.abs(units[looked_at])
    # A size that is there, not one between two, so that no machine rounds it.
    most, largest = float(np.quantile(sizes, COLOURED, method="higher")), float(sizes.max())
    return round(most if largest > FAR * most else largest, DECIMALS) or 1.0


def _letters(numbers: np.ndarray, width: int) -> str:
    """Write whole numbers below 64 to the power of the width."""
    digits = numbers[..., None] >> (6 * np.arange(width)[::-1]) & 63
    return "".join(np.array(list(LETTERS))[digits.ravel()])


def _shown(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"
