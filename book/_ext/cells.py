"""What cells show: captions, lines that may wrap, and names of folds."""

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

CODE_OR_FORMULA = re.compile(r"(`[^`]+`|\$[^$]+\$)")
COLUMNS = re.compile(r"\S {2,}\S")
# What a folded cell is, by how it begins.
NAMES = {
    "# In Colab": "For Colab: the installation",
    "def check(": "The property as code",
    "def mended(": "The mended code",
    "# For the figures of": "For the figures of the exhibits",
    "# What your answer is compared with": (
        "What your answer is compared with"
    ),
}


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


class ShareFolds(SphinxPostTransform):
    """Name folded cells, and put neighbours of a name under one fold.

    Of code that is folded alone, what shows nothing joins the code after it.
    """

    default_priority = 200
    formats = ("html",)

    def run(self, **kwargs):
        """Come after MyST-NB's own transform, of 199."""
        before = None
        for cell in list(self.document.findall(is_folded)):
            fold, code = cell.children[0], cell.astext().lstrip()
            if cell["hide_mode"] == "all":
                names = (NAMES[each] for each in NAMES if code.startswith(each))
                fold["prompt_show"] = next(names, "The code")
                fold["prompt_hide"] = fold["prompt_show"]
            kind = cell["hide_mode"], fold["prompt_show"]
            place = cell.parent.index(cell)
            if (kind, place and cell.parent[place - 1]) == before:
                fold.insert(0, cell.parent.pop(place - 1).children[0].children)
            before = (kind, cell) if len(cell.children) == 1 else None


def is_folded(node):
    """Whether a node is a cell that MyST-NB has folded, or its code alone."""
    is_container = isinstance(node, nodes.container)
    return is_container and node.get("hide_mode") in ("all", "input")


def setup(app):
    """Change pages once they are read; Sphinx calls this."""
    app.connect("doctree-read", add_captions)
    app.connect("doctree-read", let_sentences_wrap)
    app.add_post_transform(ShareFolds)
