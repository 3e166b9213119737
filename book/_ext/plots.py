"""Figures as part of their page, in colours that follow its mode."""

import base64
import io
import re
from pathlib import Path

import numpy as np
from docutils import nodes
from PIL import Image

from posembed.figures.drawing import in_few_colours
from posembed.figures.looks import cells_on_dark, on_dark

# In a style: what is drawn with a colour, and which.
COLOUR = re.compile(r"(fill|stroke): (#[0-9a-f]{6})\b")
PNG = "data:image/png;base64,"
# The cells of a map.
CELLS = re.compile(rf'<image href="{PNG}([^"]*)"([^>]*)/>')
PAPER = "var(--pst-color-background, #ffffff)"
# As wide as it stands in the page of a notebook: 100 to the inch.
SIZE = re.compile(r'width="([\d.]+)pt" height="([\d.]+)pt"')


def visit_image(writer, node):
    """Write a drawing as part of the page, other pictures as Sphinx does."""
    path = Path(writer.builder.srcdir, node["uri"])
    is_drawing = path.suffix == ".svg" and "alt" in node
    text = path.read_text(encoding="utf-8") if is_drawing else ""
    if SIZE.search(text):
        writer.body.append(drawing(text, writer.attval(node["alt"])))
        raise nodes.SkipNode
    type(writer).visit_image(writer, node)


def drawing(text, alt):
    """A figure in colours that follow the mode of its page."""
    width, height = size(text)
    label = f'class="plot" role="img" aria-label="{alt}"'
    text = SIZE.sub(f'width="{width}" height="{height}" {label}', text, count=1)
    return CELLS.sub(cells_in_both_modes, COLOUR.sub(in_both_modes, text))


def size(text):
    """Width and height of a drawing in a page."""
    return [round(float(pt) / 0.72) for pt in SIZE.search(text).groups()]


def in_each_mode(text):
    """A drawing as two pictures, whose colours a page cannot exchange."""
    width, height = size(text)
    light = SIZE.sub(f'width="{width}" height="{height}"', text, count=1)
    dark = COLOUR.sub(lambda style: f"{style[1]}: {on_dark(style[2])}", light)
    dark = CELLS.sub(
        lambda cells: f'<image href="{PNG}{on_page(cells[1])}"{cells[2]}/>',
        dark,
    )
    return {"light": light, "dark": dark}


def cells_in_both_modes(cells):
    """The cells of a map, of which the page's styles show those of its mode."""
    light, rest = cells.groups()
    return "".join(
        f'<image class="on-{mode}" href="{PNG}{data}"{rest}/>'
        for mode, data in (("dark", on_page(light)), ("light", light))
    )


def on_page(light):
    """The cells of a map as they are on a dark page."""
    with Image.open(io.BytesIO(base64.b64decode(light))) as picture:
        points = np.array(picture.convert("RGBA"))
    points[..., :3] = cells_on_dark(points[..., :3])
    file = io.BytesIO()
    Image.fromarray(points).save(file, "png")
    return base64.b64encode(in_few_colours(file.getvalue())).decode()


def in_both_modes(style):
    """A colour on light paper, for readers that know one mode, then both."""
    what, light = style.groups()
    in_dark = f"light-dark({light}, {on_dark(light)})"
    both = PAPER if light == "#ffffff" else in_dark
    return f"{what}: {light}; {what}: {both}"


def setup(app):
    """Write pictures in this way; Sphinx calls this."""
    app.add_node(nodes.image, override=True, html=(visit_image, None))
