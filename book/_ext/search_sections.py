"""An index of sections for the search, of which Sphinx's own knows pages alone.

assets/search.js ranks by it. It is loaded by the page of the search.
"""

import html
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.search.en import SearchEnglish
from sphinx.util import logging

# Long pages that are no prose: the search leads to them as a whole.
PAGES_ALONE = ("api", "evidence/", "benchmarks", "alternatives", "bibliography")
ENGLISH = SearchEnglish({})
# What is not prose.
LEFT_OUT = nodes.section | nodes.literal_block | nodes.math_block | nodes.raw


def write(app, exception):
    """Write which words each section has, and how often."""
    if exception or app.builder.format != "html":
        return
    path = Path(app.srcdir, "search-words.yml")
    called = yaml.safe_load(path.read_text(encoding="utf-8"))
    sections, words = [], defaultdict(list)
    for page in sorted(app.env.found_docs):
        if page.startswith(PAGES_ALONE):
            continue
        for anchor, title, counts in sections_of(app.env.get_doctree(page)):
            names = " ".join(stems(called.pop(page + anchor, "")))
            for word in counts | dict.fromkeys(names.split(), 0):
                words[word] += [len(sections), counts[word]]
            length = sum(counts.values())
            sections.append([page, anchor, html.escape(title), names, length])
    if called:
        message = "search-words.yml: no section %s"
        logging.getLogger(__name__).warning(message, ", ".join(called))
    index = json.dumps([sections, words], separators=(",", ":"))
    file = Path(app.outdir, "_static", "sections.js")
    file.write_text(f"Search.sections = {index};\n", encoding="utf-8")


def sections_of(doctree):
    """Anchor, title and words of each section; the first is the page."""
    for k, section in enumerate(doctree.findall(is_titled)):
        text = " ".join(map(prose, section.children))
        anchor = f"#{section['ids'][0]}" if k else ""
        yield anchor, section[0].astext(), Counter(stems(text))


def is_titled(node):
    """Whether it is a section of the text, as theorems are not."""
    return isinstance(node, nodes.section) and isinstance(node[0], nodes.title)


def prose(node):
    """The words of a part of a page, without code and what has sections."""
    if isinstance(node, LEFT_OUT):
        return ""
    parts = node.children
    return " ".join(map(prose, parts)) if parts else node.astext()


def stems(text):
    """The words of a text, each as the search knows it."""
    words = re.findall(r"\w\w+", text.lower())
    return [
        ENGLISH.stem(each) for each in words if each not in ENGLISH.stopwords
    ]


def setup(app):
    """Write it at the end; Sphinx calls this."""
    app.connect("build-finished", write)
