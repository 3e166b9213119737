"""The built book as files: its pages, its chapters, and the repository that they belong to."""

import functools
import re
import tomllib
from pathlib import Path

import yaml
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
HTML = ROOT / "_build" / "html"
NOT_BUILT = "the book is not built; run make book first"


@functools.cache
def soup(name):
    """Parse a page. Shared, so nobody may change it."""
    return BeautifulSoup((HTML / name).read_text(encoding="utf-8"), "html.parser")


def is_redirect(name):
    """Whether a page only leads to another one."""
    start = (HTML / name).read_text(encoding="utf-8")[:2000]
    return re.search("http-equiv=.?refresh", start, re.IGNORECASE) is not None


def pages():
    """Name every page of the book, relative to its folder."""
    found = (path.relative_to(HTML) for path in sorted(HTML.rglob("*.html")))
    return [path.as_posix() for path in found if path.parts[0] != "_static" and not is_redirect(path.as_posix())]


def sources():
    """Name every file of the table of contents, without its ending."""
    toc = yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8"))
    entries = [chapter for part in toc["parts"] for chapter in part["chapters"]]
    return [toc["root"], *(page["file"] for entry in entries for page in [entry, *entry.get("sections", [])])]


def chapters():
    """Name every notebook of the table of contents, without its ending."""
    return [name for name in sources() if (BOOK / f"{name}.ipynb").exists()]


def figures():
    """Name every chapter that has an interactive figure."""
    return [name for name in chapters() if "posembed.widgets" in (BOOK / f"{name}.ipynb").read_text(encoding="utf-8")]


def repository():
    """Read the repository's owner and name, as they stand in its address in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["urls"]["Repository"].removeprefix("https://github.com/")
