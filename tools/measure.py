"""Print how long each numbered chapter is, beside what a chapter may have.

Usage: python tools/measure.py

Words are those of the prose: of paragraphs, lists and quick questions, without code, formulas on lines of their own and
tables. Those of exercises, of what to remember and of the sources are counted apart. Screens are not counted here, for
they hang on a browser: `tools/lighthouse.py` and the tests of pages look at these.
"""

import re

import nbformat
from chapters import BOOK, chapters

MOST_WORDS, MOST_WITH_EXERCISES, MOST_CODE = 2400, 3000, 350
# What is no prose: fenced code, formulas, rows of tables, directives' options and fences, labels.
NO_PROSE = re.compile(r"(?ms)^```.*?^```$|^\$\$.*?^\$\$|^\|.*?$|^:::+.*?$|^:\w+:.*?$|^\([\w-]+\)=$")
NUMBERED = ("why", "encodings", "probing", "nopos")


def numbered_chapters():
    """The notebooks of the numbered parts, in the order of the contents."""
    return [path for path in chapters() if path.parent.name in NUMBERED]


def words(text):
    """How many words of prose there are."""
    return len(NO_PROSE.sub("", text).split())


def measured(path):
    """Words before the exercises and in all, lines of code that a page shows, and pictures."""
    notebook = nbformat.read(path, as_version=4)
    prose = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    before = re.split(r"(?m)^## Exercises$", prose)[0]
    shown = [
        cell.source
        for cell in notebook.cells
        if cell.cell_type == "code" and "hide-cell" not in cell.metadata.get("tags", [])
    ]
    return {
        "words": words(before),
        "with exercises": words(prose),
        "lines of code": sum(bool(line.strip()) for source in shown for line in source.splitlines()),
        "pictures": sum("caption" in cell.metadata for cell in notebook.cells),
    }


def table():
    """The measures of all numbered chapters, as lines; what is over its bound has a star."""
    bounds = {"words": MOST_WORDS, "with exercises": MOST_WITH_EXERCISES, "lines of code": MOST_CODE}
    yield f"{'chapter':26}" + "".join(f"{name:>16}" for name in (*bounds, "pictures"))
    for path in numbered_chapters():
        found = measured(path)
        cells = (f"{value}{'*' if value > bounds.get(name, value) else ' '}".rjust(16) for name, value in found.items())
        yield f"{path.stem:26}" + "".join(cells)
    yield f"{'at most':26}" + "".join(f"{most:>15} " for most in bounds.values())


if __name__ == "__main__":
    print(f"chapters of {BOOK.name}/", *table(), sep="\n")
