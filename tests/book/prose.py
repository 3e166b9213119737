"""What the tests of sentences share: a chapter's cells, its prose, what it printed, and whether it says a sentence."""

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


def printed(chapter):
    """All that the chapter's stored outputs say as text."""
    outputs = [output for cell in cells(chapter) for output in cell.get("outputs", [])]
    return "\n".join("".join(output.get("text") or output["data"].get("text/plain", "")) for output in outputs)


def pictures(chapter):
    """The descriptions of all pictures of a chapter."""
    return " ".join(cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "") for cell in cells(chapter))


def said(chapter, *sentences):
    """Assert that a chapter says these sentences."""
    text = prose(chapter)
    missing = [sentence for sentence in sentences if sentence not in text]
    assert missing == [], f"the chapter no longer says: {missing}"


def described(chapter, *sentences):
    """The same of the descriptions of its pictures, which are read by those who do not see them."""
    text = pictures(chapter)
    assert [sentence for sentence in sentences if sentence not in text] == []


def losses(runs):
    return [run.metrics["loss"] for run in runs]
