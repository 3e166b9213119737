"""Drawings in pages: inside of the page, described, and in colours of both modes; and numbered captions."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document
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
