"""Drawings in pages: inside of the page, described, and in colours of both modes; and numbered captions."""

import base64
import contextlib
import html
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
DRAWN = '<svg width="475.2pt" height="244.8pt"><path style="fill: #ffffff; stroke: #2f4db8"/></svg>'


@pytest.fixture(scope="module")
def plots():
    return load("plots", EXTENSIONS)


class Writer:
    """Of Sphinx's writer what a picture needs."""

    def __init__(self, folder, text):
        (folder / "drawn.svg").write_text(text)
        self.builder, self.body = SimpleNamespace(srcdir=folder), []
        self.attval = html.escape

    def visit_image(self, node):
        self.body.append(node["uri"])


@pytest.fixture
def written(plots, tmp_path):
    """What a page has for a picture."""

    def write(text, **attributes):
        writer = Writer(tmp_path, text)
        with contextlib.suppress(nodes.SkipNode):
            plots.visit_image(writer, nodes.image(uri="drawn.svg", **attributes))
        return "".join(writer.body)

    return write


def test_a_drawing_becomes_part_of_the_page(written):
    assert written(DRAWN, alt='A "line".') == (
        '<svg width="660" height="340" class="plot" role="img" aria-label="A &quot;line&quot;.">'
        '<path style="fill: #ffffff; fill: var(--pst-color-background, #ffffff); '
        'stroke: #2f4db8; stroke: light-dark(#2f4db8, #a3c3f1)"/></svg>'
    )


def cells(*colours):
    file = io.BytesIO()
    Image.fromarray(np.uint8([colours])).save(file, "png")
    data = base64.b64encode(file.getvalue()).decode()
    place = 'preserveAspectRatio="none" transform="scale(1 -1)" x="3" y="-8.5" width="2" height="5.4"'
    return f'<image href="data:image/png;base64,{data}" {place}/>'


def colours_of(drawing):
    data = re.search(r"data:image/png;base64,([\w+/=]*)", drawing)[1]
    return np.array(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")).tolist()


def test_a_map_is_drawn_for_each_mode(written):
    none, zero = [201, 209, 217], [250, 250, 251]
    page = written(DRAWN.replace("</svg>", cells(none, zero) + "</svg>"), alt="A map.")
    dark, light = re.findall("<image.*?/>", page)
    assert 'class="on-light"' in light and colours_of(light) == [[none, zero]]
    ((grey, black),) = colours_of(dark)
    assert 'class="on-dark"' in dark and grey == [154, 164, 176] and max(black) < 64
    place = 'transform="scale(1 -1)" x="3" y="-8.5" width="2" height="5.4"'
    assert place in light and place in dark


def test_a_drawing_as_two_pictures_has_the_colours_of_both_modes(plots):
    made = plots.in_each_mode(DRAWN.replace("</svg>", cells([250, 250, 251], [250, 250, 251]) + "</svg>"))
    assert 'width="660" height="340"' in made["light"] and "stroke: #2f4db8" in made["light"]
    assert "fill: #121212; stroke: #a3c3f1" in made["dark"] and max(colours_of(made["dark"])[0][0]) < 64


@pytest.mark.parametrize(("text", "alt"), [("<svg/>", {"alt": "A logo."}), (DRAWN, {})])
def test_other_pictures_stay(written, text, alt):
    assert written(text, **alt) == "drawn.svg"


def test_a_caption_makes_a_numbered_figure_of_what_a_cell_shows():
    captions, doctree = load("cells", EXTENSIONS), new_document("two")
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
