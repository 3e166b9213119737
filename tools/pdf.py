"""Print the built book as one PDF: title, contents with page numbers, bookmarks, and links that lead inside of it.

All pages are put into one document, which Chromium prints twice: the first time shows on which page everything stands.

Usage: python tools/pdf.py [--to FILE] [PAGE ...]
"""

import argparse
import datetime
import io
import json
import logging
import os
import sys
import time
from copy import copy
from html import escape
from importlib.metadata import version
from pathlib import Path

import whole
from bs4 import BeautifulSoup
from chapters import BUILD, ROOT
from pypdf import PdfReader, PdfWriter
from pypdf.generic import Fit

sys.path.insert(0, str(ROOT / "tests" / "browser"))
from chromium import find_chromium, open_page, serve_folder, wait_until_ready

TARGET = BUILD / "positional-embeddings.pdf"
STYLES = ROOT / "tools" / "pdf.css"
# As wide as the paper between its margins, at this scale.
WIDTH, SCALE = 812, 0.8
# What an element may say of another one by its name.
REFERENCES = ("for", "aria-labelledby", "aria-describedby", "aria-controls")
FILL = """(numbers) => document.querySelectorAll(".number").forEach(
  (node) => { node.textContent = numbers[node.dataset.of][0]; })"""


def key(page, place=""):
    """The name of a place of the book in the one document."""
    return page.removesuffix(".html").replace("/", "-") + (f"--{place}" if place else "")


def join(page):
    """A page with the names and addresses of the one document."""
    article = copy(page.article)
    # The names in a drawing are its own, and what refers to them stays as it is.
    for node in article.select("[id]:not(svg.plot *)"):
        node["id"] = key(page.name, node["id"])
    for name in REFERENCES:
        for node in article.find_all(attrs={name: True}):
            node[name] = " ".join(key(page.name, each) for each in node[name].split())
    for link in article.find_all("a", href=True):
        file, place = page.target(link["href"])
        if file is not None:
            link["href"] = f"#{key(file, place)}"
    for image in article.find_all("img"):
        image["src"] = page.target(image["src"])[0] or image["src"]
    # There is no book.js to load them when a figure comes near.
    for figure in article.select("[data-script]"):
        address, _ = page.target(figure["data-script"])
        figure.insert_after(BeautifulSoup(f'<script src="{address}"></script>', "html.parser"))
    article["id"] = key(page.name)
    return str(article)


def document(pages):
    """The whole book as one page, without the numbers of its contents."""
    config, front = whole.config(), contents(pages)
    # Also where some other pages are asked for alone.
    title = title_page(whole.read(*next(whole.contents())), config)
    sheets = dict.fromkeys(page.target(each)[0] for page in pages for each in page.styles)
    head = "".join(f'<link rel="stylesheet" href="{each}">' for each in sheets)
    rules = STYLES.read_text(encoding="utf-8") + "".join(map(running_head, pages))
    body = "".join(f'<div style="page: {leaf(page)}">{opening(page, pages)}{join(page)}</div>' for page in pages)
    return (
        '<!DOCTYPE html><html lang="en" data-theme="light" data-mode="light"><head><meta charset="utf-8">'
        f"<title>{escape(config['title'])}</title>{head}<style>{rules}</style></head><body>{title}{front}"
        f'<main class="bd-main"><div class="bd-content"><div class="bd-article-container">{body}</div></div></main>'
        "</body></html>"
    )


def leaf(page):
    """The name of the leaves that a page stands on; these have its title at their top."""
    return f"on-{key(page.name)}"


def running_head(page):
    left, right = (json.dumps(text, ensure_ascii=False) for text in (page.part or "", page.title))
    return f"@page {leaf(page)} {{ @top-left {{ content: {left} }} @top-right {{ content: {right} }} }}\n"


def opening(page, pages):
    """The name of a part, above the first of its pages."""
    first = next(each for each in pages if each.part == page.part)
    return f'<p class="part">{escape(page.part)}</p>' if page.part and page is first else ""


def title_page(first, config):
    """What the book is, as its first page says it, and which edition this is."""
    lead, picture = first.article.select_one(".lead p"), first.article.select_one(".hero img") or ""
    day = datetime.date.fromtimestamp((whole.HTML / "index.html").stat().st_mtime)
    return (
        f'<section class="title-page"><p class="title">{escape(config["title"])}</p>'
        f'<p class="lead">{escape(whole.text(lead).partition(". ")[0])}.</p>{picture}'
        f'<div class="edition"><p>{escape(config["author"])}</p>'
        f"<p>posembed {version('posembed')}, {day:%B} {day.day}, {day.year}</p>"
        f"<p>{config['html']['extra_footer']}</p></div></section>"
    )


def contents(pages):
    """Parts, pages and sections; where each stands is filled in once it is known."""
    lines = []
    for part, group in whole.parts(pages):
        lines += [f'<p class="part">{escape(part)}</p>'] if part else []
        for page in group:
            lines.append(f'<p class="page">{entry(key(page.name), page.title)}</p>')
            lines += [f"<p>{entry(key(page.name, place), title)}</p>" for place, title in page.sections]
    return f'<nav class="whole-contents"><p class="title">Contents</p>{"".join(lines)}</nav>'


def entry(name, title):
    return f'<a href="#{name}"><span>{escape(title)}</span><span class="number" data-of="{name}"></span></a>'


def places(data):
    """On which page of a PDF each place stands, counted from 1, and how high on it."""
    reader = PdfReader(io.BytesIO(data))
    found = reader.named_destinations.items()
    return {name.lstrip("/"): (reader.get_destination_page_number(each) + 1, each.top) for name, each in found}


def print_twice(pages):
    """Print the document, fill in the numbers of its pages, and print it again; return the PDF and its places."""
    html, options = document(pages), {"scale": SCALE, "prefer_css_page_size": True, "print_background": True}
    with serve_folder(whole.HTML) as address, open_page(WIDTH, 1000) as page:
        page.set_default_timeout(180_000)
        page.route(f"{address}/whole", lambda route: route.fulfill(body=html, content_type="text/html"))
        page.goto(f"{address}/whole")
        wait_until_ready(page)
        page.evaluate(FILL, places(page.pdf(**options)))
        data = page.pdf(**options, tagged=True)
    return data, places(data)


def bookmarks(writer, pages, found):
    """Parts, pages and sections as the outline of a PDF."""

    def mark(title, name, parent=None):
        number, top = found[name]
        return writer.add_outline_item(title=title, page_number=number - 1, parent=parent, fit=Fit.xyz(top=top))

    for part, group in whole.parts(pages):
        above = mark(part, key(group[0].name)) if part else None
        for page in group:
            chapter = mark(page.title, key(page.name), above)
            for place, title in page.sections:
                mark(title, key(page.name, place), chapter)


def main():
    """Write the PDF."""
    parser = argparse.ArgumentParser(description="Print the built book as one PDF.")
    parser.add_argument("--to", type=Path, default=TARGET, metavar="FILE", help="where it goes")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="these pages alone, such as schemes/rope")
    asked = parser.parse_args()
    if find_chromium() is None:
        sys.exit(whole.NO_CHROMIUM.format("pdf"))
    # Chromium's count of its objects is too low, and pypdf says so at each reading.
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    start, pages = time.monotonic(), whole.pages("pdf", asked.pages)
    print("pdf: printing the book", flush=True)
    data, found = print_twice(pages)
    writer = PdfWriter(clone_from=io.BytesIO(data))
    bookmarks(writer, pages, found)
    config = whole.config()
    writer.add_metadata({"/Title": config["title"], "/Author": config["author"]})
    writer.page_mode = "/UseOutlines"
    writer.write(asked.to)
    size, seconds = asked.to.stat().st_size / 1e6, time.monotonic() - start
    print(f"pdf: {os.path.relpath(asked.to, ROOT)}, {len(writer.pages)} pages, {size:.1f} MB, in {seconds:.0f} s")


if __name__ == "__main__":
    main()
