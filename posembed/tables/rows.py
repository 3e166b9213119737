"""Which rows of a table are meant, and whether they are numbers."""

from __future__ import annotations

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
    chosen = _range(rows, n_rows)
    if not chosen or chosen[0] < 0 or chosen.step < 1:
        raise error(f"rows={shown(rows)} holds no rows; give a start of at least 0, a stop beyond it, a step above 0")
    if chosen[-1] >= n_rows:
        raise error(f"rows={shown(rows)} goes beyond the table, which has rows 0 to {n_rows - 1}")
    return np.array(chosen)


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


def _range(rows: RowChoice, n_rows: int) -> range:
    """The rows as they are asked for, whether or not the table has them."""
    if isinstance(rows, range):
        return rows
    if isinstance(rows, slice):
        # slice.indices() would cut to size.
        start, stop = 0 if rows.start is None else rows.start, n_rows if rows.stop is None else rows.stop
        return range(start + n_rows * (start < 0), stop + n_rows * (stop < 0), 1 if rows.step is None else rows.step)
    return range(*rows) if isinstance(rows, tuple) else range(n_rows if rows is None else rows)
