"""Figures as part of their page, in colours that follow its mode."""

import base64
import io
import re
from pathlib import Path

import numpy as np
from PIL import Image

from posembed.figures.drawing import in_few_colours
from posembed.figures.looks import cells_on_dark, on_dark

# Sphinx links a picture that has a size to its file, where it is no larger.
IMAGE = re.compile(
    r'(?:<a class="[^"]*image-reference" [^>]*>)?'
    r'(<img [^>]*src="(?:\.\./)*_images/[^"]*\.svg"[^>]*>)(?:</a>)?'
)
SOURCE = re.compile(r'src="[^"]*/([^"/]*)"')
ALT = re.compile(r'alt="([^"]*)"')
# In a style: what is drawn with a colour, and which.
COLOUR = re.compile(r"(fill|stroke): (#[0-9a-f]{6})\b")
PNG = "data:image/png;base64,"
# The cells of a map.
CELLS = re.compile(rf'<image href="{PNG}([^"]*)"([^>]*)/>')
ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
# Where they are, and the sides of the box of HTML in their place, which is
# scaled to it: a browser rounds sides that are not whole.
BOX, SIDE = ("x", "y", "width", "height"), 100
PAPER = "var(--pst-color-background, #ffffff)"
# As wide as it stands in the page of a notebook: 100 to the inch.
SIZE = re.compile(r'width="([\d.]+)pt" height="([\d.]+)pt"')


def draw(app, pagename, templatename, context, doctree):
    """Put each drawing of a page into it."""
    if "body" in context and doctree is not None:
        files = {name: path for path, name in app.builder.images.items()}
        context["body"] = IMAGE.sub(
            lambda image: drawing(app, files, *image.group(0, 1)),
            context["body"],
        )


def drawing(app, files, whole, image):
    """The SVG element for an image, or the whole where it is not a figure."""
    path = Path(app.srcdir, files.get(SOURCE.search(image)[1], ""))
    alt = ALT.search(image)
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if alt is None or not SIZE.search(text):
        return whole
    width, height = size(text)
    label = f'class="plot" role="img" aria-label="{alt[1]}"'
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
    """The cells of a map, in the colours that the page's styles choose.

    As a background, which is loaded when it is drawn: a picture would be loaded
    with the page, in both modes.
    """
    light, rest = cells.groups()
    shape = dict(ATTRIBUTE.findall(rest))
    x, y, width, height = (float(shape.pop(name, 0)) for name in BOX)
    shape.pop("preserveAspectRatio", None)
    shape["transform"] = (
        f"{shape.get('transform', '')} translate({x:g} {y:g}) "
        f"scale({width / SIDE:g} {height / SIDE:g})"
    ).strip()
    place = "".join(f' {name}="{value}"' for name, value in shape.items())
    return (
        f'<foreignObject width="{SIDE}" height="{SIDE}"{place}>'
        f'<div class="cells" style="--light: url({PNG}{light}); '
        f'--dark: url({PNG}{on_page(light)})"></div></foreignObject>'
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
    both = (
        PAPER
        if light == "#ffffff"
        else f"light-dark({light}, {on_dark(light)})"
    )
    return f"{what}: {light}; {what}: {both}"


def setup(app):
    """Draw before other extensions see the page."""
    app.connect("html-page-context", draw, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
