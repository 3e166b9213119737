"""The health of each row of a position table."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import FigureInputError
from ..public import public
from ..tables import PositionTable
from .looks import COLOURS
from .style import DescribedFigure, styled


@public(FigureInputError)
@styled
def row_health(
    table: PositionTable, *, alt: str | None = None, size: tuple[float, float] = (4.8, 4.2)
) -> DescribedFigure:
    """Draw the norm of each row, and the cosine of each with the row that is nearest to it.

    Rows that look untrained, and rows that hold NaN or infinity, are marked by a triangle on the axis below. Of a long
    table, whose rows are not all compared with all others, the figure says with which.

    Args:
        table: the table.
        alt: the description; by default one of what is drawn, in words and numbers.
        size: width and height in inches.

    Returns:
        The figure, the norms above, the cosines below.

    Raises:
        FigureInputError: what is no table.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.figures import row_health
        >>> from posembed.tables import load_table
        >>> figure = row_health(load_table(sinusoidal(64, 16)), alt="All rows have one norm and a near neighbour.")
        >>> [axes.get_ylabel() for axes in figure.axes]
        ['norm', 'nearest cosine']
    """
    figure = DescribedFigure(alt, figsize=size, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    positions = np.arange(table.n_positions)
    above.plot(positions, table.norms.cpu().numpy(), color=COLOURS[0], linewidth=1.2)
    below.plot(positions, table.nearest.cpu().numpy(), color=COLOURS[2], linewidth=1.2)
    above.set(ylabel="norm")
    above.set_ylim(0, 1.08 * _largest(table.norms) or 1.0)
    below.set(ylabel="nearest cosine", xlabel="position", title=table.sampled and f"compared {table.sampled}")
    below.set_ylim(min(0.0, -_largest(-table.nearest)), 1.04)
    marked = _mark(above, table.untrained_rows, COLOURS[1], "^", "looks untrained")
    marked += _mark(above, table.non_finite_rows, COLOURS[3], "X", "NaN or infinity")
    _mark(below, table.untrained_rows, COLOURS[1], "^", "")
    if marked:
        figure.legend(handles=marked, loc="outside upper center", ncols=2)
    return figure


def _largest(numbers: Tensor) -> float:
    finite = numbers[torch.isfinite(numbers)]
    return float(finite.max()) if len(finite) else 0.0


def _mark(axes: Any, rows: list[int], colour: str, marker: str, label: str) -> list[Any]:
    if not rows:
        return []
    style = {"color": colour, "marker": marker, "markersize": 8, "clip_on": False, "zorder": 5}
    # At the foot of the axes, whatever its scale.
    return axes.plot(rows, [0.02] * len(rows), linestyle="", transform=axes.get_xaxis_transform(), label=label, **style)
