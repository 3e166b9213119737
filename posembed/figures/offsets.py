"""How alike two rows of a position table are, against how far apart they stand."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import FigureInputError
from .style import COLOURS, DescribedFigure, new_figure, styled

# As many offsets as a figure can show; each takes one pass over the table.
MOST_OFFSETS = 256


@styled
def offset_profile(
    weight: Float[Tensor, "n_positions d_model"],
    *,
    alt: str,
    max_offset: int | None = None,
    size: tuple[float, float] = (4.8, 3.2),
) -> DescribedFigure:
    """Draw the dot product of two rows against their offset: the median, and where 80 % of the pairs lie.

    A curve that falls is what monotonicity measures; a narrow band is what translation invariance measures.

    Args:
        weight: the table, row p for position p.
        alt: the description.
        max_offset: the largest offset drawn; by default all.
        size: width and height in inches.

    Returns:
        The figure.

    Raises:
        FigureInputError: a table without two rows, or no offset that it has.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.figures import offset_profile
        >>> figure = offset_profile(sinusoidal(64, 16), max_offset=3, alt="It falls, and the band has no width.")
        >>> figure.axes[0].lines[0].get_xdata().tolist()
        [1, 2, 3]
    """
    last = len(weight) - 1 if max_offset is None else min(max_offset, len(weight) - 1)
    if last < 1:
        raise FigureInputError(f"a table of {len(weight)} rows has no offset from 1 to {max_offset or 'its length'}")
    offsets = np.unique(np.linspace(1, last, min(last, MOST_OFFSETS)).round().astype(int))
    low, middle, high = np.array([_spread(weight, int(offset)) for offset in offsets]).T
    figure, axes = new_figure(alt, size=size)
    axes.fill_between(offsets, low, high, color=COLOURS[0], alpha=0.25, linewidth=0, label="80 % of the pairs")
    axes.plot(offsets, middle, color=COLOURS[0], label="median")
    axes.set(xlabel="offset between two positions", ylabel="dot product")
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def _spread(weight: Tensor, offset: int) -> np.ndarray:
    products = torch.einsum("pd,pd->p", weight[:-offset], weight[offset:]).detach().cpu().double().numpy()
    finite = products[np.isfinite(products)]
    return np.quantile(finite, [0.1, 0.5, 0.9]) if len(finite) else np.full(3, np.nan)
