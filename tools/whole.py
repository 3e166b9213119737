"""The built book as one list of pages, for the forms of it that are one file: PDF and EPUB."""

import sys
from dataclasses import dataclass
from urllib.parse import unquote, urljoin, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag
from chapters import BOOK, BUILD, ROOT

HTML = BUILD / "html"
BASE = "file:///"
# What only a screen can use, or what stands folded there, and what is asked of a script.
LEFT_OUT = "a.headerlink, .citation > .label, .on-dark, a.sd-btn, details.hide, .toggle-button, .copybtn"
# What holds nothing more then.
HOLDERS = "div.cell, p"
NO_CHROMIUM = (
    "{}: it needs Chromium; install chromium or google-chrome, name one in POSEMBED_CHROMIUM, "
    "or run .venv/bin/playwright install chromium"
)


@dataclass
class Page:
    """A page of the book: its place, and what it shows."""

    name: str
    part: str | None
    article: Tag
    styles: list[str]

    @property
    def title(self):
        """Its heading with its number."""
        return text(self.article.h1)

    @property
    def sections(self):
        """The name and the heading of each section."""
        return [(heading.parent["id"], text(heading)) for heading in self.article.select("section[id] > h2")]

    @property
    def ids(self):
        """What a link may lead to."""
        return {node["id"] for node in self.article.find_all(id=True)}

    def target(self, address):
        """The file of the book that an address leads to and the place in it; (None, None) where it leads elsewhere."""
        full = urlsplit(urljoin(f"{BASE}{self.name}.html", address))
        if full.scheme != "file":
            return None, None
        return unquote(full.path).lstrip("/"), unquote(full.fragment)


def text(node):
    """The words of a node in one line."""
    return " ".join(node.get_text().split())


def config():
    """What _config.yml says of the book."""
    return yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))


def contents():
    """The name of each page in the order of the book, and the part that it stands in."""
    toc = yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8"))
    yield toc["root"], None
    for part in toc["parts"]:
        for entry in part["chapters"]:
            for page in (entry, *entry.get("sections", [])):
                yield page["file"], part["caption"]


def needs_book(command):
    """End a command where nothing is built."""
    if not (HTML / "index.html").exists():
        sys.exit(f"{command}: nothing is built yet; run `make book` first")


def pages(command, only=()):
    """All pages as they are on paper: answers open, folded code and buttons left out, links inside of the book alone.

    Args:
        command: whose message it is where nothing is built, or a page is not there.
        only: the names of some pages, in place of all.
    """
    needs_book(command)
    listed = dict(contents())
    if unknown := [name for name in only if name not in listed]:
        sys.exit(f"{command}: there is no page {unknown[0]!r}; there are {', '.join(listed)}")
    found = [read(name, part) for name, part in listed.items() if not only or name in only]
    ids = {f"{page.name}.html": page.ids for page in found}
    for page in found:
        for link in page.article.find_all("a", href=True):
            file, place = page.target(link["href"])
            if file is not None and place not in ids.get(file, {}) and not (file in ids and not place):
                link.unwrap()
    return found


def read(name, part):
    """One page, without what a reader of paper cannot use."""
    soup = BeautifulSoup((HTML / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
    article = soup.select_one("article.bd-article").extract()
    for node in article.select(LEFT_OUT):
        node.decompose()
    for node in article.select(HOLDERS):
        if not (node.decomposed or node.get_text(strip=True) or node.find(["img", "svg", "math"])):
            node.decompose()
    for node in article.select("details"):
        node["open"] = ""
    # What a browser would mend by itself: paragraphs in one another, and names that stand twice.
    for node in article.select("p:has(p)"):
        node.unwrap()
    seen = set()
    for node in article.find_all(id=True):
        if node["id"] in seen:
            del node["id"]
        else:
            seen.add(node["id"])
    for image in article.find_all("img", loading=True):
        del image["loading"]
    return Page(name, part, article, [link["href"] for link in soup.select("link[rel=stylesheet]")])


def parts(found):
    """The pages of each part, in order; those before the first part have none."""
    groups = []
    for page in found:
        if not groups or groups[-1][0] != page.part:
            groups.append((page.part, []))
        groups[-1][1].append(page)
    return groups
