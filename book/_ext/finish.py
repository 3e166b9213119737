"""The last steps, on the written pages: what no option or style can do."""

from pathlib import Path

import figure_scripts
import formulas
import live_models
import page_repairs
import previews
import styles

# The style sheets come behind what they depend on, pages and scripts; models
# are no scripts that name anything.
STEPS = (
    formulas.finish,
    page_repairs.repair,
    previews.add,
    figure_scripts.move,
    styles.unite,
    live_models.write,
)


def finish(app, exception):
    """Take all pages through the steps; each changes texts by their path."""
    if exception or app.builder.format != "html":
        return
    out = Path(app.outdir)
    pages = {
        page: page.read_text(encoding="utf-8")
        for page in out.rglob("*.html")
        if out / "_static" not in page.parents
    }
    for step in STEPS:
        step(pages, out)
    for page, text in pages.items():
        page.write_text(text, encoding="utf-8")


def setup(app):
    """Come after what else is done at the end; Sphinx calls this."""
    app.connect("build-finished", finish, priority=900)
