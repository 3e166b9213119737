"""Figure 13: what broken code does, what mended code does, where they differ, and what a property finds."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import FigureInputError
from ..public import public
from .base import InteractiveFigure, html_table

# A number is one byte: 254 steps from the least to the largest, and this where there is none.
STEPS, NOTHING = 254, 255


@dataclass(frozen=True)
class Repair:
    """A piece of code before and after it is mended.

    Attributes:
        broken: what it does, "rows columns"; NaN where nothing came back.
        mended: what it does mended, of the same shape.
        finds: what the property finds in the broken code.
        holds: the property, which the mended code has.
        rows: what the rows are.
        columns: what the columns are.

    Example:
        >>> from posembed.widgets import Repair
        >>> Repair([[0, 0]], [[0, 1]], "both tokens are alike", "tokens differ by place", "text", "token").finds
        'both tokens are alike'
    """

    broken: Any
    mended: Any
    finds: str
    holds: str
    rows: str
    columns: str


class RepairFigure(InteractiveFigure):
    """Switch between broken and mended code: what each does, where they differ, and what a property says of it.

    Args:
        repairs: for each piece of code, by its name, what it does before and after.

    Raises:
        FigureInputError: maps that are not "rows columns", that hold infinity or no number.

    Example:
        >>> from posembed.widgets import Repair, RepairFigure
        >>> clock = Repair([[0, 0]], [[0, 1]], "both tokens are alike", "tokens differ by place", "text", "token")
        >>> figure = RepairFigure({"the clock that stands still": clock})
        >>> figure.repairs[0]["most"]
        1.0
    """

    module = "repairs.js"
    height = (651, 364)

    @public(FigureInputError)
    def __init__(self, repairs: Mapping[str, Repair]) -> None:
        super().__init__(
            repairs=[_stored(name, each) for name, each in repairs.items()], repair=0, view="broken", row=0, column=0
        )

    def fallback_html(self) -> str:
        """Show what each property finds."""
        return html_table(
            "what a property finds in each piece of broken code, and what mended code has.",
            ["code", "broken", "mended"],
            [[each["name"], each["finds"], each["holds"]] for each in self.repairs],
        )


def _stored(name: str, repair: Repair) -> dict[str, Any]:
    broken, mended = (_map(name, each) for each in (repair.broken, repair.mended))
    most = float(np.nanmax(np.abs([broken, mended])))
    return {
        "name": name,
        "finds": repair.finds,
        "holds": repair.holds,
        "rows": repair.rows,
        "columns": repair.columns,
        "shape": list(broken.shape),
        "most": float(f"{most:.4g}"),
        "broken": _bytes(broken, most),
        "mended": _bytes(mended, most),
    }


def _map(name: str, numbers: Any) -> np.ndarray:
    array = np.asarray(numbers, dtype=float)
    if array.ndim != 2 or not np.isfinite(array).any() or np.isinf(array).any():
        raise FigureInputError(f"a map of {name!r} is no matrix of numbers; give rows and columns, NaN for nothing")
    return array


def _bytes(array: np.ndarray, most: float) -> str:
    """Of each number the nearest step between minus and plus the largest."""
    steps = np.round((np.nan_to_num(array) / (most or 1.0) + 1) / 2 * STEPS)
    return base64.b64encode(np.where(np.isnan(array), NOTHING, steps).astype(np.uint8).tobytes()).decode()
