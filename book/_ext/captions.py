"""Numbered captions: what the metadata of a cell says under "caption"."""

import re

from docutils import nodes

CODE_OR_FORMULA = re.compile(r"(`[^`]+`|\$[^$]+\$)")


def add_captions(app, doctree):
    """Put outputs with a caption into figures, which Sphinx numbers."""
    for cell in list(doctree.findall(nodes.container)):
        caption = cell.get("cell_metadata", {}).get("caption")
        shown = [
            each
            for each in cell.children
            if each.get("nb_element") == "cell_code_output"
        ]
        if caption and shown:
            number = f"figure-of-cell-{cell['cell_index']}"
            figure = nodes.figure("", ids=[number], classes=["captioned"])
            cell[cell.index(shown[0])] = figure
            figure += [shown[0], nodes.caption("", "", *inline(caption))]


def inline(text):
    """Code and formulas of a caption; everything else is text."""
    for part in CODE_OR_FORMULA.split(text):
        mark, inner = part[:1], part[1:-1]
        if mark == "`":
            yield nodes.literal("", inner)
        elif mark == "$":
            yield nodes.math("", inner)
        else:
            yield nodes.Text(part)


def setup(app):
    """Caption pages once they are read."""
    app.connect("doctree-read", add_captions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
