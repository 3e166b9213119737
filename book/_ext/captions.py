"""What cells show: captions, from their metadata, and lines that may wrap."""

import re

from docutils import nodes

CODE_OR_FORMULA = re.compile(r"(`[^`]+`|\$[^$]+\$)")
COLUMNS = re.compile(r"\S {2,}\S")


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


def let_sentences_wrap(app, doctree):
    """Mark what is printed in no columns: on a phone it need not scroll."""
    for text in doctree.findall(nodes.literal_block):
        if "output" in text["classes"] and not COLUMNS.search(text.astext()):
            text["classes"].append("running")


def setup(app):
    """Change pages once they are read; Sphinx calls this."""
    app.connect("doctree-read", add_captions)
    app.connect("doctree-read", let_sentences_wrap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
