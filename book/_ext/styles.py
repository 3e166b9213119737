"""One style sheet for each page, with what the book uses and no more.

The theme loads a dozen of them, most of whose rules no page needs, and its
icons as fonts of thousands. A browser shows nothing before it has them all.
"""

import os
import re
from base64 import b64encode
from hashlib import sha256
from io import BytesIO
from itertools import groupby
from pathlib import Path

import tinycss2
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

LINK = re.compile(r'<link [^>]*rel="stylesheet"[^>]*>')
ADDRESS = re.compile(r'href="([^"?]*)')
# What a rule may name: a class or an id of a page, or a word of a script.
NAME = re.compile(r"[\w-]+")
CLASSES_AND_IDS = re.compile(r'\b(?:class|id)="([^"]*)"')
NAMED = re.compile(r"[.#]((?:[\w-]|\\.)+)")
# What stands in these is not asked for, or one of several is enough.
EITHER = re.compile(r":(?:not|is|where|has)\((?:[^()]|\([^()]*\))*\)")
URL = re.compile(r"""url\(\s*(["']?)(?!data:|#|https?:)([^"')]+)\1\s*\)""")
# A character of the icons' font.
ICON = re.compile("[\ue000-\uf8ff]")
ICON_FONT = re.compile(r"Font ?Awesome", re.IGNORECASE)
SOLID, BRANDS = "fa-solid-900.ttf", "fa-brands-400.ttf"
FACE = (
    '@font-face{{font-family:"{family}";font-weight:{weight};font-display:block;'
    'src:url("data:font/woff2;base64,{data}") format("woff2")}}'
)


def unite(app, exception):
    """Give each page one style sheet in place of its own."""
    if exception or app.builder.format != "html":
        return
    out = Path(app.outdir)
    pages = {
        page: page.read_text(encoding="utf-8")
        for page in out.rglob("*.html")
        if page.relative_to(out).parts[0] != "_static"
    }
    known, sheets = names(pages.values(), out), {}
    for page, text in pages.items():
        paths = [
            (page.parent / ADDRESS.search(link)[1]).resolve()
            for link in LINK.findall(text)
        ]
        if not paths:
            continue
        if tuple(paths) not in sheets:
            sheets[tuple(paths)] = sheet(paths, known, out)
        place = page.parent.relative_to(out)
        up = "../" * len(place.parts)
        link = f'<link rel="stylesheet" href="{up}{sheets[tuple(paths)]}" />'
        first, *others = LINK.findall(text)
        text = text.replace(first, link)
        for other in others:
            text = text.replace(other, "")
        page.write_text(text, encoding="utf-8")


def names(pages, out):
    """What a rule can be about: what pages have, and what scripts may add."""
    found = set()
    for text in pages:
        for value in CLASSES_AND_IDS.findall(text):
            found.update(value.split())
        for script in re.findall(r"<script.*?</script>", text, re.DOTALL):
            found.update(NAME.findall(script))
    for path in out.rglob("*.js"):
        if "fontawesome" not in path.parts:
            found.update(NAME.findall(path.read_text(encoding="utf-8")))
    return found


def sheet(paths, known, out):
    """Write these style sheets as one, and return its name."""
    rules = [rule for path in paths for rule in rules_of(path, out)]
    kept = "".join(shortened(rule, known) for rule in rules)
    styles = icon_fonts(kept, out) + kept
    name = f"_static/styles-{sha256(styles.encode()).hexdigest()[:8]}.css"
    (out / name).write_text(styles, encoding="utf-8")
    return name


def rules_of(path, out):
    """The rules of a style sheet; in the place of an import those it names.

    Behind other rules a browser would overlook the import.
    """
    text = path.read_text(encoding="utf-8")
    text = URL.sub(lambda match: moved(match, path, out), text)
    for rule in tinycss2.parse_stylesheet(
        text, skip_comments=True, skip_whitespace=True
    ):
        if rule.type == "at-rule" and rule.lower_at_keyword == "import":
            (named,) = (each for each in rule.prelude if each.type == "string")
            yield from rules_of(path.parent / named.value, out)
        else:
            yield rule


def moved(match, path, out):
    """An address as it is seen from the new style sheet."""
    target = (path.parent / match[2]).resolve()
    return f'url("{os.path.relpath(target, out / "_static")}")'


def shortened(rule, known):
    """A rule without what no page has; nothing where nothing is left."""
    if rule.type == "qualified-rule":
        selectors = [
            each
            for each in split(rule.prelude)
            if {*NAMED.findall(EITHER.sub("", each))} <= known
        ]
        if not selectors:
            return ""
        return f"{','.join(selectors)}{{{squeezed(rule.content)}}}"
    if rule.type != "at-rule":
        return ""
    head = f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude).rstrip()}"
    if rule.content is None:
        return f"{head};"
    if rule.lower_at_keyword not in ("media", "supports", "container", "layer"):
        icons = ICON_FONT.search(tinycss2.serialize(rule.content))
        is_icons = rule.lower_at_keyword == "font-face" and icons
        return "" if is_icons else f"{head}{{{squeezed(rule.content)}}}"
    inner = tinycss2.parse_rule_list(
        rule.content, skip_comments=True, skip_whitespace=True
    )
    body = "".join(shortened(each, known) for each in inner)
    return f"{head}{{{body}}}" if body else ""


def split(prelude):
    """The selectors of a list; what stands in parentheses is one token."""
    groups = groupby(prelude, key=lambda token: token == ",")
    return [squeezed(list(some)) for is_comma, some in groups if not is_comma]


def squeezed(content):
    """The inside of a rule, every space and comment as short as can be."""
    kept = [each for each in content if each.type != "comment"]
    for each in kept:
        if each.type == "whitespace":
            each.value = " "
    return tinycss2.serialize(kept).strip()


def icon_fonts(styles, out):
    """The fonts of icons with those that the style sheet names."""
    used = {ord(each) for each in ICON.findall(styles)}
    folder = next(out.glob("_static/vendor/fontawesome/*/webfonts"))
    faces = ""
    for name, family, weight in (
        (SOLID, "Font Awesome 6 Free", 900),
        (BRANDS, "Font Awesome 6 Brands", 400),
    ):
        font = TTFont(folder / name)
        subsetter = Subsetter(Options(layout_features=[]))
        subsetter.populate(unicodes=used)
        subsetter.subset(font)
        font.flavor = "woff2"
        file = BytesIO()
        font.save(file)
        data = b64encode(file.getvalue()).decode()
        faces += FACE.format(family=family, weight=weight, data=data)
    return faces


def setup(app):
    """Unite the style sheets after everything else; Sphinx calls this."""
    app.connect("build-finished", unite, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
