"""The first page: a figure of a chapter, and a card for each chapter.

A chapter ends with the card of the next one.

Titles, findings and reading times are those of the chapters themselves; the
picture is the first, or the named one, that a chapter draws.
"""

import html
import itertools
import json
import re
from pathlib import Path
from typing import ClassVar

import plots
import yaml
from docutils import nodes
from docutils.parsers.rst import Directive, directives

PICTURES = "_static/cards"
# By the name of a chapter: what the page before it shows of it.
CARDS = {}
DIFFICULTY = {"1": "easy", "2": "medium", "3": "hard"}
# A chapter's title, and the minutes that it takes.
FACTS = (
    re.compile(r"^# (.+)$", re.MULTILINE),
    re.compile(r"(\d+) minutes to read"),
)
# Its answer, which the checks of the chapter hold.
ANSWER = re.compile(r":::\{admonition\} Answer\n(.*?)^:::$", re.M | re.S)
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


class Cards(Directive):
    """A card for each chapter: `path difficulty picture: finding`.

    A picture is told by its number; a finding stands in the chapter's answer.
    """

    has_content = True

    def run(self):
        """Make one list for each part of the book that is numbered."""
        app = self.state.document.settings.env.app
        toc = Path(app.srcdir, "_toc.yml").read_text(encoding="utf-8")
        lines = (line.partition(": ") for line in self.content)
        wanted = {
            name: (*rest, finding)
            for facts, _, finding in lines
            for name, *rest in [facts.split()]
        }
        numbers, made = itertools.count(1), ""
        for part in yaml.safe_load(toc)["parts"]:
            if part.get("numbered"):
                names = (each["file"] for each in part["chapters"])
                cards = (
                    card(app, name, next(numbers), *wanted[name])
                    for name in names
                )
                made += f'<h3 class="cards-part">{part["caption"]}</h3>\n'
                made += f'<ol class="cards">{"".join(cards)}</ol>\n'
        return [nodes.raw("", made, format="html")]


class SchemeCards(Directive):
    """Cards of schemes, `page: sentence`, under the lines without a colon."""

    has_content = True

    def run(self):
        """Take each picture from the scheme's own page."""
        app = self.state.document.settings.env.app
        made, closing = "", ""
        for line in self.content:
            name, _, said = line.partition(": ")
            if not said:
                made += f'{closing}<h2 class="cards-part">{plain(name)}</h2>\n'
                made, closing = f'{made}<ol class="cards">', "</ol>\n"
                continue
            notebook = notebook_of(app, f"schemes/{name}")
            title = FACTS[0].search("".join(notebook["cells"][0]["source"]))[1]
            picture = image(app, notebook, f"schemes/{name}", 1)
            made += (
                f'<li class="card-of"><a href="{name}.html">'
                f"{picture.replace(PICTURES, f'../{PICTURES}')}"
                f'<span class="card-title">{plain(title)}</span></a>'
                f"<p>{plain(said)}</p></li>\n"
            )
        return [nodes.raw("", made + closing, format="html")]


def card(app, name, number, difficulty, picture, finding):
    """One chapter."""
    notebook = notebook_of(app, name)
    first = "".join(notebook["cells"][0]["source"])
    title, minutes = (each.search(first)[1] for each in FACTS)
    finding = plain(found(first, finding))
    picture = image(app, notebook, name, int(picture))
    CARDS[name] = {"finding": finding, "image": picture}
    return (
        f'<li class="card-of" data-page="{name}">'
        f'<a href="{name}.html">'
        f"{picture}"
        f'<span class="card-title">{number}. {plain(title)}</span></a>'
        f"<p>{finding}</p>"
        f'<p class="card-facts">{minutes} min · {DIFFICULTY[difficulty]}</p>'
        "</li>\n"
    )


def found(chapter, finding):
    """A finding as a sentence; what its chapter does not say is an error."""
    answer = ANSWER.search(chapter)[1].replace("*", "")
    if finding not in answer:
        raise ValueError(f"the chapter's answer does not say: {finding}")
    return (
        f"{finding[0].upper()}{finding[1:]}{'' if finding[-1] == '.' else '.'}"
    )


def plain(text):
    """Markdown's code marks as HTML."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def image(app, notebook, name, number):
    """The picture of a chapter, its own description left to the page."""
    drawing = data_alone([*outputs(notebook, "image/svg+xml")][number - 1])
    width, height = plots.size(drawing)
    folder, made = Path(app.outdir, PICTURES), ""
    folder.mkdir(parents=True, exist_ok=True)
    for mode, text in plots.in_each_mode(drawing).items():
        file = f"{name.replace('/', '-')}-{mode}.svg"
        (folder / file).write_text(text, encoding="utf-8")
        made += (
            f'<img class="card-picture on-{mode}" src="{PICTURES}/{file}" '
            f'alt="" width="{width}" height="{height}" loading="lazy" />'
        )
    return made


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
    """The first interactive figure of a chapter; `moves` lets it move once."""

    required_arguments = 1
    option_spec: ClassVar = {"moves": directives.flag}

    def run(self):
        """Take it as it is stored with the chapter."""
        app = self.state.document.settings.env.app
        found = outputs(notebook_of(app, self.arguments[0]), "text/html")
        figure = next(each for each in found if "posembed-root" in each)
        if "moves" in self.options:
            figure = f"<div data-moves>{figure}</div>"
        return [nodes.raw("", figure, format="html")]


def notebook_of(app, name):
    """A chapter as it is stored."""
    path = Path(app.srcdir, f"{name}.ipynb")
    return json.loads(path.read_text(encoding="utf-8"))


def outputs(notebook, kind):
    """What a chapter shows of a kind."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if kind in output.get("data", {}):
                yield "".join(output["data"][kind])


def show_next(app, pagename, templatename, context, doctree):
    """Hand a page the card of the chapter that comes next."""
    _, _, following = app.builder.relations.get(pagename, (None, None, None))
    if following in CARDS:
        place = context["pathto"](PICTURES, 1)
        image = CARDS[following]["image"].replace(PICTURES, place)
        context["next_card"] = CARDS[following] | {"image": image}


def setup(app):
    """Add the directives; Sphinx calls this."""
    app.connect("html-page-context", show_next)
    app.add_directive("chapter-cards", Cards)
    app.add_directive("scheme-cards", SchemeCards)
    app.add_directive("figure-of", FigureOf)
