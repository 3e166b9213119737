"""A whole position table as a picture."""

from __future__ import annotations

import matplotlib
import torch
from jaxtyping import Float
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from ..errors import FigureInputError
from .style import DescribedFigure, new_figure, styled

# A screen has no more rows to show.
MOST_ROWS = 1536


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
    return heat_map(weight, alt=alt, clip=clip, xlabel=xlabel, size=size)


def heat_map(
    matrix: Tensor, *, alt: str, clip: float | int, xlabel: str, size: tuple[float, float], square: bool = False
) -> DescribedFigure:
    """Draw a matrix whose rows are positions (and whose columns are, where it is square) on a scale around zero.

    Example:
        >>> import torch
        >>> from posembed.figures.table_heat import heat_map
        >>> figure = heat_map(torch.eye(3), alt="A diagonal.", clip=1.0, xlabel="column", size=(3.0, 3.0))
        >>> figure.axes[0].images[0].get_clim()
        (-1.0, 1.0)
    """
    limit = scale(matrix, clip)
    figure, axes = new_figure(alt, size=size)
    step = -(-len(matrix) // MOST_ROWS)
    # PuOr: purple and orange, which colour-blind readers can tell apart.
    colours = matplotlib.colormaps["PuOr_r"].with_extremes(bad="#8c959f")
    shown = matrix[::step].detach().cpu().float().numpy()
    extent = (-0.5, matrix.shape[1] - 0.5, len(matrix) - 0.5, -0.5)
    aspect = "equal" if square else "auto"
    image = axes.imshow(shown, cmap=colours, vmin=-limit, vmax=limit, extent=extent, aspect=aspect)
    axes.set(xlabel=xlabel, ylabel="position")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.grid(False)
    bar = figure.colorbar(image, ax=axes, shrink=0.9, extend="both" if clip < 1 else "neither")
    # As one picture, not as hundreds of small areas.
    bar.solids.set_rasterized(True)
    return figure


def scale(matrix: Tensor, clip: float | int) -> float:
    """The magnitude below which a share ``clip`` of a matrix's finite numbers lies; 1 where all are zero.

    Raises:
        FigureInputError: no finite number, or ``clip`` is not a share.

    Example:
        >>> import torch
        >>> from posembed.figures.table_heat import scale
        >>> scale(torch.tensor([[-1.0, 2.0], [3.0, -100.0]]), 0.75)
        3.0
    """
    if not 0 < clip <= 1:
        raise FigureInputError(f"clip={clip} is no share of the numbers; give one above 0 and up to 1")
    finite = matrix[torch.isfinite(matrix)].abs().flatten()
    if not len(finite):
        raise FigureInputError(f"a {' x '.join(map(str, matrix.shape))} matrix holds no finite number to draw")
    return float(finite.kthvalue(max(1, round(clip * len(finite)))).values) or 1.0
