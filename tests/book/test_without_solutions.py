"""Downloads of a book that is built with SOLUTIONS=no: exercises are there, their solutions are not."""

import re
from pathlib import Path

import nbformat
from tool import load

BOOK = Path(__file__).resolve().parents[2] / "book"


def without_solutions(cells):
    return list(load("without_solutions").without_solutions(cells))


def test_every_solution_goes_and_every_exercise_stays():
    n_exercises = 0
    for path in sorted(BOOK.glob("*/*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        texts = ["\n".join(cell["source"] for cell in each) for each in (cells, without_solutions(cells))]
        whole, rest = texts
        assert "{solution" not in rest, path.stem
        for mark in (r":::\{exercise\}", r"answer = None", r"^## ", r"^\*\*Next"):
            assert len(re.findall(mark, rest, re.M)) == len(re.findall(mark, whole, re.M)), (path.stem, mark)
        n_exercises += whole.count(":::{exercise}")
        assert len(rest) < len(whole) or ":::{exercise}" not in whole
    assert n_exercises > 30


def test_a_text_before_and_after_a_solution_in_one_cell_stays():
    words = [
        "before\n\n:::{solution-start} ex\n:label: sol\n:::\n",
        "within",
        "end\n\n:::{solution-end}\n:::\n\n:::{exercise} Next\n:::",
    ]
    kept = without_solutions([{"cell_type": "markdown", "source": text} for text in words])
    assert [cell["source"].strip() for cell in kept] == ["before", ":::{exercise} Next\n:::"]
