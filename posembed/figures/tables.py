"""A position table: the health of its rows, what a probe reads off them, and its spectrum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from matplotlib.colors import ListedColormap
from torch import Tensor

from ..errors import FigureInputError
from ..probing import ProbeResult, Spectrum, constant_guess
from ..public import public
from ..tables import PositionTable
from .looks import COLOURS, SEQUENTIAL, looks_of
from .style import DescribedFigure, logarithmic, new_figure, styled


@public(FigureInputError)
@styled
def row_health(table: PositionTable, *, alt: str | None = None) -> DescribedFigure:
    """Draw the norm of each row, and the cosine of each with the row that is nearest to it.

    Rows that look untrained, and rows that hold NaN or infinity, are marked by a triangle on the axis below.

    Args:
        table: the table.
        alt: the description; by default one of what is drawn, in words and numbers.

    Returns:
        The figure, the norms above, the cosines below.

    Raises:
        FigureInputError: what is no table.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.figures import row_health
        >>> from posembed.tables import load_table
        >>> figure = row_health(load_table(sinusoidal(64, 16)), alt="All rows have one norm and a near neighbour.")
        >>> [axes.get_ylabel() for axes in figure.axes]
        ['norm', 'nearest cosine']
    """
    figure = DescribedFigure(alt, figsize=(4.8, 4.2), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    positions = np.arange(table.n_positions)
    above.plot(positions, table.norms.cpu().numpy(), color=COLOURS[0], linewidth=1.2)
    below.plot(positions, table.nearest.cpu().numpy(), color=COLOURS[2], linewidth=1.2)
    above.set(ylabel="norm")
    above.set_ylim(0, 1.08 * _largest(table.norms) or 1.0)
    below.set(ylabel="nearest cosine", xlabel="position")
    below.set_ylim(min(0.0, -_largest(-table.nearest)), 1.04)
    marked = _mark(above, table.untrained_rows, COLOURS[1], "^", "looks untrained")
    marked += _mark(above, table.non_finite_rows, COLOURS[3], "X", "NaN or infinity")
    _mark(below, table.untrained_rows, COLOURS[1], "^", "")
    if marked:
        figure.legend(handles=marked, loc="outside upper center", ncols=2)
    return figure


def _largest(numbers: Tensor) -> float:
    finite = numbers[torch.isfinite(numbers)]
    return float(finite.max()) if len(finite) else 0.0


def _mark(axes: Any, rows: list[int], colour: str, marker: str, label: str) -> list[Any]:
    if not rows:
        return []
    style = {"color": colour, "marker": marker, "markersize": 8, "clip_on": False, "zorder": 5}
    # At the foot of the axes, whatever its scale.
    return axes.plot(rows, [0.02] * len(rows), linestyle="", transform=axes.get_xaxis_transform(), label=label, **style)


# How far beyond the table, in tables, a prediction is drawn where it is.
MARGIN = 0.25


@public(FigureInputError)
@styled
def probe_scatter(result: ProbeResult, *, alt: str | None = None) -> DescribedFigure:
    """Draw the position that a probe predicts for each row it was tested on, against the true one.

    The title has the error and that of a constant guess, which is a dashed line. Predictions far outside the table are
    drawn as triangles at the edge, and counted; a single one has its number. Fitted rows that lie apart are shaded.

    Args:
        result: from `posembed.probe_table`.
        alt: the description; by default one of what is drawn, in words and numbers.

    Returns:
        The figure, with a point for each row, the line on which a perfect probe lies, and that of a constant guess.

    Raises:
        FigureInputError: what is no result.

    Example:
        >>> from posembed import probe_table, sinusoidal
        >>> from posembed.figures import probe_scatter
        >>> figure = probe_scatter(probe_table(sinusoidal(64, 32)), alt="Points on the diagonal.")
        >>> figure.axes[0].get_xlabel()
        'true position'
    """
    true, predicted = np.asarray(result.positions, dtype=float), np.asarray(result.predictions, dtype=float)
    rows = np.concatenate([result.positions, result.train_positions]).astype(float)
    first, last = rows.min(), rows.max()
    reach = MARGIN * (last - first) or 1.0
    low, high = first - reach, last + reach
    figure, axes = new_figure(alt, size=(4.8, 3.8))
    axes.plot([first, last], [first, last], color="#8c959f", linewidth=1.2, label="exact")
    guess = constant_guess(np.asarray(result.train_positions))
    axes.axhline(guess, color="#57606a", linestyle="--", linewidth=1.2, label="constant guess")
    inside = (predicted >= low) & (predicted <= high)
    dots = {"linestyle": "", "markersize": 2.6, "color": COLOURS[0], "alpha": 0.75}
    axes.plot(true[inside], predicted[inside], "o", **dots, label="tested row")
    for beyond, edge, marker in ((predicted > high, high, "^"), (predicted < low, low, "v")):
        if beyond.any():
            far = dots | {"color": COLOURS[1], "markersize": 5, "clip_on": False}
            axes.plot(true[beyond], np.full(beyond.sum(), edge), marker, **far)
        if beyond.sum() == 1:
            words = {"xytext": (-6, 0), "textcoords": "offset points", "ha": "right", "va": "center", "fontsize": 10.5}
            axes.annotate(f"{predicted[beyond][0]:.0f}", (true[beyond][0], edge), color=COLOURS[1], **words)
    fitted = result.train_positions
    if fitted.max() < true.min() or true.max() < fitted.min():
        axes.axvspan(fitted.min(), fitted.max(), color="#57606a", alpha=0.12, linewidth=0, zorder=0)
        axes.text(fitted.mean(), low + 0.4 * reach, "fitted here", color="#57606a", ha="center", va="center")
    axes.set_title(_title(result, int((~inside).sum())), fontsize=11, fontweight="normal")
    axes.set(
        xlabel="true position",
        ylabel="predicted position",
        xlim=(first - 0.1 * reach, last + 0.1 * reach),
        ylim=(low, high),
    )
    figure.legend(loc="outside upper center", ncols=3, columnspacing=1, handletextpad=0.4)
    return figure


def _title(result: ProbeResult, n_beyond: int) -> str:
    tested = "off by" if result.held_out else "no test: off by"
    beyond = f"\n{n_beyond} beyond the edge" if n_beyond else ""
    return f"{tested} {result.test_mae:.1f} positions, a constant guess by {result.baselines.constant:.0f}{beyond}"


# The part of the sequential map that stands out from white paper, the first position dark.
POSITIONS = ListedColormap(SEQUENTIAL(np.linspace(1, 0.3, 256)))


@styled
def explained_variance(spectra: Mapping[str, Spectrum], *, alt: str | None = None) -> DescribedFigure:
    """Draw the share of the variance that the first 1, 2, 3, ... principal components hold together.

    Args:
        spectra: from `posembed.probing.spectrum`, by label.
        alt: the description; by default one of what is drawn, in words and numbers.

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
    figure, axes = new_figure(alt, size=(4.8, 3.2))
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
def helix_portrait(found: Spectrum, *, alt: str | None = None) -> DescribedFigure:
    """Draw two components of a table against each other, the position as colour.

    They are the two that turn together with one frequency, where there are such; else the first two.

    Args:
        found: from `posembed.probing.spectrum`, of a table with at least two components.
        alt: the description; by default one of what is drawn, in words and numbers.

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
    figure, axes = new_figure(alt, size=(4.8, 3.8))
    axes.plot(scores[:, first], scores[:, second], color="#8c959f", linewidth=0.8)
    dots = axes.scatter(scores[:, first], scores[:, second], c=found.positions, cmap=POSITIONS, s=9, zorder=3)
    # As one picture: a thousand points of a thousand colours are too much for a page.
    dots.set_rasterized(True)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel=f"component {first + 1}", ylabel=f"component {second + 1}")
    bar = figure.colorbar(dots, ax=axes, label="position")
    bar.solids.set_rasterized(True)
    return figure
