"""What the glossary says of a term, with the pages that link to it.

A page brings the entries of its own links, in a template that is not drawn;
assets/book.js shows one beside its link, from a file too.
"""

import re

ENTRY = re.compile(r'<dt id="(term-[^"]+)">.*?<dd>(.*?)</dd>', re.DOTALL)
LINK = re.compile(r'href="[^"]*#(term-[^"]+)"')
# A preview has no links of its own.
ANCHOR = re.compile(r"</?a\b[^>]*>")
BODY = "</body>"


def add(pages, out):
    """Give the finished pages the entries that they link to."""
    glossary = pages.get(out / "glossary.html", "")
    entries = {
        name: ANCHOR.sub("", text) for name, text in ENTRY.findall(glossary)
    }
    for page, text in pages.items():
        _, _, body = text.partition("<article")
        used = sorted(entries.keys() & {*LINK.findall(body)})
        if not used or page.name == "genindex.html":
            continue
        boxes = (f'<div id="{name}">{entries[name]}</div>' for name in used)
        template = f'<template id="terms">{"".join(boxes)}</template>\n'
        pages[page] = text.replace(BODY, template + BODY, 1)
