"""Matrices as pictures: tables, the products of their rows, and whatever else has rows and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib
import torch
import torch.nn.functional as F
from jaxtyping import Float
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from ..errors import FigureInputError
from .style import DescribedFigure, new_figure, styled

# A screen has no more rows to show; of pairs of rows a million fill it, and fit into any memory.
MOST_ROWS, MOST_POSITIONS = 1536, 1024


@styled
def table_maps(
    tables: Mapping[str, Float[Tensor, "rows columns"]],
    *,
    alt: str,
    xlabel: str = "column",
    ylabel: str = "row",
    size: tuple[float, float] = (6.6, 3.0),
) -> DescribedFigure:
    """Draw matrices side by side with one colour scale, white at zero, grey where there is no number (NaN).

    Args:
        tables: matrices by title.
        alt: the description.
        xlabel: what the columns are.
        ylabel: what the rows are.
        size: width and height in inches.

    Returns:
        The figure.

    Example:
        >>> import torch
        >>> from posembed.figures import table_maps
        >>> figure = table_maps({"before": torch.eye(3), "after": -torch.eye(3)}, alt="Two diagonals of opposite sign.")
        >>> [axes.get_title() for axes in figure.axes[:2]]
        ['before', 'after']
    """
    limit = max(float(table.nan_to_num().abs().max()) for table in tables.values()) or 1.0
    figure, row = new_figure(alt, len(tables), size=size, squeeze=False)
    # Numbers below a narrow panel must not run into each other.
    n_ticks = "auto" if len(tables) < 3 else 4
    for axes, (title, table) in zip(row[0], tables.items(), strict=True):
        image = _paint(axes, table, limit, n_ticks, nothing="#c9d1d9", aspect="auto")
        axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    figure.colorbar(image, ax=row[0], shrink=0.9)
    return figure


@styled
def similarity_maps(
    tables: Mapping[str, Float[Tensor, "positions d_model"]], *, alt: str, size: tuple[float, float] = (6.6, 3.0)
) -> DescribedFigure:
    """Draw the cosine similarity of every two rows of each table.

    Args:
        tables: position tables by title, "positions d_model".
        alt: the description.
        size: width and height in inches.

    Returns:
        The figure.

    Example:
        >>> import torch
        >>> from posembed.figures import similarity_maps
        >>> figure = similarity_maps({"orthogonal rows": torch.eye(4)}, alt="A diagonal.")
        >>> figure.axes[0].get_xlabel()
        'position'
    """
    units = {title: F.normalize(table.detach().cpu().double(), dim=1) for title, table in tables.items()}
    cosines = {title: rows @ rows.T for title, rows in units.items()}
    return table_maps(cosines, alt=alt, xlabel="position", ylabel="position", size=size)


@styled
def table_heat(
    weight: Float[Tensor, "n_positions d_model"],
    *,
    alt: str,
    clip: float | int = 0.99,
    xlabel: str = "column",
    size: tuple[float, float] = (4.8, 3.4),
) -> DescribedFigure:
    """Draw a position table as a heat map, white at zero, grey where there is no number.

    A few columns of a learned table are often far larger than the rest, so the colours end where a share ``clip`` of
    the numbers ends. Of a table with more rows than a screen, every second, third, ... row is drawn.

    Args:
        weight: the table, row p for position p.
        alt: the description.
        clip: the share of the numbers that the colours tell apart; what lies beyond has the last colour.
        xlabel: what the columns are.
        size: width and height in inches.

    Returns:
        The figure.

    Raises:
        FigureInputError: the table holds no finite number, or ``clip`` is not a share.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.figures import table_heat
        >>> figure = table_heat(sinusoidal(64, 16), alt="Sixteen waves, each slower than the one before.")
        >>> figure.axes[0].get_ylabel()
        'position'
    """
    step = -(-len(weight) // MOST_ROWS)
    limit, ends = _limit(weight, clip), (weight.shape[1], len(weight))
    return _heat(weight[::step], limit, ends, alt=alt, clip=clip, xlabel=xlabel, size=size, aspect="auto")


def _paint(axes: Any, matrix: Tensor, limit: float, n_ticks: Any, *, nothing: str, **options: Any) -> Any:
    """Draw a matrix on a scale around zero, in a colour of its own where it holds no number."""
    # PuOr: purple and orange, which colour-blind readers can tell apart.
    colours = matplotlib.colormaps["PuOr_r"].with_extremes(bad=nothing)
    shown = matrix.detach().cpu().float().numpy()
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(n_ticks, integer=True))
    axes.grid(False)
    return axes.imshow(shown, cmap=colours, vmin=-limit, vmax=limit, **options)


def _heat(
    shown: Tensor,
    limit: float,
    ends: tuple[int, int],
    *,
    alt: str,
    clip: float | int,
    xlabel: str,
    size: tuple[float, float],
    aspect: str,
) -> DescribedFigure:
    """Draw a matrix whose rows are positions. The axes count to the ends, also where rows in between are left out."""
    figure, axes = new_figure(alt, size=size)
    extent = (-0.5, ends[0] - 0.5, ends[1] - 0.5, -0.5)
    image = _paint(axes, shown, limit, 5, nothing="#8c959f", extent=extent, aspect=aspect)
    axes.set(xlabel=xlabel, ylabel="position")
    bar = figure.colorbar(image, ax=axes, shrink=0.9, extend="both" if clip < 1 else "neither")
    # As one picture, not as hundreds of small areas.
    bar.solids.set_rasterized(True)
    return figure


def _limit(matrix: Tensor, clip: float | int) -> float:
    """The magnitude below which a share ``clip`` of a matrix's finite numbers lies; 1 where all are zero."""
    if not 0 < clip <= 1:
        raise FigureInputError(f"clip={clip} is no share of the numbers; give one above 0 and up to 1")
    finite = matrix[torch.isfinite(matrix)].abs().flatten()
    if not len(finite):
        raise FigureInputError(f"a {' x '.join(map(str, matrix.shape))} matrix holds no finite number to draw")
    return float(finite.kthvalue(max(1, round(clip * len(finite)))).values) or 1.0
