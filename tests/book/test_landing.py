"""The pictures on the cards of the first page."""

import importlib
from xml.etree import ElementTree

DRAWING = """<svg xmlns="http://www.w3.org/2000/svg" width="100pt" height="80pt" viewBox="0 0 100 80"><defs>
<clipPath id="data"><rect x="10" y="5" width="60" height="50"/></clipPath>
<clipPath id="colours"><rect x="80" y="5" width="4" height="50"/></clipPath></defs>
<g><path d="M0 0H100" style="stroke: #000000"/><g><path d="M10 5H70" clip-path="url(#data)"/><text>x</text></g>
<g clip-path="url(#data)"><circle r="2"/></g><path d="M80 5V55" clip-path="url(#colours)"/><g><circle r="3"/></g></g>
</svg>"""


def test_a_card_shows_what_is_inside_of_the_axes_alone(monkeypatch, pytestconfig):
    monkeypatch.syspath_prepend(pytestconfig.rootpath / "book" / "_ext")
    root = ElementTree.fromstring(importlib.import_module("landing").data_alone(DRAWING))
    assert (root.get("width"), root.get("height")) == ("60.00pt", "50.00pt")
    assert root.get("viewBox") == "10.0 5.0 60.00 50.00"
    # The line and the point; neither words, ticks and keys of a legend, nor the scale of colours.
    tags = [node.tag.rpartition("}")[2] for node in root.iter()]
    assert (tags.count("path"), tags.count("circle"), tags.count("text")) == (1, 1, 0)
