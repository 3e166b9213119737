"""A figure as SVG: sharp at any size, with words that can be found, and colours that a page can exchange."""

from __future__ import annotations

import base64
import io
import re

import matplotlib
from matplotlib.figure import Figure
from PIL import Image

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
# Cells of a map, as a picture.
_PICTURE = re.compile(r"(?<=data:image/png;base64,)[^\"]+")


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


def _smaller(picture: re.Match[str]) -> str:
    return base64.b64encode(in_few_colours(base64.b64decode(picture[0]))).decode()


def _short(tag: re.Match[str]) -> str:
    """A tag on one line, with two digits of what is measured and any plain font."""
    line = _FONTS.sub("sans-serif", " ".join(tag[0].split()).replace("xlink:href", "href"))
    if line.startswith("<image"):  # which is stretched by its numbers
        return _PICTURE.sub(_smaller, line)
    return _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), line)
