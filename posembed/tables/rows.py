"""Which rows of a table are meant, and whether they are numbers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from ..errors import PositionTableError, shown

# None means all rows, a number the first so many, a pair its start and stop.
RowChoice = int | slice | range | tuple[int, int] | None

# So many row numbers are named in a message.
NAMED = 8


def row_positions(rows: RowChoice, n_rows: int, error: type[Exception] = ValueError) -> Int[np.ndarray, " n"]:
    """The positions of the rows that are meant, rising.

    Args:
        rows: None for all, the first so many, a (start, stop), a slice or a range. In a slice, negative numbers count
            from the end, as in a list; but nothing is cut to size without a word.
        n_rows: of the table.
        error: the kind to raise.

    Returns:
        Whole numbers from 0 to n_rows - 1, at least one.

    Raises:
        ValueError: or the given kind: no rows, rows that the table does not have, a step below 1.

    Example:
        >>> from posembed.tables import row_positions
        >>> row_positions(3, 10), row_positions((2, 4), 10), row_positions(slice(-2, None), 10)
        (array([0, 1, 2]), array([2, 3]), array([8, 9]))
    """
    try:
        start, stop, step = _bounds(rows, n_rows)
    except (TypeError, ValueError):
        raise error(f"rows is {shown(rows)}; give a number, a (start, stop), a slice or a range") from None
    if step < 1:
        raise error(f"rows={shown(rows)} has the step {step}; it must be at least 1")
    if not 0 <= start < stop:
        raise error(f"rows={shown(rows)} holds no rows; give a start of at least 0 and a stop beyond it")
    if stop > n_rows:
        raise error(f"rows={shown(rows)} goes beyond the table, which has rows 0 to {n_rows - 1}")
    return np.arange(start, stop, step)


def check_finite_rows(bad: Bool[np.ndarray, " n"], positions: Any, name: str, advice: str) -> None:
    """Name the rows that hold NaN or infinity.

    Args:
        bad: which rows do.
        positions: of all rows.
        name: of the table or matrix.
        advice: what to do.

    Raises:
        PositionTableError: any does.

    Example:
        >>> import numpy as np
        >>> from posembed.tables import check_finite_rows
        >>> check_finite_rows(np.array([False, False]), range(2), "the table", "mend them")
    """
    found = [str(positions[int(place)]) for place in np.flatnonzero(bad)]
    if found:
        named = ", ".join(found[:NAMED]) + (f" and {len(found) - NAMED} more" if len(found) > NAMED else "")
        rows, hold = ("row", "holds") if len(found) == 1 else ("rows", "hold")
        raise PositionTableError(f"{rows} {named} of {name} {hold} NaN or infinity; {advice}")


def _bounds(rows: RowChoice, n_rows: int) -> tuple[int, int, int]:
    """Start, stop and step, not yet checked; a TypeError or ValueError where they are no whole numbers."""
    if isinstance(rows, range):
        # The last row and not the range's stop: range(0, 10, 4) ends with row 8.
        return rows.start, rows[-1] + 1 if len(rows) and rows.step > 0 else rows.start, rows.step
    if isinstance(rows, slice):
        bounds = zip((rows.start, rows.stop, rows.step), (0, n_rows, 1), strict=True)
        start, stop, step = (default if bound is None else operator.index(bound) for bound, default in bounds)
        return start + n_rows * (start < 0), stop + n_rows * (stop < 0), step
    if isinstance(rows, bool):
        raise TypeError
    start, stop = rows if isinstance(rows, tuple) else (0, n_rows if rows is None else rows)
    return operator.index(start), operator.index(stop), 1
