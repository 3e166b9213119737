"""A figure of lines as SVG: sharp at any size, with words that can be found, and colours that a page can exchange."""

from __future__ import annotations

import io
import re

import matplotlib
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

# In characters; most figures of the book have a tenth of it.
MOST_OF_A_DRAWING = 150_000
# What no reader and no browser needs: comments, names of groups, turns by nothing.
_IDLE = re.compile(r'<!--.*?-->|<metadata>.*?</metadata>|(?<=<g) id="[^"]*"| transform="rotate\(-0 [^)]*\)"', re.DOTALL)
# In a page these rules would be those of all drawings: here they are the root's attributes.
_RULES = re.compile(r"<defs>\s*<style[^>]*>\*\{stroke-linejoin: round; stroke-linecap: butt\}</style>\s*</defs>")
_ROOT = '<svg stroke-linejoin="round" stroke-linecap="butt"'
_TAG = re.compile(r"<[^>]*>")
_FONTS = re.compile(r"'DejaVu Sans'[^;\"]*")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def has_lines_alone(figure: Figure) -> bool:
    """Whether no part of a figure is a picture of cells, which SVG would make larger and no sharper."""
    return not any(
        axes.images or any(isinstance(each, QuadMesh) for each in axes.collections) for axes in figure.get_axes()
    )


def svg_of(figure: Figure, name: str) -> str | None:
    """The figure as one SVG element, or None where it is too large for a page.

    Its identifiers are made from the name, so that two figures of a page share none.
    """
    file = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(file, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    drawn = file.getvalue()
    drawn = _RULES.sub("", _IDLE.sub("", drawn[drawn.index("<svg") :])).replace("<svg", _ROOT, 1)
    drawn = re.sub(r">\s+<", "><", _TAG.sub(_short, drawn)).strip()
    return drawn if len(drawn) <= MOST_OF_A_DRAWING else None


def _short(tag: re.Match[str]) -> str:
    """A tag on one line, with two digits of what is measured and any plain font."""
    line = _FONTS.sub("sans-serif", " ".join(tag[0].split()).replace("xlink:href", "href"))
    return _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), line)
