"""Make slides of a chapter: its question, what opens each section, its pictures and outputs, and what to remember.

Usage: python tools/slides.py CHAPTER        for instance why/permutation-equivariance
"""

import argparse
import re
import sys

import nbformat
from chapters import BOOK, BUILD, ROOT, chapters
from nbconvert import SlidesExporter
from traitlets.config import Config
from without_solutions import without_solutions

OUT = BUILD / "slides"
ANSWER = re.compile(r"^answer = None", re.MULTILINE)
BOX = re.compile(r"(?s)^:::+\{(?P<kind>[\w:-]+)\} *(?P<title>[^\n]*)\n(?P<body>.*?)^:::+$", re.MULTILINE)
SHOWN = ("prf:definition", "prf:theorem", "prf:proposition", "prf:corollary")
MARK = "\0"
# Of what pages fold, what it shows.
FOLDED = Config(TagRemovePreprocessor={"enabled": True, "remove_input_tags": ["hide-input"]})
END = re.compile(r"^## (?:Exercises|Sources)", re.MULTILINE)
ROLES = (
    (re.compile(r"\{term\}`([^`<]*)(?: <[^`]*>)?`"), r"\1"),
    (re.compile(r" ?\{cite:p\}`[^`]*`"), ""),
    (re.compile(r"\{cite:t\}`([^`]*)`"), r"*\1*"),
    (re.compile(r"\{[\w:]+\}`([^`<]*)(?: <[^`]*>)?`"), r"\1"),
    (re.compile(r"^\([\w-]+\)=\n", re.MULTILINE), ""),
    (re.compile(r"(?<=\$\$) \([\w-]+\)$", re.MULTILINE), ""),
    (re.compile(r"\[([^]]*)\]\((?!https?:)[^)]*\)"), r"\1"),
)


def slides(notebook):
    """A chapter as a notebook of slides."""
    cells = []
    for cell in map(nbformat.from_dict, without_solutions(notebook.cells)):
        text = cell.source
        if cell.cell_type == "markdown":
            cells += _of_text(text)
        elif not ("hide-cell" in cell.metadata.get("tags", []) or ANSWER.search(text)):
            cells.append(_slide(cell, "-" if cells and cells[-1].cell_type == "markdown" else "subslide"))
    return nbformat.v4.new_notebook(cells=cells, metadata=notebook.metadata)


def _of_text(text):
    """A slide for each section: its heading and its first paragraph; and boxes that state something."""
    text = END.split(text)[0]
    text = BOX.sub(lambda box: f"\n\n**{box['title']}.** {_body(box)}\n\n" if box["kind"] in SHOWN else "\n\n", text)
    for pattern, plain in ROLES:
        text = pattern.sub(plain, text)
    for section in re.split(r"(?m)^(?=#{1,2} )", text):
        if section.startswith("#"):
            # What to remember is a list, and the whole of it.
            whole = section.startswith("## What to remember")
            parts = [part for part in section.split("\n\n") if part.strip()]
            shown = section.partition("\n**Next")[0] if whole else "\n\n".join(parts[:3])
            yield _slide(nbformat.v4.new_markdown_cell(shown), "slide")
            section = "" if whole else "\n\n".join(parts[3:])
        yield from (_slide(nbformat.v4.new_markdown_cell(part), "subslide") for part in _stated(section))


def _body(box):
    # Its paragraphs stay together: a mark stands for the empty lines between them.
    return re.sub(r"(?m)^:[\w-]+:.*\n", "", box["body"]).strip().replace("\n\n", MARK)


def _stated(text):
    """Paragraphs that begin in bold: definitions, and what the text itself puts in front."""
    return [part for part in text.split("\n\n") if part.startswith("**")]


def _slide(cell, kind):
    cell.source = cell.source.replace(MARK, "\n\n")
    cell.metadata["slideshow"] = {"slide_type": kind}
    return cell


def write(chapter, target):
    """Write the slides of a chapter as a page."""
    page, _ = SlidesExporter(config=FOLDED).from_notebook_node(slides(nbformat.read(chapter, as_version=4)))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page, encoding="utf-8")


def main():
    """Read the command line and write the slides."""
    parser = argparse.ArgumentParser(description="Make slides of a chapter.")
    parser.add_argument("chapter", help="such as why/permutation-equivariance")
    chapter = parser.parse_args().chapter.removesuffix(".ipynb").removeprefix("book/")
    path = BOOK / f"{chapter}.ipynb"
    if path not in chapters():
        known = ", ".join(each.relative_to(BOOK).with_suffix("").as_posix() for each in chapters())
        sys.exit(f"slides: there is no chapter {chapter!r}; there are {known}")
    target = OUT / f"{path.stem}.html"
    write(path, target)
    print(f"slides: {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
