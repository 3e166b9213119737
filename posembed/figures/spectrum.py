"""How many directions a position table uses."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import FigureInputError
from ..probing import Spectrum
from .style import DescribedFigure, new_figure, styled


@styled
def explained_variance(
    spectra: Mapping[str, Spectrum], *, alt: str, size: tuple[float, float] = (4.8, 3.2)
) -> DescribedFigure:
    """Draw the share of the variance that the first 1, 2, 3, ... principal components hold together.

    Args:
        spectra: from `posembed.probing.spectrum`, by label.
        alt: the description.
        size: width and height in inches.

    Returns:
        The figure, with a logarithmic scale for the number of components and a line at 90 %.

    Raises:
        FigureInputError: no spectrum.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.figures import explained_variance
        >>> from posembed.probing import spectrum
        >>> figure = explained_variance({"sinusoid": spectrum(sinusoidal(64, 16))}, alt="It rises to 1.")
        >>> round(float(figure.axes[0].lines[0].get_ydata()[-1]), 6)
        1.0
    """
    if not spectra:
        raise FigureInputError("there is no spectrum to draw; give at least one")
    figure, axes = new_figure(alt, size=size)
    for label, found in spectra.items():
        shares = np.cumsum(np.asarray(found.explained_variance_ratio, dtype=float))
        axes.plot(np.arange(1, len(shares) + 1), shares, marker="o", markevery=slice(0, 10), label=label)
    axes.axhline(0.9, color="#57606a", linestyle=":", linewidth=1.2)
    axes.set_xscale("log")
    axes.set(xlabel="principal components", ylabel="share of the variance", ylim=(0, 1.03))
    if len(spectra) > 1:
        figure.legend(loc="outside upper center", ncols=3)
    return figure
