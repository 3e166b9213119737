"""Print how long each numbered chapter is, beside what a chapter may have; fails where one has more.

Usage: python tools/measure.py

Words are those of the prose: of paragraphs, lists and quick questions, without code, formulas on lines of their own and
tables. Those of exercises, of what to remember and of the sources are counted apart. What stands before the first
picture are words and lines of code that a page shows. Results are the decimals and percentages of one paragraph, of
that with most. Screens are not counted here, for they hang on a browser:
`tools/lighthouse.py` and the tests of pages look at these.
"""

import re
import sys

import nbformat
from chapters import BOOK, chapters

BOUNDS = {
    "words": 2400,
    "with exercises": 3000,
    "lines of code": 350,
    # About one screen.
    "words before": 190,
    "code before": 0,
    "longest sentence": 40,
    "results": 4,
}
# What is no prose: fenced code, formulas, rows of tables, directives' options and fences, labels.
NO_PROSE = re.compile(r"(?ms)^```.*?^```$|^\$\$.*?^\$\$|^\|.*?$|^:::+.*?$|^:\w+:.*?$|^\([\w-]+\)=$")
# A link, a role and a formula stand in a sentence for one word.
ONE_WORD = re.compile(r"\{[^}]*\}`[^`]*`|\$[^$]*\$|`[^`]*`|\]\([^)]*\)")
NUMBERED = ("why", "encodings", "probing", "nopos", "longer")


def numbered_chapters():
    """The notebooks of the numbered parts, in the order of the contents."""
    return [path for path in chapters() if path.parent.name in NUMBERED]


def words(text):
    """How many words of prose there are."""
    return len(NO_PROSE.sub("", text).split())


def paragraphs(text):
    """The paragraphs of the prose outside of theorems and proofs, each on one line."""
    text = NO_PROSE.sub("\n\n", re.sub(r"(?ms)^:::\{prf:.*?^:::$|<[^>]*>", "\n\n", text))
    parts = re.split(r"\n\s*\n|^ *- ", ONE_WORD.sub("X", text), flags=re.MULTILINE)
    return [" ".join(part.split()) for part in parts]


def longest_sentence(text):
    """How many words the longest sentence has."""
    return max(len(each.split()) for part in paragraphs(text) for each in re.split(r"(?<=[.?!])[*)\"]*\s+", part))


def most_results(text):
    """How many decimals and percentages the paragraph with most of them has."""
    return max(len(re.findall(r"\d\.\d+|\d ?%", part)) for part in paragraphs(text))


def measured(path):
    """What a chapter has of each of `BOUNDS`, and how many pictures."""
    cells = nbformat.read(path, as_version=4).cells
    prose = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    before = re.split(r"(?m)^## Exercises$", prose)[0]
    pictures = [place for place, cell in enumerate(cells) if "caption" in cell.metadata]
    until = cells[: pictures[0]] if pictures else cells
    return {
        "words": words(before),
        "with exercises": words(prose),
        "lines of code": lines_of_code(cells, folded="hide-cell"),
        "words before": sum(words(cell.source) for cell in until if cell.cell_type == "markdown"),
        "code before": lines_of_code(until, folded="hide-"),
        "longest sentence": longest_sentence(before),
        "results": most_results(before),
        "pictures": len(pictures),
    }


def lines_of_code(cells, folded):
    """Lines that are not empty, of the cells without a tag that begins with `folded`."""
    code = [cell for cell in cells if cell.cell_type == "code"]
    shown = [cell for cell in code if not any(tag.startswith(folded) for tag in cell.metadata.get("tags", []))]
    return sum(bool(line.strip()) for cell in shown for line in cell.source.splitlines())


def table():
    """The measures of all numbered chapters, as lines; what is over its bound has a star."""
    yield f"{'chapter':26}" + "".join(f"{name:>18}" for name in (*BOUNDS, "pictures"))
    for path in numbered_chapters():
        found = measured(path).items()
        cells = (f"{value}{'*' if value > BOUNDS.get(name, value) else ' '}".rjust(18) for name, value in found)
        yield f"{path.stem:26}" + "".join(cells)
    yield f"{'at most':26}" + "".join(f"{most:>17} " for most in BOUNDS.values())


if __name__ == "__main__":
    lines = list(table())
    print(f"chapters of {BOOK.name}/", *lines, sep="\n")
    if over := [line.split()[0] for line in lines if "*" in line]:
        sys.exit(f"measure: over a bound: {', '.join(over)}")
