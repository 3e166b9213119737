"""The first page: a figure of a chapter, and a card for each chapter.

Titles, questions and reading times are those of the chapters themselves; the
picture is the first, or the named one, that a chapter draws.
"""

import html
import json
import re
from pathlib import Path

import plots
import yaml
from docutils import nodes
from docutils.parsers.rst import Directive

PICTURES = "_static/cards"
DIFFICULTY = {"1": "easy", "2": "medium", "3": "hard"}
QUESTION = re.compile(r"\*\*The question:\*\* (.+)")
MINUTES = re.compile(r"about (\d+) minutes to read|(\d+) minutes to read")
# Of a drawing: its axes, as boxes that cut off what they hold, and its size.
BOX = re.compile(
    r'<clipPath id="\w+"><rect x="([\d.]+)" y="([\d.]+)" '
    r'width="([\d.]+)" height="([\d.]+)"'
)
SIZE = re.compile(r'width="[\d.]+pt" height="[\d.]+pt" viewBox="[^"]*"')
# As small as a card's picture is, no word can be read, and marks without their
# words are litter: what no axes cut off is not shown. A mark that is used again
# stands in no group.
DATA_ALONE = (
    "<style>text, g > :is(path, use, image):not([clip-path], [clip-path] *)"
    " { display: none; }</style>"
)
FIGURE = re.compile(
    r'<div class="posembed-root" data-posembed="([^"]+)".*?</script>\s*'
    r"<style>.*?</style>",
    re.DOTALL,
)


class Cards(Directive):
    """A card for each chapter: `path difficulty [number of the picture]`."""

    has_content = True

    def run(self):
        """Make one list for each part of the book."""
        app = self.state.document.settings.env.app
        source, out = Path(app.srcdir), Path(app.outdir, PICTURES)
        toc = yaml.safe_load((source / "_toc.yml").read_text(encoding="utf-8"))
        wanted = dict(line.split(maxsplit=1) for line in self.content if line)
        found, number = [], 0
        for part in toc["parts"]:
            cards = ""
            for chapter in part["chapters"]:
                if part.get("numbered"):
                    number += 1
                if chapter["file"] in wanted:
                    words = wanted[chapter["file"]].split()
                    cards += card(source, out, chapter["file"], number, *words)
            if cards:
                found.append(
                    nodes.raw(
                        "",
                        f'<h3 class="cards-part">{part["caption"]}</h3>\n'
                        f'<ol class="cards">{cards}</ol>\n',
                        format="html",
                    )
                )
        return found


def card(source, out, name, number, difficulty, picture="1"):
    """One chapter."""
    notebook = json.loads(
        (source / f"{name}.ipynb").read_text(encoding="utf-8")
    )
    first = "".join(notebook["cells"][0]["source"])
    title = re.search(r"^# (.+)$", first, re.MULTILINE)[1]
    question = QUESTION.search(first)[1]
    minutes = next(filter(None, MINUTES.search(first).groups()))
    level = DIFFICULTY[difficulty]
    return (
        f'<li class="card-of" data-page="{name}">'
        f'<a href="{name}.html">'
        f"{image(out, notebook, name, int(picture))}"
        f'<span class="card-title">{number}. {plain(title)}</span></a>'
        f"<p>{plain(question[0].upper() + question[1:])}</p>"
        f'<p class="card-facts">{minutes} min · {level}</p></li>\n'
    )


def plain(text):
    """Markdown's code marks as HTML."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def image(out, notebook, name, number):
    """The picture of a chapter, its own description left to the page."""
    pictures = [
        output["data"]
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    drawing = data_alone("".join(pictures[number - 1]["image/svg+xml"]))
    target = name.replace("/", "-")
    out.mkdir(parents=True, exist_ok=True)
    for mode, text in plots.in_each_mode(drawing).items():
        (out / f"{target}-{mode}.svg").write_text(text, encoding="utf-8")
    width, height = plots.size(drawing)
    return "".join(
        f'<img class="card-picture on-{mode}" src="{PICTURES}/{target}-{mode}'
        f'.svg" alt="" width="{width}" height="{height}" loading="lazy" />'
        for mode in ("light", "dark")
    )


def data_alone(drawing):
    """A drawing cut to what it has inside of its axes."""
    boxes = [tuple(map(float, each)) for each in BOX.findall(drawing)]
    # A scale of colours has axes too, narrow ones.
    widest = max(box[2] for box in boxes)
    boxes = [box for box in boxes if box[2] > widest / 4]
    left, top = (min(box[k] for box in boxes) for k in (0, 1))
    width = max(box[0] + box[2] for box in boxes) - left
    height = max(box[1] + box[3] for box in boxes) - top
    place = f'viewBox="{left} {top} {width:.2f} {height:.2f}"'
    size = f'width="{width:.2f}pt" height="{height:.2f}pt" {place}'
    return SIZE.sub(size, drawing, count=1).replace(">", f">{DATA_ALONE}", 1)


class FigureOf(Directive):
    """The place of the first interactive figure of a chapter."""

    required_arguments = 1

    def run(self):
        """Mark the place; the figure is there once its page is written."""
        mark = f"<!-- figure of {self.arguments[0]} -->"
        return [nodes.raw("", mark, format="html")]


def place_figures(pages, out):
    """Copy figures from their chapters, each with a name of its own."""
    index = out / "intro.html"
    for mark, name in re.findall(r"(<!-- figure of (\S+) -->)", pages[index]):
        figure = FIGURE.search(pages[out / f"{name}.html"])
        copy = figure[0].replace(figure[1], f"{figure[1]}-first")
        pages[index] = pages[index].replace(mark, copy)


def setup(app):
    """Add the directives; Sphinx calls this."""
    app.add_directive("chapter-cards", Cards)
    app.add_directive("figure-of", FigureOf)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
