"""Contrasts as a forest plot: the mean of each and its interval, and which of them hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .looks import COLOURS
from .style import DescribedFigure, new_figure, styled

if TYPE_CHECKING:
    import pandas

# A contrast whose corrected p is below this is drawn full.
LEVEL = 0.05


@styled
def forest_plot(
    found: pandas.DataFrame,
    *,
    alt: str | None = None,
    xlabel: str = "difference, nats a character",
    margin: float | None = None,
    size: tuple[float, float] | None = None,
) -> DescribedFigure:
    """Draw contrasts, a row each in their order: a full mark where p after Holm's correction is below 0.05, else open.

    Args:
        found: as `posembed.Study.contrasts` has them, or rows of it: with the columns "mean", "low", "high" and "holm".
        alt: the description; by default one of what is drawn, in words and numbers.
        xlabel: what the numbers are.
        margin: differences of less than this count as none; drawn as a band around zero.
        size: width and height in inches.

    Returns:
        The figure.

    Example:
        >>> from posembed import load_study
        >>> from posembed.figures import forest_plot
        >>> figure = forest_plot(load_study("nopos-large").contrasts, alt="Both differences are well above zero.")
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['nopos minus learned', 'nopos minus alibi']
    """
    figure, axes = new_figure(alt, size=size or (6.6, 0.9 + 0.32 * len(found)))
    colour = COLOURS[0]
    for place, (_, row) in enumerate(found.iterrows()):
        axes.plot([row["low"], row["high"]], [place] * 2, color=colour, linewidth=2, zorder=2)
        inside = colour if row["holm"] < LEVEL else "#ffffff"
        axes.plot(row["mean"], place, "o", color=colour, markerfacecolor=inside, markersize=6.5, zorder=3)
    axes.axvline(0, color="#57606a", linewidth=1.2, zorder=1)
    if margin is not None:
        axes.axvspan(-margin, margin, color="#57606a", alpha=0.15, linewidth=0, zorder=0)
    axes.set_yticks(range(len(found)), [str(name) for name in found.index])
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set(xlabel=xlabel)
    return figure
