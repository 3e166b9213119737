"""The one look of all static figures, and a figure that knows its own description."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any, TypeVar

import matplotlib
import numpy as np
from cycler import cycler
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogFormatterSciNotation
from torch import Tensor

from ..dense_tensors import float64_array
from ..errors import FigureInputError
from .drawing import in_few_colours, svg_of
from .looks import COLOURS, DASHES, signed

# Smaller numbers are powers beside an axis.
LEAST_DECIMAL = 0.9e-4
Draw = TypeVar("Draw", bound=Callable[..., Any])

STYLE: Any = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelcolor": "#24292f",
    "axes.edgecolor": "#8c959f",
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 12.5,
    "axes.titleweight": "bold",
    "figure.facecolor": "white",
    "font.size": 12,
    "grid.color": "#e4e7eb",
    "legend.frameon": False,
    "lines.dashdot_pattern": DASHES["-."],
    "lines.dashed_pattern": DASHES["--"],
    "lines.dotted_pattern": DASHES[":"],
    "lines.linewidth": 2,
    "lines.markersize": 6,
    "savefig.dpi": 160,
    "text.color": "#24292f",
    "xtick.color": "#57606a",
    "ytick.color": "#57606a",
}


class DescribedFigure(Figure):
    """A matplotlib figure with an alt text, shown as a PNG that carries it, and as SVG where that is not too large.

    Args:
        alt: one or two sentences that say what the figure shows to a reader who cannot see it; by default `described`,
            which knows what is drawn and not what to see in it.
        **options: as for ``matplotlib.figure.Figure``.

    Example:
        >>> from posembed.figures import DescribedFigure
        >>> figure = DescribedFigure("A line that rises from 0 to 1.", figsize=(4, 2))
        >>> _ = figure.subplots().plot([0, 1])
        >>> figure.alt
        'A line that rises from 0 to 1.'
    """

    def __init__(self, alt: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._said = alt

    @property
    def alt(self) -> str:
        """What was said of the figure, or else what is drawn by now."""
        return self._said or described(self)

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        buffer = io.BytesIO()
        with matplotlib.rc_context(STYLE):
            # No software version in the file: the same figure gives the same bytes.
            self.savefig(buffer, format="png", metadata={"Software": None})
            drawing = svg_of(self, self.alt)
        width, height = (round(inches * 100) for inches in self.get_size_inches())
        data = {"image/png": in_few_colours(buffer.getvalue()), "text/plain": f"<figure: {self.alt}>"}
        data |= {"image/svg+xml": drawing} if drawing else {}
        metadata = {"alt": self.alt, "width": width, "height": height}
        return data, {kind: metadata for kind in data if kind.startswith("image/")}


def described(figure: Figure) -> str:
    """Say what the panels of a figure hold: titles, axes, and of each line and map the ends of its numbers.

    Example:
        >>> from posembed.figures import curves
        >>> curves({"learned": [3, 1, 2], "ALiBi": [3, 2, 1]}, xlabel="step", ylabel="loss").alt
        'loss by step: learned begins at 3 and ends at 2, between 1 and 3; ALiBi begins at 3 and ends at 1.'
    """
    panels = [_panel(axes) for axes in figure.axes if axes.get_label() != "<colorbar>"]
    return f"{'. '.join(filter(None, panels)) or 'An empty figure'}."


def _panel(axes: Any) -> str:
    named = " by ".join(filter(None, (axes.get_ylabel(), axes.get_xlabel())))
    # Lines that mark a place have no numbers of both axes.
    drawn = [line for line in axes.lines if line.get_transform().contains_branch(axes.transData)]
    rows = [each.get_text() for each in axes.get_yticklabels()]
    if drawn and isinstance(axes.yaxis.get_major_locator(), FixedLocator):  # a row a name
        ends = _ends(np.concatenate([np.asarray(line.get_xdata(), float) for line in drawn]))
        lines = [f"{', '.join(rows)}, numbers{ends}"]
    else:
        lines = [_line(line) for line in drawn]
    maps = [_map(image.get_array()) for image in axes.images]
    points = [f"{len(each.get_offsets())} points" for each in axes.collections if len(each.get_offsets()) > 1]
    words = ", ".join(filter(None, (axes.get_title(), named))), "; ".join(filter(None, (*lines, *maps, *points)))
    return " ".join(": ".join(filter(None, words)).split())


def _line(line: Any) -> str:
    values = np.ma.masked_invalid(np.asarray(line.get_ydata(), float)).compressed()
    if not len(values):
        return ""
    first, last, least, most = (f"{value:.3g}" for value in (values[0], values[-1], values.min(), values.max()))
    within = "" if {least, most} == {first, last} else f", between {least} and {most}"
    name = "a line" if line.get_label().startswith("_") else line.get_label()
    return f"{name} begins at {first} and ends at {last}{within}"


def _map(numbers: Any) -> str:
    rows, columns = numbers.shape[:2]
    return f"a map of {rows} rows and {columns} columns,{_ends(numbers)}"


def _ends(numbers: Any) -> str:
    found = np.ma.masked_invalid(numbers)
    return f" from {found.min():.3g} to {found.max():.3g}" if found.count() else " none"


def styled(draw: Draw) -> Draw:
    """Run a drawing function in the style of the book.

    Example:
        >>> from posembed.figures import new_figure, styled
        >>> @styled
        ... def line(values):
        ...     figure, axes = new_figure("A line through the values.")
        ...     axes.plot(values)
        ...     return figure
        >>> line([1, 2, 3]).alt
        'A line through the values.'
    """
    return matplotlib.rc_context(STYLE)(draw)


class OneLinePowers(LogFormatterSciNotation):
    """The ticks of a logarithmic axis as 0.001 or 1e−16: on a phone nobody could read an exponent.

    Of an axis with ticks below 0.0001 all below 1 are powers.

    Example:
        >>> from posembed.figures.style import OneLinePowers
        >>> ticks = OneLinePowers()
        >>> ticks(0.001), ticks(1e6), ticks(1e-16)
        ('0.001', '1e6', '1e−16')
    """

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The words of a tick; none where matplotlib would leave it without."""
        powers = x < 1 and self.axis is not None and min(self.axis.get_view_interval()) < LEAST_DECIMAL
        number = re.sub(r"e\+?(-?)0*", r"e\1", f"{x:.0e}" if powers else f"{x:g}")
        return signed(number) if super().__call__(x, pos) else ""


def logarithmic(*axes: Any) -> None:
    """Make axes logarithmic, such as ``figure.axes[0].xaxis``, with ticks that are one line.

    Example:
        >>> from posembed.figures import new_figure
        >>> from posembed.figures.style import logarithmic
        >>> _, axes = new_figure("Empty, with a logarithmic axis from left to right.")
        >>> logarithmic(axes.xaxis)
        >>> axes.get_xscale(), axes.get_yscale()
        ('log', 'linear')
    """
    for axis in axes:
        getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
        axis.set_major_formatter(OneLinePowers())
        axis.set_minor_formatter(OneLinePowers())


def as_numbers(given: Any, n_axes: int | None = None) -> Float[np.ndarray, "..."]:
    """What is to be drawn as numbers, with so many axes; what is masked is no number, and makes a gap."""
    if given.is_complex() if isinstance(given, Tensor) else np.iscomplexobj(given):
        raise FigureInputError("complex numbers cannot be drawn; give their real or their imaginary parts")
    if isinstance(given, Tensor):
        numbers = float64_array(given)
    else:
        numbers = np.ma.filled(np.ma.asarray(given, dtype=float), np.nan)
    if n_axes not in (None, numbers.ndim):
        raise FigureInputError(f"numbers of shape {numbers.shape} cannot be drawn; give an array of {n_axes} axes")
    return numbers


def new_figure(
    alt: str | None = None, n_columns: int = 1, *, size: tuple[float, float] = (6.6, 3.1), **options: Any
) -> Any:
    """Make a figure with one or more axes side by side.

    Args:
        alt: the description, as for `DescribedFigure`.
        n_columns: how many axes.
        size: width and height in inches.
        **options: as for ``matplotlib.figure.Figure.subplots``.

    Returns:
        The figure and its axes (one, or an array).

    Example:
        >>> from posembed.figures import new_figure
        >>> figure, (left, right) = new_figure("Two empty frames.", 2)
        >>> len(figure.axes)
        2
    """
    figure = DescribedFigure(alt, figsize=size, layout="constrained")
    return figure, figure.subplots(1, n_columns, **options)
