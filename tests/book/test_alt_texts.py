"""Figures of the book are described by who drew them: the default knows what is drawn, and not what to see in it."""

import ast
import inspect
import re

import nbformat
from tool import ROOT

from posembed import figures

# The description comes first in these, and by its name in all others.
FIRST = ("new_figure", "DescribedFigure")


def drawn_in(path):
    """The calls of a chapter that draw a figure, as nodes."""
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    for source in cells:
        code = ast.parse(re.sub(r"(?m)^(\s*)[%!].*$", r"\1pass", source))
        for call in (each for each in ast.walk(code) if isinstance(each, ast.Call)):
            if (name := getattr(call.func, "id", "")) in described():
                yield name, call


def described():
    """The names of what takes a description."""
    makers = {name: getattr(figures, name) for name in figures.__all__}
    return {name for name, one in makers.items() if callable(one) and "alt" in inspect.signature(one).parameters}


def test_every_figure_of_the_book_has_an_alt_text_that_somebody_wrote():
    calls = [(path.name, *each) for path in sorted((ROOT / "book").rglob("*.ipynb")) for each in drawn_in(path)]
    assert len(calls) > 30
    for path, name, call in calls:
        given = call.args if name in FIRST else [each for each in call.keywords if each.arg in ("alt", None)]
        assert given, f"{path}: {ast.unparse(call)} has no alt text"
