"""What needs the repository's address: left out while there is none.

`make set-repository` sets it. A chapter then has Colab under its title, and its
last line leads to the checks that hold its sentences.
"""

import ast
import html
from pathlib import Path
from urllib.parse import quote

import yaml
from docutils import nodes
from docutils.parsers.rst import Directive

ROOT = Path(__file__).resolve().parents[2]
CHECKS = "tests/book/checks"
HELD = "What holds these sentences: {} checks"
PLACEHOLDER = "/OWNER/"
COLAB = "https://colab.research.google.com/"
UNDER_TITLE = (
    '</h1>\n<p class="under-title"><a href="{}">Open in Colab</a>, '
    "to run and change it</p>"
)


def leave_out_or_show(app, pagename, templatename, context, doctree):
    """Take out what has no address; show Colab where there is one."""
    buttons = list(with_address(context.get("header_buttons", [])))
    context["header_buttons"] = buttons
    inner = [one for each in buttons for one in each.get("buttons", [])]
    urls = [each.get("url", "") for each in inner]
    address = app.config.html_theme_options.get("repository_url", "")
    if PLACEHOLDER not in address:
        title = quote(f"About the page {pagename}")
        context["feedback"] = f"{address}/issues/new?title={title}"
    colab = [url for url in urls if url.startswith(COLAB)]
    if colab and "body" in context:
        line = UNDER_TITLE.format(html.escape(colab[0]))
        context["body"] = context["body"].replace("</h1>", line, 1)


def with_address(buttons):
    """Buttons that lead somewhere, and groups that have some left."""
    for button in buttons:
        if "buttons" in button:
            kept = list(with_address(button["buttons"]))
            if kept:
                yield button | {"buttons": kept}
        elif PLACEHOLDER not in button.get("url", ""):
            yield button


class Cite(Directive):
    """How to cite this, as CITATION.cff says it, in BibTeX."""

    def run(self):
        """Make one entry."""
        text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
        said = yaml.safe_load(text)
        authors = " and ".join(
            f"{{{each['name']}}}" for each in said["authors"]
        )
        fields = {
            "author": authors,
            "title": f"{{{said['title']}}}",
            "year": self.state.document.settings.env.config.copyright,
            "url": said["repository-code"],
        }
        lines = (f"  {key} = {{{text}}}," for key, text in fields.items())
        entry = "\n".join(("@software{posembed,", *lines, "}"))
        return [nodes.literal_block(entry, entry, language="bibtex")]


def say_whether_published(app, config):
    """Let pages say one thing with an address and another without one."""
    if PLACEHOLDER in config.html_theme_options.get("repository_url", ""):
        config.html_baseurl, config.ogp_image = "", None
    else:
        app.tags.add("published")
    config.ogp_site_url = config.html_baseurl


def say_what_holds(app, doctree):
    """End a page that has checks with their number and their place."""
    name = f"{CHECKS}/{app.env.docname}.py"
    if not (ROOT / name).exists():
        return
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    text = HELD.format(
        sum(isinstance(node, ast.Assert) for node in ast.walk(tree))
    )
    options = app.config.html_theme_options
    address = options.get("repository_url", "")
    line = nodes.paragraph(classes=["held"])
    if PLACEHOLDER in address:
        line += [nodes.Text(f"{text}, in "), nodes.literal("", name)]
    else:
        branch = options.get("repository_branch", "main")
        refuri = f"{address}/blob/{branch}/{name}"
        line += nodes.reference("", text, refuri=refuri, internal=False)
    next(doctree.findall(nodes.section)).append(line)


def setup(app):
    """Buttons come after the theme has made them; Sphinx calls this."""
    app.add_directive("cite-this", Cite)
    app.connect("config-inited", say_whether_published)
    app.connect("doctree-read", say_what_holds)
    app.connect("html-page-context", leave_out_or_show, priority=950)
