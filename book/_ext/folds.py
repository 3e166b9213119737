"""Folded cells: a name for each, and one fold for neighbours of a kind."""

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

# By how the cell begins.
NAMES = {
    "# In Colab": "For Colab: the installation",
    "def check(": "The property as code",
    "def mended(": "The mended code",
    "# For the figure at the end": "For the figure at the end",
    "# What your answer is compared with": (
        "What your answer is compared with"
    ),
}


def name_of(cell):
    """What a folded cell is."""
    code = cell.astext().lstrip()
    names = (name for start, name in NAMES.items() if code.startswith(start))
    return next(names, "The code")


def is_folded(node):
    """Whether a node is a cell that MyST-NB has folded, code and output."""
    return isinstance(node, nodes.container) and node.get("hide_mode") == "all"


def is_only_a_fold(node):
    """Whether a node is a cell whose code is folded and that shows nothing."""
    return (
        isinstance(node, nodes.container)
        and node.get("hide_mode") == "input"
        and len(node.children) == 1
    )


class ShareFolds(SphinxPostTransform):
    """Name the folds of a page, and join neighbours of a kind.

    These are cells of one name, and code that shows nothing with the code
    after it, which shows what both are for.
    """

    default_priority = 200
    formats = ("html",)

    def run(self, **kwargs):
        """Come after MyST-NB's own transform, of 199."""
        for cell in list(self.document.findall(is_folded)):
            name, place = name_of(cell), cell.parent.index(cell)
            before = cell.parent[place - 1] if place else None
            fold = cell.children[0]
            fold["prompt_show"] = fold["prompt_hide"] = name
            if is_folded(before) and name == name_of(before):
                before.children[0].extend(fold.children)
                cell.parent.remove(cell)
        for cell in list(self.document.findall(is_only_a_fold)):
            after = cell.next_node(descend=False, siblings=True)
            if isinstance(after, nodes.container) and (
                after.get("hide_mode") == "input"
            ):
                after.children[0].insert(0, cell.children[0].children)
                cell.parent.remove(cell)


def setup(app):
    """Add the transform; Sphinx calls this."""
    app.add_post_transform(ShareFolds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
