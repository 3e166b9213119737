"""The last line of a chapter: how many checks hold its sentences, and where.

The address of the repository is a placeholder at first: then the line names
the file and leads nowhere.
"""

import ast
from pathlib import Path

from docutils import nodes
from repository_links import PLACEHOLDER

ROOT = Path(__file__).resolve().parents[2]
CHECKS = "tests/book/checks"
TEXT = "What holds these sentences: {} checks"


def n_checks(path):
    """How often a file of checks asserts something."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return sum(isinstance(node, ast.Assert) for node in ast.walk(tree))


def say_what_holds(app, doctree):
    """Append the line to a page that has checks."""
    name = f"{CHECKS}/{app.env.docname}.py"
    if not (ROOT / name).exists():
        return
    options = app.config.html_theme_options
    address = options.get("repository_url", "")
    text = TEXT.format(n_checks(ROOT / name))
    line = nodes.paragraph(classes=["held"])
    if PLACEHOLDER in address:
        line += [nodes.Text(f"{text}, in "), nodes.literal("", name)]
    else:
        branch = options.get("repository_branch", "main")
        refuri = f"{address}/blob/{branch}/{name}"
        line += nodes.reference("", text, refuri=refuri, internal=False)
    next(doctree.findall(nodes.section)).append(line)


def setup(app):
    """Register it; Sphinx calls this."""
    app.connect("doctree-read", say_what_holds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
