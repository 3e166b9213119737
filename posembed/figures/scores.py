"""Scores of several runs: every seed is a point, the mean has its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..stats import interval
from .looks import COLOURS, looks_of, named, written
from .style import DescribedFigure, new_figure, styled


@styled
def seed_scores(
    scores: Mapping[str, Sequence[float]] | Mapping[str, Mapping[str, Sequence[float]]],
    *,
    alt: str | None = None,
    xlabel: str = "loss, nats a character",
    zero: bool = False,
    size: tuple[float, float] | None = None,
) -> DescribedFigure:
    """Draw every seed as a point and the mean with its 95 % interval, one row for each label.

    A row whose label names one scheme has its colour and marker.

    Args:
        scores: for each label at least two numbers; or for each title such a mapping, drawn side by side.
        alt: the description; by default one of what is drawn, in words and numbers.
        xlabel: what the numbers are.
        zero: whether a line stands at zero, for differences.
        size: width and height in inches.

    Returns:
        The figure.

    Raises:
        RunError: a label with fewer than two numbers.

    Example:
        >>> from posembed.figures import seed_scores
        >>> figure = seed_scores({"learned": [2.0, 2.1], "sinusoidal": [2.0, 2.2]}, alt="Two rows that overlap.")
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['learned', 'sinusoidal']
    """
    nested = isinstance(next(iter(scores.values())), Mapping)
    panels: dict[str, Any] = dict(scores) if nested else {"": scores}
    size = size or (6.6, 0.9 + 0.42 * max(map(len, panels.values())))
    figure, row = new_figure(alt, len(panels), size=size, squeeze=False)
    for axes, (title, panel) in zip(row[0], panels.items(), strict=True):
        for place, ((label, values), look) in enumerate(zip(panel.items(), looks_of(panel), strict=True)):
            summary = interval(values)
            dots, mean = COLOURS[:2]
            marks = "oD"
            if named(label):
                dots = mean = look["color"]
                marks = 2 * look["marker"]
            axes.plot(values, [place] * len(values), marks[0], color=dots, alpha=0.7, markersize=5, zorder=2)
            axes.plot([summary.low, summary.high], [place + 0.25] * 2, color=mean, linewidth=2.5, zorder=3)
            axes.plot(summary.mean, place + 0.25, marks[1], color=mean, markersize=5, zorder=4)
        axes.set_yticks(range(len(panel)), [written(label) for label in panel])
        axes.set_ylim(len(panel) - 0.4, -0.6)
        axes.set(title=title, xlabel=xlabel)
        if zero:
            axes.axvline(0, color="#57606a", linewidth=1.2)
    return figure
