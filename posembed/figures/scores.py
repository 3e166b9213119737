"""Numbers with their intervals: scores seed by seed, and contrasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import FigureInputError
from ..stats import interval
from .looks import COLOURS, looks_of, named, written
from .style import DescribedFigure, new_figure, styled

if TYPE_CHECKING:
    import pandas


@styled
def seed_scores(
    scores: Mapping[Any, Any] | pandas.DataFrame,
    *,
    alt: str | None = None,
    xlabel: str = "loss, nats a character",
    zero: bool = False,
    size: tuple[float, float] | None = None,
    stacked: bool = False,
) -> DescribedFigure:
    """Draw every seed as a point and the mean with its 95 % interval, one row for each label.

    A row whose label names one scheme has its colour and marker.

    Args:
        scores: for each label, or column of a DataFrame, at least two numbers; or for each title such a mapping, a
            panel each.
        alt: the description; by default one of what is drawn, in words and numbers.
        xlabel: what the numbers are.
        zero: whether a line stands at zero, for differences.
        size: width and height in inches.
        stacked: whether panels stand one below the other, not side by side.

    Returns:
        The figure.

    Raises:
        FigureInputError: no scores.
        RunError: a label with fewer than two numbers.

    Example:
        >>> from posembed.figures import seed_scores
        >>> figure = seed_scores({"learned": [2.0, 2.1], "sinusoidal": [2.0, 2.2]}, alt="Two rows that overlap.")
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['learned', 'sinusoidal']
    """
    scores = {str(label): values for label, values in scores.items()}  # of a DataFrame too
    if not scores:
        raise FigureInputError("there are no scores to draw")
    nested = isinstance(next(iter(scores.values())), Mapping)
    panels: dict[str, Any] = dict(scores) if nested else {"": scores}
    height = 0.9 + 0.42 * max(map(len, panels.values()))
    figure = DescribedFigure(alt, figsize=size or (6.6, height * len(panels) ** stacked), layout="constrained")
    grid = figure.subplots(*(len(panels), 1)[:: 1 if stacked else -1], squeeze=False)
    for axes, (title, panel) in zip(grid.flat, panels.items(), strict=True):
        for place, ((label, values), look) in enumerate(zip(panel.items(), looks_of(panel), strict=True)):
            summary = interval(values)
            dots, mean = COLOURS[:2]
            marks = "oD"
            if named(label):
                dots = mean = look["color"]
                marks = 2 * look["marker"]
            above, below = place - 0.16, place + 0.2
            axes.plot(values, [above] * len(values), marks[0], color=dots, alpha=0.7, markersize=4.5, zorder=2)
            axes.plot([summary.low, summary.high], [below] * 2, color=mean, linewidth=2.5, zorder=3)
            axes.plot(summary.mean, below, marks[1], color=mean, markersize=6.5, zorder=4)
        axes.set_yticks(range(len(panel)), [written(label) for label in panel])
        axes.set_ylim(len(panel) - 0.4, -0.6)
        axes.set(title=title, xlabel=xlabel)
        if zero:
            axes.axvline(0, color="#57606a", linewidth=1.2)
    return figure


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
        found: as `posembed.Study.contrasts` has them or `posembed.stats.family` makes them, or rows of it: with the
            columns "mean", "low", "high" and "holm".
        alt: the description; by default one of what is drawn, in words and numbers.
        xlabel: what the numbers are.
        margin: differences of less than this count as none; drawn as a band around zero.
        size: width and height in inches.

    Returns:
        The figure.

    Raises:
        FigureInputError: a row whose "low" is above its "high", or no such columns, as in a dictionary of intervals.

    Example:
        >>> from posembed import load_study
        >>> from posembed.figures import forest_plot
        >>> figure = forest_plot(load_study("nopos-large").contrasts, alt="Both differences are well above zero.")
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['nopos minus learned', 'nopos minus alibi']
    """
    if not all(column in found for column in ("mean", "low", "high", "holm")):
        raise FigureInputError("contrasts have mean, low, high and holm; give them to posembed.stats.family first")
    if not (found["low"] <= found["high"]).all():
        raise FigureInputError("an interval goes from 'low' up to 'high', and some row's does not")
    figure, axes = new_figure(alt, size=size or (6.6, 0.9 + 0.32 * len(found)))
    colour = COLOURS[0]
    for place, (_, row) in enumerate(found.iterrows()):
        axes.plot([row["low"], row["high"]], [place] * 2, color=colour, linewidth=2, zorder=2)
        inside = colour if row["holm"] < LEVEL else "#ffffff"
        ring = {"markerfacecolor": inside, "markersize": 7, "markeredgewidth": 1.8}
        axes.plot(row["mean"], place, "o", color=colour, zorder=3, **ring)
    axes.axvline(0, color="#57606a", linewidth=1.2, zorder=1)
    if margin is not None:
        axes.axvspan(-margin, margin, color="#57606a", alpha=0.15, linewidth=0, zorder=0)
    axes.set_yticks(range(len(found)), [written(name) for name in found.index])
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set(xlabel=xlabel)
    return figure
