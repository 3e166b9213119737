"""Where in a position table a probe errs."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import FigureInputError
from ..probing import ProbeResult
from .style import COLOURS, MARKERS, DescribedFigure, new_figure, styled


@styled
def error_by_region(
    results: Mapping[str, ProbeResult], *, alt: str, size: tuple[float, float] = (4.8, 3.4)
) -> DescribedFigure:
    """Draw a probe's mean absolute error in each region of the table, on a logarithmic scale.

    Args:
        results: from `posembed.probe_table`, by label.
        alt: the description.
        size: width and height in inches.

    Returns:
        The figure, with a step for each region and a dashed line for the constant guess of the first result.

    Raises:
        FigureInputError: no result.

    Example:
        >>> from posembed import probe_table, sinusoidal
        >>> from posembed.figures import error_by_region
        >>> result = probe_table(sinusoidal(64, 32))
        >>> figure = error_by_region({"even rows to odd rows": result}, alt="The error is small everywhere.")
        >>> figure.axes[0].get_yscale()
        'log'
    """
    if not results:
        raise FigureInputError("there is no result to draw; give at least one")
    figure, axes = new_figure(alt, size=size)
    for (label, result), colour, marker in zip(results.items(), COLOURS, MARKERS, strict=False):
        for number, (start, stop, mae) in enumerate(result.by_region):
            name = label if number == 0 else None
            axes.plot([start, stop], [mae, mae], color=colour, linewidth=2.5, solid_capstyle="butt")
            axes.plot((start + stop) / 2, mae, marker, color=colour, label=name)
    constant = next(iter(results.values())).baselines.constant
    axes.axhline(constant, color="#57606a", linestyle="--", linewidth=1.2, label="constant guess")
    axes.set_yscale("log")
    axes.set(xlabel="position", ylabel="mean absolute error")
    figure.legend(loc="outside upper center", ncols=2, columnspacing=1, handletextpad=0.5)
    return figure
