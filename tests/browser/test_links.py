"""The links of the built book: inside, all of them lead somewhere; outside, they are whole and lead where they say."""

import re
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
import yaml

from .built import HTML, ROOT, chapters, pages, repository, soup, sources

PAGES = pages()
ATTRIBUTES = {
    "a": "href",
    "area": "href",
    "link": "href",
    "img": "src",
    "script": "src",
    "source": "src",
    "iframe": "src",
}
PLACEHOLDER = re.compile(r"OWNER|example\.|localhost|127\.0\.0\.1|/your[-_]|todo|xxx|[<>{}\s]", re.IGNORECASE)
BASE = "file:///"


@pytest.fixture(autouse=True)
def _needs_the_book(built):
    """Every test here reads the built pages."""


def links(name):
    """Yield the addresses in a page, as they are written."""
    for tag, attribute in ATTRIBUTES.items():
        for node in soup(name).find_all(tag):
            if node.get(attribute):
                yield node[attribute].strip()


def split_links(name):
    """Return the page's links inside the book as (file, fragment), and those to elsewhere as they are."""
    inside, outside = set(), set()
    for link in links(name):
        full = urlsplit(urljoin(BASE + name, link))
        if full.scheme == "file":
            inside.add((unquote(full.path).lstrip("/"), unquote(full.fragment)))
        elif full.scheme != "data":
            outside.add(link)
    return inside, outside


def anchors(name):
    """What a fragment may name in a page."""
    named = soup(name).find_all(lambda node: node.get("id") or (node.name == "a" and node.get("name")))
    return {value for node in named for value in (node.get("id"), node.get("name")) if value}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere_and_those_to_elsewhere_are_whole(name):
    inside, outside = split_links(name)
    dead = [target for target in inside if not (HTML / target[0]).is_file()]
    assert dead == []
    assert ("errata.html", "") in inside  # "Something wrong?"
    pages_inside = [(file, fragment) for file, fragment in inside if fragment and file.endswith(".html")]
    assert [(file, fragment) for file, fragment in pages_inside if fragment not in anchors(file)] == []
    assert [link for link in outside if not is_whole(link)] == []
    if (chapter := name.removesuffix(".html")) in chapters():
        assert (f"_sources/{chapter}.ipynb", "") in inside


def is_whole(link):
    parts = urlsplit(link)
    address = re.fullmatch(r"[\w.-]+\.[a-z]{2,}", parts.netloc)
    return parts.scheme == "https" and bool(address) and not PLACEHOLDER.search(without_own(link))


def without_own(link):
    """Leave out the repository's own owner, which is a placeholder until somebody owns it."""
    owner, _ = repository().split("/")
    return link.replace(repository(), "").replace(f"{owner.lower()}.github.io", "").replace(f"{owner}.github.io", "")


def test_the_address_of_the_repository_is_one():
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    assert config["repository"]["url"] == f"https://github.com/{repository()}"


@pytest.mark.slow
@pytest.mark.skipif(
    repository().startswith("OWNER/"), reason="the repository's address is not set: make set-repository"
)
@pytest.mark.parametrize("name", sources())
def test_page_leads_to_its_source_and_a_chapter_to_where_it_runs(name):
    _, outside = split_links(f"{name}.html")
    (edit,) = {link for link in outside if link.startswith(f"https://github.com/{repository()}/edit/main/")}
    source = Path(edit.removeprefix(f"https://github.com/{repository()}/edit/main/"))
    assert source.with_suffix("") == Path("book") / name
    assert (ROOT / source).is_file()
    assert f"https://github.com/{repository()}" in outside
    assert any(link.startswith(f"https://github.com/{repository()}/issues/new") for link in outside)
    if name in chapters():
        assert f"https://colab.research.google.com/github/{repository()}/blob/main/book/{name}.ipynb" in outside
        binder = [unquote(link) for link in outside if link.startswith("https://mybinder.org/v2/gh/")]
        assert any(link.endswith(f"book/{name}.ipynb") for link in binder)
