"""Leaves solutions out of pages and downloads: make book SOLUTIONS=no."""

import json
import os
import re
from pathlib import Path

# A page's own text may stand before a solution and after it in the same cell.
START = re.compile(r"(?s)^:::+\{solution-start\}.*", re.MULTILINE)
END = re.compile(r"(?s).*^:::+\{solution-end\}\s*?\n:::+", re.MULTILINE)


def drop_from_page(app, doctree):
    """Take the solutions out of a page."""
    from sphinx_exercise.nodes import solution_node

    for node in list(doctree.findall(solution_node)):
        node.parent.remove(node)


def drop_from_downloads(app, error):
    """Take them out of the notebooks that readers may download."""
    for path in Path(app.outdir, "_sources").rglob("*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        notebook["cells"] = list(without_solutions(notebook["cells"]))
        path.write_text(json.dumps(notebook), encoding="utf-8")


def without_solutions(cells):
    """The cells that stand outside of solutions."""
    inside = False
    for cell in cells:
        text = "".join(cell["source"])
        is_text = cell["cell_type"] == "markdown"
        if inside and is_text and END.search(text):
            inside, text = False, END.sub("", text, count=1)
        if not inside and is_text and START.search(text):
            inside, text = True, START.sub("", text)
            if text.strip():
                yield cell | {"source": text}
            continue
        if not inside and text.strip():
            yield cell | {"source": text} if is_text else cell


def setup(app):
    """Register, where it is asked for."""
    if os.environ.get("SOLUTIONS") == "no":
        app.connect("doctree-read", drop_from_page)
        app.connect("build-finished", drop_from_downloads)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
