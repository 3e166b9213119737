"""Tables and their similarities as heat maps."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib
import torch.nn.functional as F
from jaxtyping import Float
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from .style import DescribedFigure, new_figure, styled


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
    # PuOr: purple and orange, which colour-blind readers can tell apart.
    colours = matplotlib.colormaps["PuOr_r"].with_extremes(bad="#c9d1d9")
    figure, row = new_figure(alt, len(tables), size=size, squeeze=False)
    for axes, (title, table) in zip(row[0], tables.items(), strict=True):
        shown = table.detach().cpu().float().numpy()
        image = axes.imshow(shown, cmap=colours, vmin=-limit, vmax=limit, aspect="auto")
        axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
        for axis in (axes.xaxis, axes.yaxis):
            # Numbers below a narrow panel must not run into each other.
            axis.set_major_locator(MaxNLocator("auto" if len(tables) < 3 else 4, integer=True))
        axes.grid(False)
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
    similarities = {title: _cosines(table.detach().cpu().double()) for title, table in tables.items()}
    return table_maps(similarities, alt=alt, xlabel="position", ylabel="position", size=size)


def _cosines(table: Tensor) -> Tensor:
    rows = F.normalize(table, dim=1)
    return rows @ rows.T
