"""What the tests of chapters' text share: a chapter's cells, its prose, and whether it says a sentence."""

import functools
import json
from pathlib import Path

BOOK = Path(__file__).resolve().parents[2] / "book"


@functools.cache
def cells(chapter):
    return json.loads((BOOK / f"{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]


def source(cell):
    return "".join(cell["source"])


def prose(chapter):
    return "\n\n".join(source(cell) for cell in cells(chapter) if cell["cell_type"] == "markdown")


def said(chapter, *sentences):
    """Assert that a chapter says these sentences."""
    text = prose(chapter)
    missing = [sentence for sentence in sentences if sentence not in text]
    assert missing == [], f"the chapter no longer says: {missing}"
