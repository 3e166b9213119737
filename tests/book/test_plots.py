"""Drawings in pages: inside of the page, described, and in colours of both modes; and numbered captions."""

import base64
import io
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from docutils import nodes
from docutils.utils import new_document
from PIL import Image
from tool import load

EXTENSIONS = Path(__file__).resolve().parents[2] / "book" / "_ext"
LINK = '<a class="reference internal image-reference" href="../_images/d.svg">'
IMAGE = '<p><img alt="A &quot;line&quot;." class="x" src="../_images/{}.svg" style="width: 660px;" /></p>'
DRAWN = '<svg width="475.2pt" height="244.8pt"><path style="fill: #ffffff; stroke: #2f4db8"/></svg>'


@pytest.fixture(scope="module")
def plots():
    return load("plots", EXTENSIONS)


@pytest.fixture
def app(tmp_path):
    (tmp_path / "drawn.svg").write_text(DRAWN)
    (tmp_path / "logo.svg").write_text("<svg/>")
    images = {"drawn.svg": "d.svg", "logo.svg": "logo.svg"}
    return SimpleNamespace(srcdir=tmp_path, builder=SimpleNamespace(images=images))


def test_a_drawing_becomes_part_of_the_page(plots, app):
    context = {"body": IMAGE.format("d").replace("<img", f"{LINK}<img").replace(" /></p>", " /></a></p>")}
    plots.draw(app, "why/two", "page.html", context, new_document("two"))
    assert context["body"] == (
        '<p><svg width="660" height="340" class="plot" role="img" aria-label="A &quot;line&quot;.">'
        '<path style="fill: #ffffff; fill: var(--pst-color-background, #ffffff); '
        'stroke: #2f4db8; stroke: light-dark(#2f4db8, #a3c3f1)"/></svg></p>'
    )


def cells(*colours):
    file = io.BytesIO()
    Image.fromarray(np.uint8([colours])).save(file, "png")
    data = base64.b64encode(file.getvalue()).decode()
    place = 'preserveAspectRatio="none" transform="scale(1 -1)" x="3" y="-8.5" width="2" height="5.4"'
    return f'<image href="data:image/png;base64,{data}" {place}/>'


def colours_of(drawing, before='<image href="'):
    data = re.search(rf"{before}data:image/png;base64,([\w+/=]*)", drawing)[1]
    return np.array(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")).tolist()


def test_a_map_is_drawn_for_each_mode(plots, app, tmp_path):
    none, zero = [201, 209, 217], [250, 250, 251]
    (tmp_path / "drawn.svg").write_text(DRAWN.replace("</svg>", cells(none, zero) + "</svg>"))
    context = {"body": IMAGE.format("d")}
    plots.draw(app, "why/two", "page.html", context, new_document("two"))
    assert colours_of(context["body"], r"--light: url\(") == [[none, zero]]
    ((grey, dark),) = colours_of(context["body"], r"--dark: url\(")
    assert grey == [154, 164, 176] and max(dark) < 64
    assert "<image" not in context["body"]
    place = 'width="100" height="100" transform="scale(1 -1) translate(3 -8.5) scale(0.02 0.054)"'
    assert f'<foreignObject {place}><div class="cells"' in context["body"]


def test_a_drawing_as_two_pictures_has_the_colours_of_both_modes(plots):
    made = plots.in_each_mode(DRAWN.replace("</svg>", cells([250, 250, 251], [250, 250, 251]) + "</svg>"))
    assert 'width="660" height="340"' in made["light"] and "stroke: #2f4db8" in made["light"]
    assert "fill: #121212; stroke: #a3c3f1" in made["dark"] and max(colours_of(made["dark"])[0][0]) < 64


@pytest.mark.parametrize("name", ["logo", "of another page"])
def test_other_pictures_stay(plots, app, name):
    context = {"body": IMAGE.format(name)}
    plots.draw(app, "why/two", "page.html", context, new_document("two"))
    assert context["body"] == IMAGE.format(name)


def test_a_caption_makes_a_numbered_figure_of_what_a_cell_shows():
    captions, doctree = load("captions", EXTENSIONS), new_document("two")
    for number, text in enumerate(("Rows of `p`, by $k$.", "", "Nothing is shown.")):
        metadata = {"caption": text} if text else {}
        cell = nodes.container(nb_element="cell_code", cell_index=number, cell_metadata=metadata)
        shown = nodes.container("", nodes.paragraph("", "picture"), nb_element="cell_code_output")
        cell += [nodes.container(nb_element="cell_code_source"), *([shown] if number < 2 else [])]
        doctree += cell
    captions.add_captions(None, doctree)
    (figure,) = doctree.findall(nodes.figure)
    assert figure["ids"] == ["figure-of-cell-0"] and figure.astext().endswith("picture\n\nRows of p, by k.")
    assert [type(each) for each in figure[1]] == [nodes.Text, nodes.literal, nodes.Text, nodes.math, nodes.Text]
    assert figure.parent["cell_index"] == 0 and len(doctree[1]) == 2
