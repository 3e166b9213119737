"""The first principal components of a position table along its positions."""

from __future__ import annotations

import numpy as np

from ..probing import Spectrum
from .style import COLOURS, DescribedFigure, new_figure, styled

DASHES = ("-", "--", "-.", ":")


@styled
def component_curves(
    found: Spectrum, *, alt: str, n_components: int = 4, size: tuple[float, float] = (4.8, 3.4)
) -> DescribedFigure:
    """Draw where each position lies along the first principal components.

    Args:
        found: from `posembed.probing.spectrum`.
        alt: the description.
        n_components: how many, at most 4.
        size: width and height in inches.

    Returns:
        The figure, with a curve for each component, against the position.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.figures import component_curves
        >>> from posembed.probing import spectrum
        >>> figure = component_curves(spectrum(sinusoidal(64, 16)), n_components=2, alt="Two waves.")
        >>> len(figure.axes[0].lines)
        2
    """
    scores = np.asarray(found.components, dtype=float)[:, :n_components]
    figure, axes = new_figure(alt, size=size)
    for number, (curve, colour, dashes) in enumerate(zip(scores.T, COLOURS, DASHES, strict=False), start=1):
        axes.plot(found.positions, curve, color=colour, linestyle=dashes, linewidth=1.6, label=str(number))
    axes.set(xlabel="position", ylabel="score")
    figure.legend(loc="outside upper center", ncols=4, title="component")
    return figure
