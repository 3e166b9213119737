"""What search engines and previews of links are told of each page."""

import html
import re
import textwrap
from itertools import accumulate
from urllib.parse import urljoin

from docutils import nodes

# How the address begins until `make set-repository` sets it.
PLACEHOLDER = "https://OWNER."
PICTURE = "_static/screenshot.webp"
SENTENCE = re.compile(r".+?(?:[.?!](?=\s[^a-z]|$)|:$)")
LONGEST = 160
# Where a page's own text stands: not in a note, a table or a list.
OWN = nodes.section | nodes.container


def describe(app, pagename, templatename, context, doctree):
    """Describe a page, with no address while there is none."""
    base = address(app)
    if not base:
        context["pageurl"] = None
    if doctree is None:
        return
    book, title = app.config.html_title, doctree.next_node(nodes.title).astext()
    facts = {
        "og:title": title,
        "og:description": beginning(doctree) or f"{title} of the book {book}",
        "og:type": "article",
        "og:site_name": book,
    }
    if base:
        facts |= {"og:url": context["pageurl"], "og:image": base + PICTURE}
        facts |= {"twitter:card": "summary_large_image"}
    tags = [tag("name", "description", facts["og:description"])]
    tags += [tag("property", name, text) for name, text in facts.items()]
    context["metatags"] = context.get("metatags", "") + "\n".join(tags)


def address(app):
    """Where the book is published; empty until that is known."""
    base = app.config.html_baseurl
    return "" if base.startswith(PLACEHOLDER) else base


def beginning(doctree):
    """The first sentence of a page, and the next ones if they are short."""
    for paragraph in doctree.findall(nodes.paragraph):
        sentences = SENTENCE.findall(plain(paragraph))
        if sentences and isinstance(paragraph.parent, OWN):
            cut = textwrap.shorten(sentences[0], LONGEST, placeholder=" …")
            short = [s for s in accumulate(sentences) if len(s) <= LONGEST]
            return (short or [cut])[-1]
    return ""


def plain(paragraph):
    """The text of a paragraph in one line, its formulas without backslashes."""
    return " ".join(paragraph.astext().replace("\\", "").split())


def tag(key, name, text):
    """One tag of a page's head."""
    return f'<meta {key}="{name}" content="{html.escape(text)}" />'


def write_sitemap(app, exception):
    """List the pages for search engines, once there is an address."""
    base = address(app)
    if exception or not base:
        return
    targets = map(app.builder.get_target_uri, sorted(app.env.found_docs))
    entries = [
        f"<url><loc>{html.escape(urljoin(base, each))}</loc></url>"
        for each in targets
    ]
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
        *entries,
        "</urlset>",
    ]
    (app.outdir / "sitemap.xml").write_text(
        "\n".join(lines) + "\n", encoding="utf-8"
    )


def setup(app):
    """Connect them; Sphinx calls this."""
    app.connect("html-page-context", describe)
    app.connect("build-finished", write_sitemap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
