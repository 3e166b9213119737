"""Slides of a chapter: what is stated and shown is there; checks, exercises, solutions and the book's marks are not."""

import nbformat
import pytest
from refusals import refused
from tool import TOOLS, load


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)  # as where it is run as a script
    return load("slides")


def test_every_chapter_makes_slides(tool):
    for path in tool.chapters():
        made = tool.slides(nbformat.read(path, as_version=4))
        text = "\n".join(cell.source for cell in made.cells if cell.cell_type == "markdown")
        code = [cell.source for cell in made.cells if cell.cell_type == "code"]
        assert text.startswith("# ") and {cell.metadata.slideshow.slide_type for cell in made.cells} > {"slide"}
        assert not any(mark in text for mark in (":::", "{term}", "{cite", "{prf", "<details>", "## Exercises", "\0"))
        assert "## What to remember" in text or "## What to remember" not in path.read_text(encoding="utf-8")
        assert code and not any("# Holds" in cell or "answer = None" in cell for cell in code)


def test_what_a_chapter_states_is_there_and_folded_code_is_not(tool, monkeypatch, tmp_path):
    path = tool.BOOK / "why" / "permutation-equivariance.ipynb"
    text = "\n".join(cell.source for cell in tool.slides(nbformat.read(path, as_version=4)).cells)
    for stated in (
        "**Self-attention is permutation equivariant.**",
        "**In one causal layer an output sees at most a multiset.**",
    ):
        assert stated in text
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "OUT", tmp_path)
    monkeypatch.setattr("sys.argv", ["slides.py", "encodings/museum-of-bugs"])
    tool.main()
    assert "def picture(" not in (tmp_path / "museum-of-bugs.html").read_text(encoding="utf-8")


def test_a_chapter_that_is_not_there_is_named(tool, monkeypatch):
    monkeypatch.setattr("sys.argv", ["slides.py", "why/wherefore"])
    message = "slides: there is no chapter 'why/wherefore'; there are why/permutation"
    assert refused(SystemExit, tool.main).startswith(message)
