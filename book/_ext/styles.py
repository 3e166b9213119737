"""One style sheet for each page, with what the book uses and no more.

The theme loads a dozen of them, most of whose rules no page needs, and its
icons as fonts of thousands. A browser shows nothing before it has them all.
"""

import re
from hashlib import sha256
from os.path import relpath

import fonts
import tinycss2

LINK = re.compile(r'<link [^>]*rel="stylesheet"[^>]*>')
ADDRESS = re.compile(r'href="([^"?]*)')
# What a rule may name: a class or an id of a page, or a word of a script.
NAME = re.compile(r"[\w-]+")
CLASSES_AND_IDS = re.compile(r'\b(?:class|id)="([^"]*)"')
SCRIPT = re.compile(r"<script.*?</script>", re.DOTALL)
NAMED = re.compile(r"[.#]((?:[\w-]|\\.)+)")
# What stands in these is not asked for, or one of several is enough.
EITHER = re.compile(r":(?:not|is|where|has)\((?:[^()]|\([^()]*\))*\)")
# A character of the icons' font.
ICON = re.compile("[\ue000-\uf8ff]")
ICON_FONT = re.compile(r"Font ?Awesome", re.IGNORECASE)
ICON_FONTS = (
    ("fa-solid-900.ttf", "Font Awesome 6 Free", 900),
    ("fa-brands-400.ttf", "Font Awesome 6 Brands", 400),
)


def unite(pages, out):
    """Give each page one style sheet in place of its own."""
    known, sheets = names([*pages.values()], out), {}
    for page, text in pages.items():
        paths = tuple(
            (page.parent / ADDRESS.search(link)[1]).resolve()
            for link in LINK.findall(text)
        )
        if paths and paths not in sheets:
            sheets[paths] = sheet(paths, known, out)
        if paths:
            address = relpath(sheets[paths], page.parent)
            links = iter([f'<link rel="stylesheet" href="{address}" />'])
            pages[page] = LINK.sub(lambda _, rest=links: next(rest, ""), text)


def names(texts, out):
    """What a rule can be about: what pages have, and what scripts may add."""
    lists = (CLASSES_AND_IDS.findall(text) for text in texts)
    found = {name for each in lists for name in " ".join(each).split()}
    scripts = [code for text in texts for code in SCRIPT.findall(text)]
    for path in out.rglob("*.js"):
        if "fontawesome" not in path.parts:
            scripts.append(path.read_text(encoding="utf-8"))
    return found.union(*map(NAME.findall, scripts))


def sheet(paths, known, out):
    """Write these style sheets as one, and return its path."""
    texts = (path.read_text(encoding="utf-8") for path in paths)
    kept = "".join(needed(text, known) for text in texts)
    styles = icon_fonts(kept, out) + kept
    name = f"styles-{sha256(styles.encode()).hexdigest()[:8]}.css"
    (out / "_static" / name).write_text(styles, encoding="utf-8")
    return out / "_static" / name


def needed(rules, known):
    """Of the rules of a style sheet those that are about something known."""
    parsed = tinycss2.parse_rule_list(
        rules, skip_comments=True, skip_whitespace=True
    )
    return "".join(rule_if_needed(rule, known) for rule in parsed)


def rule_if_needed(rule, known):
    """A rule, or what a page needs of those inside of it."""
    prelude = tinycss2.serialize(rule.prelude)
    if rule.type == "qualified-rule":
        selectors = EITHER.sub("", prelude).split(",")
        is_about = ({*NAMED.findall(each)} <= known for each in selectors)
        return rule.serialize() if any(is_about) else ""
    if rule.lower_at_keyword in ("media", "supports", "container", "layer"):
        inner = needed(rule.content, known)
        return f"@{rule.at_keyword}{prelude}{{{inner}}}" if inner else ""
    is_of_icons = rule.lower_at_keyword == "font-face" and ICON_FONT.search(
        rule.serialize()
    )
    return "" if is_of_icons else rule.serialize()


def icon_fonts(styles, out):
    """The fonts of icons with those that the style sheet names."""
    used = {ord(each) for each in ICON.findall(styles)}
    folder = next(out.glob("_static/vendor/fontawesome/*/webfonts"))
    return "".join(
        fonts.face(family, fonts.subset(folder / name, used), weight)
        for name, family, weight in ICON_FONTS
    )
