"""Curves with bands along positions or offsets; differences token by token."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from jaxtyping import Real
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from ..errors import FigureInputError
from ..stats import interval
from .looks import looks_of, named, written
from .style import DescribedFigure, as_numbers, logarithmic, new_figure, styled

if TYPE_CHECKING:
    import pandas

SOFT = "#57606a"
# Up to so many points of a scheme have its marker.
FEW = 12
BEHIND_STYLES = ("-", "--", ":")
# How far apart the marks of one token are, in tokens; and up to how many times its format's resolution a difference is
# called rounding.
BESIDE, FAINT = 0.22, 10
# Of a legend, in characters: what fits above a figure of usual width, and what a line and the space around it take.
LEGEND_WIDTH, HANDLE = 72, 10
# Of a mark, in widths of the axes: its text stands on its inner side.
NEAR_AN_END = 0.2
# In inches, and some air; on a phone words are larger.
LINE_OF_TEXT = 0.3
# Of a label at an end, in characters: a longer one has several lines.
LABEL_WIDTH = 14


@styled
def curves(
    series: Mapping[Any, Any] | pandas.DataFrame,
    *,
    alt: str | None = None,
    x: Sequence[float | int] | None = None,
    xlabel: str = "",
    ylabel: str = "",
    marks: Mapping[str, float | int] | None = None,
    log_x: bool = False,
    log_y: bool = False,
    ylim: tuple[float | int, float | int] | None = None,
    size: tuple[float, float] = (6.6, 3.4),
    band: Literal["range", "interval"] = "range",
    behind: Mapping[str, tuple[Sequence[float | int], Sequence[float | int]]] | None = None,
    schemes: Mapping[str, str] | None = None,
    at_ends: bool = False,
) -> DescribedFigure:
    """Draw one curve for each label, or the mean and the range or interval of several.

    A label that names one scheme ("ALiBi", "a learned table") has its colour, dash and, where there are at most 12
    points, its marker, the same in all figures.

    Args:
        series: for each label "points" numbers, or "runs points": then their mean is drawn with a band. NaN makes a
            gap, which all runs of a label must have at the same places.
        alt: the description; by default one of what is drawn, in words and numbers.
        x: the places of the points; by default 0, 1, 2, ..., or those that Series and DataFrames of pandas have as
            numbers in their index, or columns.
        xlabel: what the horizontal axis is.
        ylabel: what the vertical axis is.
        marks: vertical lines, by their text, which stands above the axes.
        log_x: whether the horizontal axis is logarithmic.
        log_y: whether the vertical axis is.
        ylim: the ends of the vertical axis; what lies outside is cut off.
        size: width and height in inches.
        band: what it shows: from the least run to the largest, or the 95 % interval of the mean at each place.
        behind: broad grey curves for comparison, such as published ones: for each label its places and its points.
        schemes: the schemes of labels that do not name them.
        at_ends: whether labels stand at the right ends of their curves, in place of a legend.

    Returns:
        The figure.

    Raises:
        FigureInputError: an unknown band; places that are NaN or infinite, or that pandas has otherwise than `x`;
            points that are infinite; a number or a band that a logarithmic axis has no place for; NaN in some runs of a
            label and not in all.

    Example:
        >>> from posembed.figures import curves
        >>> figure = curves({"one run": [3, 2, 1], "two runs": [[3, 3, 3], [1, 2, 3]]}, alt="One falls, one does not.")
        >>> len(figure.axes[0].lines)
        2
    """
    series = {str(label): values for label, values in series.items()}
    at_places = None if x is None else as_numbers(x, 1)
    if at_places is not None and not np.isfinite(at_places).all():
        raise FigureInputError("x has NaN or infinity, where no point can be drawn; leave those places out")
    if band not in ("range", "interval"):
        raise FigureInputError(f"band is {band!r}; choose 'range' or 'interval'")
    figure, axes = new_figure(alt, size=size)
    whole = True
    for number, ((label, values), look) in enumerate(zip(series.items(), looks_of(series, schemes), strict=True)):
        runs = np.atleast_2d(as_numbers(values))
        _check_no_infinity(label, runs)
        places = _places(label, values, runs.shape[1], at_places)
        whole &= not (places % 1).any()
        if (np.isnan(runs).any(axis=0) != np.isnan(runs).all(axis=0)).any():
            raise FigureInputError(
                f"some runs of {label} have no number where others have one, and would have no mean; leave those runs "
                "or those places out"
            )
        if len(places) > FEW or not (named(label) or label in (schemes or {})):
            look["marker"] = None
        # The first above the others: where curves coincide, the dashes of each show what is below.
        order = 2 + (len(series) - number) / (len(series) + 1)
        (line,) = axes.plot(places, runs.mean(axis=0), label=written(label), zorder=order, **look)
        if len(runs) > 1:
            axes.fill_between(places, *_band(runs, band), color=line.get_color(), alpha=0.2, linewidth=0)
        _check_above_zero(label, axes, log_x, log_y)
    for number, (label, (at, points)) in enumerate((behind or {}).items()):
        # Broad and faint: to be seen on both sides of a curve that lies on it.
        wide = {"color": SOFT, "alpha": 0.35, "linewidth": 5, "linestyle": BEHIND_STYLES[number % 3], "zorder": 1}
        _check_no_infinity(label, np.append(as_numbers(at, 1), as_numbers(points, 1)))
        axes.plot(at, points, label=written(label), **wide)
        _check_above_zero(label, axes, log_x, log_y)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    logarithmic(*[axes.xaxis] * log_x, *[axes.yaxis] * log_y)
    if not log_x and whole:
        axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
    if ylim is not None:
        axes.set_ylim(*ylim)
    for text, at_mark in (marks or {}).items():
        _mark(axes, text, at_mark)
        _check_above_zero(text, axes, log_x, log_y)
    labels = [*series, *(behind or {})]
    if at_ends:
        _name_at_ends(figure, axes)
    elif len(labels) > 1:
        figure.legend(loc="outside upper center", ncols=_columns(labels, size[0] / 6.6), columnspacing=3)
    return figure


def _places(label: str, values: Any, n_points: int, x: np.ndarray | None) -> np.ndarray:
    """Where the points of a label stand."""
    own = counted = np.arange(n_points)
    if hasattr(values, "iloc"):
        index = values.columns if values.ndim == 2 else values.index
        own = index.to_numpy() if index.dtype.kind in "iuf" else counted
    if x is not None and not (np.array_equal(own, counted) or np.array_equal(own, x)):
        raise FigureInputError(f"{label} has places of its own, in its index, and they are not those of x; leave x out")
    return own if x is None else x


def _check_no_infinity(label: str, numbers: np.ndarray) -> None:
    """Refuse what would be a gap that nobody meant."""
    if np.isinf(numbers).any():
        raise FigureInputError(f"{label} has infinity, where no point can be drawn; write NaN where a gap is meant")


def _check_above_zero(label: str, axes: Any, log_x: bool, log_y: bool) -> None:
    """Refuse what a logarithmic axis would leave out in silence, of points and of bands."""
    if (log_x and axes.dataLim.x0 <= 0) or (log_y and axes.dataLim.y0 <= 0):
        raise FigureInputError(
            f"a logarithmic axis ends above 0, and {label} reaches 0 or below; leave it out, or give x="
        )


def _band(runs: np.ndarray, band: str) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper edge, place by place; NaN at a gap."""
    low, high = runs.min(axis=0), runs.max(axis=0)
    for place in np.flatnonzero(~np.isnan(low)) if band == "interval" else ():
        found = interval(runs[:, place].tolist())
        low[place], high[place] = found.low, found.high
    return low, high


def _columns(labels: list[str], width: float) -> int:
    """Columns of a legend in as few rows as have room, at most 5 beside each other. It is filled column by column.

    Args:
        labels: of the series.
        width: of the figure, in usual widths.
    """
    for n in range(min(len(labels), 5), 1, -1):
        columns = np.array_split(np.array([len(label) for label in labels]), n)
        if sum(column.max() + HANDLE for column in columns) <= width * LEGEND_WIDTH:
            # As many in each row, so that no column has two beside others of one.
            return -(-len(labels) // -(-len(labels) // n))
    return 1


def _name_at_ends(figure: DescribedFigure, axes: Any) -> None:
    """Labels beside the last points of their lines, at least a line of text apart; long ones in several lines."""
    axes.margins(x=0)
    axes.autoscale_view()
    lines = [line for line in axes.lines if not line.get_label().startswith("_")]
    heights = (axes.transScale + axes.transLimits).transform([line.get_xydata()[-1] for line in lines])[:, 1]
    rising, labels = heights.argsort(), [textwrap.fill(line.get_label(), LABEL_WIDTH) for line in lines]
    tall = LINE_OF_TEXT / figure.get_figheight() * np.array([1 + labels[k].count("\n") for k in rising])
    steps = tall.cumsum() - tall / 2
    # Pushed up from the lowest, pushed down from the highest, and between the two.
    ends = heights[rising] - steps
    apart = (np.maximum.accumulate(ends) + np.minimum.accumulate(ends[::-1])[::-1]) / 2 + steps
    for at, end, k in zip(apart, heights[rising], rising, strict=True):
        colour = lines[k].get_color()
        how: Any = {"xycoords": "axes fraction", "verticalalignment": "center", "color": colour}
        # A thin line leads from the end to its label, which may have been pushed away from it.
        lead = {"arrowstyle": "-", "color": colour, "linewidth": 1, "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)}
        axes.annotate(labels[k], (1, end), (1.04, at), arrowprops=lead, **how)
    # On a phone words are larger.
    figure.set_layout_engine("constrained", rect=(0, 0, 0.92, 1))


def _mark(axes: Any, text: str, x: float | int) -> None:
    """A vertical line, named above the axes, where no curve comes, and not beside them."""
    axes.axvline(x, color=SOFT, linewidth=1.2, linestyle=":")
    across = (axes.transScale + axes.transLimits).transform((x, 1))[0]
    axes.annotate(
        text,
        xy=(x, 1),
        xycoords=("data", "axes fraction"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="left" if across < NEAR_AN_END else "right" if across > 1 - NEAR_AN_END else "center",
        color=SOFT,
        fontsize=10.5,
    )


@styled
def token_differences(
    tokens: Sequence[str],
    differences: Mapping[str, Real[Tensor | np.ndarray, " tokens"]],
    *,
    alt: str | None = None,
) -> DescribedFigure:
    """Draw one difference for each token and condition, on a logarithmic axis.

    Args:
        tokens: the labels of the axis, in order.
        differences: for each condition, "tokens" numbers of zero or more. What is below the resolution of their
            dtype, zero included, is rounding and is drawn at that resolution.
        alt: the description; by default one of what is drawn, in words and numbers.

    Returns:
        The figure.

    Raises:
        FigureInputError: a condition has another number of values than there are tokens, or a negative one.

    Example:
        >>> import torch
        >>> from posembed.figures import token_differences
        >>> figure = token_differences(["I", "do"], {"zeroed": torch.tensor([1e-7, 0.0])}, alt="Two small differences.")
        >>> len(figure.axes[0].lines)
        1
    """
    figure, axes = new_figure(alt)
    rounding: list[float] = []
    for k, ((label, values), look) in enumerate(zip(differences.items(), looks_of(differences), strict=True)):
        numbers, least = as_numbers(values, 1), _resolution(values)
        if len(numbers) != len(tokens) or not (numbers >= 0).all():
            raise FigureInputError(f"{label!r} needs {len(tokens)} differences of zero or more, one for each token")
        # Zero has no place on a logarithmic axis.
        shown = numbers.clip(min=least)
        # Side by side, so that none hides another.
        places = np.arange(len(tokens)) + BESIDE * (k - (len(differences) - 1) / 2)
        axes.plot(places, shown, markersize=8, label=label, **look | {"linestyle": "none"})
        rounding += shown[shown < FAINT * least].tolist()
    logarithmic(axes.yaxis)
    if rounding:
        how: Any = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "color": SOFT}
        axes.annotate("unchanged but for rounding", (0.99, max(rounding)), (0, 9), ha="right", fontsize=10.5, **how)
    axes.set_xticks(range(len(tokens)), tokens)
    axes.set_ylabel("difference, in units of\nthe largest output")
    figure.legend(loc="outside upper center", ncols=len(differences))
    return figure


def _resolution(values: Real[Tensor | np.ndarray, " tokens"]) -> float:
    """Of the format of these numbers; of float64, where they are whole."""
    kind = torch.as_tensor(values).dtype
    return torch.finfo(kind if kind.is_floating_point else torch.float64).eps
