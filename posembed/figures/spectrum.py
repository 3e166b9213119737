"""The principal components of a position table: how many it uses, and what they look like."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.colors import ListedColormap

from ..probing import Spectrum
from .looks import SEQUENTIAL, looks_of
from .style import DescribedFigure, logarithmic, new_figure, styled

# The part of the sequential map that stands out from white paper, the first position dark.
POSITIONS = ListedColormap(SEQUENTIAL(np.linspace(1, 0.3, 256)))


@styled
def explained_variance(
    spectra: Mapping[str, Spectrum], *, alt: str | None = None, size: tuple[float, float] = (4.8, 3.2)
) -> DescribedFigure:
    """Draw the share of the variance that the first 1, 2, 3, ... principal components hold together.

    Args:
        spectra: from `posembed.probing.spectrum`, by label.
        alt: the description; by default one of what is drawn, in words and numbers.
        size: width and height in inches.

    Returns:
        The figure, with a logarithmic scale for the number of components and a line at 90 %.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.figures import explained_variance
        >>> from posembed.probing import spectrum
        >>> figure = explained_variance({"sinusoid": spectrum(sinusoidal(64, 16))}, alt="It rises to 1.")
        >>> round(float(figure.axes[0].lines[0].get_ydata()[-1]), 6)
        1.0
    """
    figure, axes = new_figure(alt, size=size)
    for (label, found), look in zip(spectra.items(), looks_of(spectra), strict=True):
        shares = np.cumsum(np.asarray(found.explained_variance_ratio, dtype=float))
        axes.plot(np.arange(1, len(shares) + 1), shares, markevery=slice(0, 10), label=label, **look)
    axes.axhline(0.9, color="#57606a", linestyle=":", linewidth=1.2)
    logarithmic(axes.xaxis)
    axes.set(xlabel="principal components", ylabel="share of the variance", ylim=(0, 1.03))
    if len(spectra) > 1:
        figure.legend(loc="outside upper center", ncols=3)
    return figure


@styled
def helix_portrait(
    found: Spectrum, *, alt: str | None = None, size: tuple[float, float] = (4.8, 3.8)
) -> DescribedFigure:
    """Draw two components of a table against each other, the position as colour.

    They are the two that turn together with one frequency, where there are such; else the first two.

    Args:
        found: from `posembed.probing.spectrum`, of a table with at least two components.
        alt: the description; by default one of what is drawn, in words and numbers.
        size: width and height in inches.

    Returns:
        The figure, with a point for each position, dark for the first, light for the last.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.figures import helix_portrait
        >>> from posembed.probing import spectrum
        >>> figure = helix_portrait(spectrum(sinusoidal(64, 16)), alt="A closed curve.")
        >>> figure.axes[0].collections[0].get_offsets().shape
        (64, 2)
    """
    scores = np.asarray(found.components, dtype=float)
    first, second = (0, 1) if found.helix is None else found.helix.components
    figure, axes = new_figure(alt, size=size)
    axes.plot(scores[:, first], scores[:, second], color="#8c959f", linewidth=0.8)
    dots = axes.scatter(scores[:, first], scores[:, second], c=found.positions, cmap=POSITIONS, s=9, zorder=3)
    # As one picture: a thousand points of a thousand colours are too much for a page.
    dots.set_rasterized(True)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel=f"component {first + 1}", ylabel=f"component {second + 1}")
    bar = figure.colorbar(dots, ax=axes, label="position")
    bar.solids.set_rasterized(True)
    return figure
