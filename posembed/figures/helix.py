"""Two principal components of a position table against each other: a circle, where the table is a helix."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.colors import ListedColormap

from ..errors import FigureInputError
from ..probing import Spectrum
from .style import DescribedFigure, new_figure, styled

# The part of viridis that stands out from white paper and from a dark screen.
DARKEST, LIGHTEST = 0.28, 0.88


@styled
def helix_portrait(found: Spectrum, *, alt: str, size: tuple[float, float] = (4.8, 3.8)) -> DescribedFigure:
    """Draw two components of a table against each other, the position as colour.

    They are the two that turn together with one frequency, where there are such; else the first two.

    Args:
        found: from `posembed.probing.spectrum`, of a table with at least two components.
        alt: the description.
        size: width and height in inches.

    Returns:
        The figure, with a point for each position, dark for the first, light for the last.

    Raises:
        FigureInputError: there is one component alone.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.figures import helix_portrait
        >>> from posembed.probing import spectrum
        >>> figure = helix_portrait(spectrum(sinusoidal(64, 16)), alt="A closed curve.")
        >>> figure.axes[0].collections[0].get_offsets().shape
        (64, 2)
    """
    scores = np.asarray(found.components, dtype=float)
    if scores.shape[1] < 2:
        raise FigureInputError("a table with one principal component has no two to draw against each other")
    first, second = (0, 1) if found.helix is None else found.helix.components
    figure, axes = new_figure(alt, size=size)
    axes.plot(scores[:, first], scores[:, second], color="#8c959f", linewidth=0.8)
    dots = axes.scatter(scores[:, first], scores[:, second], c=found.positions, cmap=_colours(), s=9, zorder=3)
    # As one picture: a thousand points of a thousand colours are too much for a page.
    dots.set_rasterized(True)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel=f"component {first + 1}", ylabel=f"component {second + 1}")
    bar = figure.colorbar(dots, ax=axes, label="position")
    bar.solids.set_rasterized(True)
    return figure


def _colours() -> ListedColormap:
    return ListedColormap(matplotlib.colormaps["viridis"](np.linspace(DARKEST, LIGHTEST, 256)))
