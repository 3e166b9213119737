"""Matrices as pictures: tables, the products of their rows, and whatever else has rows and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Real
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from ..errors import FigureInputError
from .looks import DIVERGING, NOTHING, SEQUENTIAL, SEQUENTIAL_BELOW
from .style import DescribedFigure, as_numbers, styled

# In a row each has room for its numbers.
MOST_IN_A_ROW = 3
# Of rows or columns, up to which a map is a picture with one point for each.
MOST_CELLS = 256
# Rows that are compared with each other: their cosines fit into memory many times.
MOST_COMPARED = 4096
# The share of a table's numbers that the colours tell apart; what lies beyond has the last colour.
COLOURED = 0.99
# The share of the largest number up to which one of the other sign is taken for zero.
ROUNDING = 1e-6


@styled
def table_maps(
    tables: Mapping[str, Real[Tensor | np.ndarray, "rows columns"]],
    *,
    alt: str | None = None,
    xlabel: str = "column",
    ylabel: str = "row",
    size: tuple[float, float] | None = None,
    first_row: int = 0,
) -> DescribedFigure:
    """Draw matrices with one colour scale, grey where there is no number (NaN): up to three in a row, then in pairs.

    It is white at zero, orange above and blue below; of numbers of one sign it has that half alone.

    Args:
        tables: matrices by title.
        alt: the description; by default one of what is drawn, in words and numbers.
        xlabel: what the columns are.
        ylabel: what the rows are.
        size: width and height in inches, by default 6.6 by 3 for one row, 6.6 by 5.4 for two.
        first_row: the number of the first row, as the axis counts, and of the first column of a square matrix.

    Returns:
        The figure.

    Raises:
        FigureInputError: what is no matrix of numbers; no tables.

    Example:
        >>> import torch
        >>> from posembed.figures import table_maps
        >>> figure = table_maps({"before": torch.eye(3), "after": -torch.eye(3)}, alt="Two diagonals of opposite sign.")
        >>> [axes.get_title() for axes in figure.axes[:2]]
        ['before', 'after']
    """
    if not tables:
        raise FigureInputError("there are no tables to draw")
    matrices = {title: as_matrix(table) for title, table in tables.items()}
    scale = _scale([matrix[matrix.isfinite()] for matrix in matrices.values()])
    n_columns = len(tables) if len(tables) <= MOST_IN_A_ROW else 2
    n_rows = -(-len(tables) // n_columns)
    # Square panels take less than the width: what belongs to them stays beside them.
    layout = "compressed" if all(len(matrix) == matrix.shape[1] for matrix in matrices.values()) else "constrained"
    figure = DescribedFigure(alt, figsize=size or (6.6, 0.6 + 2.4 * n_rows), layout=layout)
    panels = figure.subplots(n_rows, n_columns, squeeze=False).flatten()
    # Numbers below a narrow panel must not run into each other.
    n_ticks: Any = "auto" if n_columns < 3 else 4
    for panel, (title, matrix) in zip(panels, matrices.items(), strict=False):
        left = first_row * (len(matrix) == matrix.shape[1]) - 0.5
        ends = (left, left + matrix.shape[1], first_row + len(matrix) - 0.5, first_row - 0.5)
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_locator(MaxNLocator(n_ticks, integer=True))
        panel.grid(False)
        # A cell is one point of the picture, as long as there are fewer of them than points of a screen.
        sharp = "none" if max(matrix.shape) <= MOST_CELLS else None
        image = panel.imshow(matrix.float().numpy(), interpolation=sharp, aspect="auto", extent=ends, **scale)
        panel.set_title(title)
        if matrix.shape[0] == matrix.shape[1]:
            panel.set_box_aspect(1)
    for panel in panels[::n_columns]:
        panel.set_ylabel(ylabel)
    for panel in panels[max(0, len(tables) - n_columns) : len(tables)]:
        panel.set_xlabel(xlabel)
    for panel in panels[len(tables) :]:
        figure.delaxes(panel)
    # Here and below the scale is one picture, not hundreds of small areas.
    bar: Any = figure.colorbar(image, ax=panels[: len(tables)].tolist(), shrink=0.9)
    bar.solids.set_rasterized(True)
    return figure


@styled
def similarity_maps(
    tables: Mapping[str, Real[Tensor | np.ndarray, "positions d_model"]],
    *,
    alt: str | None = None,
    size: tuple[float, float] = (6.6, 3.0),
) -> DescribedFigure:
    """Draw the cosine similarity of every two rows of each table; of more than 4,096, of every second, third, ... row.

    Args:
        tables: position tables by title, "positions d_model".
        alt: the description; by default one of what is drawn, in words and numbers.
        size: width and height in inches.

    Returns:
        The figure.

    Raises:
        FigureInputError: what is no matrix of numbers.

    Example:
        >>> import torch
        >>> from posembed.figures import similarity_maps
        >>> figure = similarity_maps({"orthogonal rows": torch.eye(4)}, alt="A diagonal.")
        >>> figure.axes[0].get_xlabel()
        'position'
    """
    matrices = {title: as_matrix(table) for title, table in tables.items()}
    shown = {title: matrix[:: -(-len(matrix) // MOST_COMPARED)] for title, matrix in matrices.items()}
    # Rows of zeros stay; short ones, below torch's usual eps, have a direction too.
    units = {title: F.normalize(rows, dim=1, eps=1e-300) for title, rows in shown.items()}
    cosines = {title: rows @ rows.T for title, rows in units.items()}
    figure = table_maps(cosines, alt=alt, xlabel="position", ylabel="position", size=size)
    for axes, table in zip(figure.axes, tables.values(), strict=False):
        end = len(table) - 0.5
        axes.images[0].set_extent((-0.5, end, end, -0.5))
    return figure


@styled
def table_heat(weight: Real[Tensor | np.ndarray, "n_positions d_model"], *, alt: str | None = None) -> DescribedFigure:
    """Draw a position table as a heat map, white at zero, grey where there is no number.

    A few columns of a learned table are often far larger than the rest, so the colours end where 99 % of the
    numbers end.

    Args:
        weight: the table, row p for position p.
        alt: the description; by default one of what is drawn, in words and numbers.

    Returns:
        The figure.

    Raises:
        FigureInputError: no matrix of numbers.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.figures import table_heat
        >>> figure = table_heat(sinusoidal(64, 16), alt="Sixteen waves, each slower than the one before.")
        >>> figure.axes[0].get_ylabel()
        'position'
    """
    numbers = as_matrix(weight)
    sizes = numbers[numbers.isfinite()].abs()
    limit = float(sizes.kthvalue(max(1, round(COLOURED * len(sizes)))).values)
    shown = numbers.clamp(-limit, limit).where(numbers.isfinite(), torch.nan)
    return table_maps({"": shown}, alt=alt, ylabel="position", size=(4.8, 3.4))


def as_matrix(given: Any) -> Float[Tensor, "rows columns"]:
    """What is to be drawn as a matrix in float64, or FigureInputError."""
    return torch.from_numpy(as_numbers(given, 2))


def _scale(numbers: list[Tensor]) -> dict[str, Any]:
    """The map and the ends of a scale for these numbers: around zero, or from it where they have one sign."""
    least = min((float(each.min()) for each in numbers if each.numel()), default=0.0)
    most = max((float(each.max()) for each in numbers if each.numel()), default=0.0)
    limit = max(-least, most) or 1.0
    colours, low, high = DIVERGING, -limit, limit
    if least >= -ROUNDING * limit:
        colours, low = SEQUENTIAL, 0.0
    elif most <= ROUNDING * limit:
        colours, high = SEQUENTIAL_BELOW, 0.0
    return {"cmap": colours.with_extremes(bad=NOTHING), "vmin": low, "vmax": high}
