"""A figure as SVG: sharp at any size, with words that can be found, and colours that a page can exchange."""

from __future__ import annotations

import base64
import io
import re

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from PIL import Image, ImageChops

# In characters; most figures of the book have a tenth of it.
MOST_OF_A_DRAWING = 150_000
# What no reader and no browser needs: comments, names of groups and pictures, turns by nothing.
_IDLE = re.compile(
    r'<!--.*?-->|<metadata>.*?</metadata>|(?<=<g) id="[^"]*"| id="image[^"]*"| transform="rotate\(-0 [^)]*\)"',
    re.DOTALL,
)
# In a page these rules would be those of all drawings: here they are the root's attributes.
_RULES = re.compile(r"<defs>\s*<style[^>]*>\*\{stroke-linejoin: round; stroke-linecap: butt\}</style>\s*</defs>")
_ROOT = '<svg stroke-linejoin="round" stroke-linecap="butt"'
_TAG = re.compile(r"<[^>]*>")
_FONTS = re.compile(r"'DejaVu Sans'[^;\"]*")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
# Rows of a scale of colours, between which its reader mixes, and how far that is off at most, of 255.
_ROWS, _MOST_OFF = 33, 8
# Cells of a map or its scale, as a picture.
_PICTURE = re.compile(r'(?<=data:image/png;base64,)([^"]+)')


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


def in_few_colours(png: bytes) -> bytes:
    """The same picture in 256 colours, as many as a colour map has: a third of the bytes that a page has to carry."""
    smaller = io.BytesIO()
    # A picture that is clear in places keeps that: only one method counts it as a colour.
    whole, clear = Image.open(io.BytesIO(png)).convert("RGBA"), Image.Quantize.FASTOCTREE
    opaque = whole.getchannel("A").getextrema() == (255, 255)
    few = whole.convert("RGB").quantize(256, dither=Image.Dither.NONE) if opaque else whole.quantize(256, clear)
    few.save(smaller, "png", optimize=True)
    return smaller.getvalue()


def _smaller(tag: str) -> str:
    """The picture of a tag in few colours; a scale of colours in few rows, a tenth of the bytes."""
    before, picture, after = _PICTURE.split(tag)
    png = base64.b64decode(picture)
    scale = None if "pixelated" in tag else _scale(png)
    if scale:
        after = after.replace('"', '" preserveAspectRatio="none"', 1)
    return before + base64.b64encode(scale or in_few_colours(png)).decode() + after


def _scale(png: bytes) -> bytes | None:
    """The picture in few rows, where what is mixed between them is the same picture; None where it is another."""
    whole, file = Image.open(io.BytesIO(png)).convert("RGBA"), io.BytesIO()
    rows = whole.resize((1, _ROWS), Image.Resampling.NEAREST)
    off = ImageChops.difference(rows.resize(whole.size, Image.Resampling.BILINEAR), whole)
    if np.max(off.getextrema()) > _MOST_OFF:
        return None
    rows.save(file, "png", optimize=True)
    return file.getvalue()


def _short(tag: re.Match[str]) -> str:
    """A tag on one line, with two digits of what is measured and any plain font."""
    line = _FONTS.sub("sans-serif", " ".join(tag[0].split()).replace("xlink:href", "href"))
    if line.startswith("<image"):  # which is stretched by its numbers
        return _smaller(line)
    return _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), line)
