"""What is drawn in a figure, in words and numbers: its description where nobody wrote one."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from matplotlib.figure import Figure


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
    if drawn and any(re.match("[A-Za-z]", name) for name in rows):  # a row a name, and numbers from left to right
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
