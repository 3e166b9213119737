"""A figure as a part of a page: inline SVG that takes its colours and its letters from the page."""

from __future__ import annotations

import base64
import io
import re
from html import escape

import matplotlib
from PIL import Image

from ..figures import DescribedFigure
from ..figures.style import STYLE

# Of the rasters inside; more than a phone shows, fewer than make the page heavy.
DOTS_PER_INCH = 150
# As many as a colour map needs for an eye, and few enough to pack well.
COLOURS_OF_A_RASTER = 96

_RASTER = re.compile(r"data:image/png;base64,\s*([A-Za-z0-9+/=\s]+)")
_DRAWN = re.compile(r'\b(d|x|y)="([^"]*)"')
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
_COLOUR = re.compile(r"(fill|stroke): ?#([0-9a-f]{6})")
_STYLE = re.compile(r"<style.*?</style>", re.DOTALL)
# The points of a curve: each repeats the style of the one before.
_POINTS = re.compile(
    r'<g( clip-path="[^"]*")?>\s*((?:<use [^>]*?style="([^"]*)"/>\s*)(?:<use [^>]*?style="\3"/>\s*)*)</g>'
)
_NAMED = re.compile(r'( id="|href="#|url\(#)')


def inline_svg(figure: DescribedFigure, key: str) -> str:
    """Draw a figure as an ``<svg>`` element for the middle of a page.

    Every colour ``#0072b2`` becomes ``var(--c-0072b2, #0072b2)``, which a style sheet may set otherwise on a dark page;
    texts stay texts in the page's own font; rasters are packed in few colours. Its name is the figure's alt text.

    Args:
        figure: the figure.
        key: what sets the ids of this figure apart from those of others on the page; letters, digits and hyphens.

    Returns:
        Markup. All text in it is escaped.

    Example:
        >>> from posembed.figures import new_figure
        >>> from posembed.report.svg import inline_svg
        >>> figure, _ = new_figure('An "empty" frame.')
        >>> inline_svg(figure, "one")[:56]
        '<svg role="img" aria-label="An &quot;empty&quot; frame."'
    """
    buffer = io.StringIO()
    options = {"svg.fonttype": "none", "svg.hashsalt": "posembed"}
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with matplotlib.rc_context(STYLE | options):
        figure.savefig(buffer, format="svg", transparent=True, dpi=DOTS_PER_INCH, metadata=nothing)
    drawing = buffer.getvalue()
    drawing = drawing[drawing.index("<svg") :]
    drawing = _STYLE.sub("", _RASTER.sub(_repacked, drawing))
    drawing = _POINTS.sub(_styled_together, drawing)
    drawing = _DRAWN.sub(lambda found: f'{found[1]}="{_LONG_NUMBER.sub(_shorter, found[2])}"', drawing)
    drawing = _COLOUR.sub(r"\1: var(--c-\2, #\2)", drawing)
    drawing = _NAMED.sub(rf"\g<1>{key}-", drawing)
    head = f'<svg role="img" aria-label="{escape(figure.alt)}"'
    return re.sub(r'<svg|\s(?:width|height)="[\d.]+pt"', lambda found: head if found[0] == "<svg" else "", drawing)


def _shorter(number: re.Match[str]) -> str:
    """A hundredth of a point is less than any screen shows."""
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _styled_together(found: re.Match[str]) -> str:
    style = f' style="{found[3]}"'
    return f"<g{found[1] or ''}{style}>{found[2].replace(style, '')}</g>"


def _repacked(found: re.Match[str]) -> str:
    picture = Image.open(io.BytesIO(base64.b64decode(found[1]))).convert("RGBA")
    opaque = picture.getchannel("A").getextrema()[0] == 255
    # Only this method of Pillow's keeps what is clear.
    shown, method = (picture.convert("RGB"), None) if opaque else (picture, Image.Quantize.FASTOCTREE)
    packed = io.BytesIO()
    shown.quantize(COLOURS_OF_A_RASTER, method, dither=Image.Dither.NONE).save(packed, "png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(packed.getvalue()).decode()
