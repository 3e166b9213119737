"""How alike the rows of a position table are, as a picture."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from .style import DescribedFigure, styled
from .table_heat import heat_map

# Pairs of rows: a million of them fill a screen, and fit into any memory.
MOST_POSITIONS = 1024


@styled
def dot_product_map(
    weight: Float[Tensor, "n_positions d_model"],
    *,
    alt: str,
    clip: float | int = 0.99,
    size: tuple[float, float] = (4.8, 4.2),
) -> DescribedFigure:
    """Draw the dot product of every two rows of a position table, white at zero.

    Where all offsets are treated alike, wherever they are, the picture has one colour along each diagonal. Of a long
    table every second, third, ... row is drawn.

    Args:
        weight: the table, row p for position p.
        alt: the description.
        clip: the share of the products that the colours tell apart; what lies beyond has the last colour.
        size: width and height in inches.

    Returns:
        The figure.

    Raises:
        FigureInputError: the table holds no finite row, or ``clip`` is not a share.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.figures import dot_product_map
        >>> figure = dot_product_map(sinusoidal(64, 16), alt="Bands along the diagonal.")
        >>> figure.axes[0].images[0].get_array().shape
        (64, 64)
    """
    step = -(-len(weight) // MOST_POSITIONS)
    rows = weight[::step].detach().cpu().float()
    figure = heat_map(rows @ rows.T, alt=alt, clip=clip, xlabel="position", size=size, square=True)
    # The axes count positions, not the rows that are drawn.
    end = len(weight) - 0.5
    figure.axes[0].images[0].set_extent((-0.5, end, end, -0.5))
    return figure
