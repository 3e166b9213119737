"""The pictures of the two pages: each peer as a dot, at its ratio to posembed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from posembed.figures.drawing import svg_of
from posembed.figures.looks import COLOURS, INK, MARKERS
from posembed.figures.style import STYLE

# In the order of the legend; what belongs to none of them is code of no library.
LIBRARIES = (
    "transformers",
    "x-transformers",
    "torch",
    "rotary-embedding-torch",
    "transformer-lens",
    "nnsight",
    "other code",
)
LOOKS = dict(zip(LIBRARIES, [*zip(COLOURS, MARKERS, strict=False), (INK, "X")], strict=True))
# In inches: narrow enough for a phone, so a row's label stands above its marks.
WIDTH, ROW, MARGIN = 4.6, 0.36, 1.35
# Hollow: what lies on top of another hides none of it.
MARK = {"markerfacecolor": "none", "markeredgewidth": 1.7, "markersize": 5.5, "clip_on": False}


def ratios(panels: Sequence[tuple[str, Sequence[tuple[str, Any]]]], name: str) -> str:
    """Panels side by side, of the same rows: a title, and of each row its label and its peers with their ratios.

    Right of the line at 1 posembed is ahead; the axes are logarithmic.
    """
    labels = [label for label, _ in panels[0][1]]
    height = ROW * len(labels) + MARGIN
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height))
        all_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (title, rows) in zip(all_axes, panels, strict=True):
            axes.axvline(1, color=INK, linewidth=1)
            for place, (_, peers) in enumerate(rows):
                for library, ratio in peers:
                    colour, marker = LOOKS[library]
                    axes.plot(ratio, place, marker, color=colour, **MARK)
            axes.set(xscale="log", title=title)
            axes.title.set_size(11)
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
            low, high = axes.get_xlim()
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 100 else (1,)))
            axes.tick_params(axis="x", which="minor", labelbottom=False)
            axes.tick_params(axis="both", labelsize=9.5)
            axes.set_yticks([])
        for place, label in enumerate(labels):
            words = {"fontsize": 10, "va": "bottom", "bbox": {"facecolor": "#ffffff", "linewidth": 0, "pad": 0.5}}
            all_axes[0].text(0.01, place - 0.3, label, transform=all_axes[0].get_yaxis_transform(), **words)
        all_axes[0].set_ylim(len(labels) - 0.5, -0.9)
        shown = {library for _, rows in panels for _, peers in rows for library, _ in peers}
        marks = [
            matplotlib.lines.Line2D(
                [], [], color=LOOKS[each][0], marker=LOOKS[each][1], linestyle="", label=each, **MARK
            )
            for each in LIBRARIES
            if each in shown
        ]
        figure.legend(handles=marks, loc="lower center", ncols=2, fontsize=10)
        figure.subplots_adjust(left=0.03, right=0.97, top=1 - 0.35 / height, bottom=1.05 / height, wspace=0.08)
        drawn = svg_of(figure, name)
    assert drawn is not None
    return drawn + "\n"


def library_of(candidate: str) -> str:
    """Whose code a candidate is, by its first word."""
    first = candidate.split()[0].rstrip(",")
    return first if first in LIBRARIES else "other code"
