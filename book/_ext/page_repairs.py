"""Repairs of the theme's pages that no option and no template offers."""

import os
import re
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform

# Where no script may run, "auto" has no colours.
UNKNOWN_COLOURS = re.compile(r'(<html [^>]*)data-theme="auto"')
# The button that folds a part of the contents has a picture and no name.
UNNAMED_FOLD = '<summary><span class="toctree-toggle"'
NAMED_FOLD = UNNAMED_FOLD.replace(
    "<summary>", '<summary aria-label="The pages of this section">'
)
# What a note of the margin is a note to: below it where there is no margin.
NOTED = re.compile(
    r'((?:<aside class="margin sidebar">(?:(?!</aside>).)*</aside>\s*)+)'
    r"(<p>.*?</p>)",
    re.DOTALL,
)
WITH_NOTES = r'<div class="noted">\1\2</div>'
# On a phone it is scrolled, also by a keyboard, if it can have the focus.
WIDE_TABLE = re.compile(r'<table (class="[^"]*\b(?:wide|contrasts)\b[^"]*")')
# A column is at least as wide as its longest word; names are long words, and
# may go on in the next line between their parts.
TABLE = re.compile(r'<table [^>]*class="[^"]*\btable\b.*?</table>', re.DOTALL)
LONG_NAME = re.compile(r"[\w(]{12,}(?=[^<>]*<)")
PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[_(/:])(?=\w)")
# A cell with more than some words; beside others on a phone it needs room.
CELL = re.compile(r"<td>(.*?)</td>", re.DOTALL)
TAG, MANY = re.compile(r"<[^>]*>"), 40
# On pages without a number figures and exercises are counted through the book:
# "Figure 8" is the only one of its page.
COUNTED_FIGURE = re.compile(
    r'<span class="caption-number">(?:Figure|Table) \d+ </span>'
)
COUNTED_EXERCISE = re.compile(r"(?<=Exercise )(\d+)(?!\.?\d)")
# What shows nothing: words of a name, parts of a signature that no style here
# tells apart, paragraphs that are alone in their point, groups of a drawing.
WORD = re.compile(r'<span class="pre">([^<]*)</span>')
SIGNATURE = re.compile(r'<dt class="sig .*?</dt>', re.DOTALL)
PLAIN_PART = re.compile(
    r' class="(?:k|n|nn|p|s|w|o|default_value|sig-return[\w-]*)"|'
)
FIELDS = re.compile(r'<dl class="field-list.*?</dl>', re.DOTALL)
FIELD = re.compile(r"<li><p>((?:(?!</?(?:p|li)>).)*)</p></li>", re.DOTALL)
DRAWING = re.compile(r'<svg [^>]*class="plot".*?</svg>', re.DOTALL)
NO_ATTRIBUTE = re.compile("")
# A size in a style would be lost with the height, which follows the width.
SIZE = re.compile(r' style="width: (\d+)px; height: (\d+)px;"')
SIZED = r' width="\1" height="\2" loading="lazy"'
# Pages that run their own code by a server are not offered.
THEBE = re.compile(
    r'<script type="text/x-thebe-config">.*?</script>|'
    r"<script>kernelName = .*?</script>",
    re.DOTALL,
)
# What the theme writes by a script, so that nobody sees it without one, holds
# up the page four times; a style hides it from those who have none.
WRITTEN = re.compile(
    r"<script>\s*document\.write\(`(.*?)`\);?\s*</script>", re.DOTALL
)
# Scripts that wait for the first touch: see book.js.
LATER = ("clipboard.min.js", "copybutton.js")
# A number and per cent stay on one line; one below zero has a minus.
PER_CENT = re.compile(r"(?<=\d) %")
HYPHEN = re.compile(r"(?<![\w.,)\]/\N{EN DASH}-])-(?=\d)")
CODE = (
    nodes.literal
    | nodes.FixedTextElement
    | nodes.math
    | nodes.raw
    | addnodes.desc_signature
)
# Values that are typed, such as n_workers=-1.
TYPED = CODE | nodes.table | addnodes.desc
# Shapes begin with a blank for type checkers.
SHAPE = re.compile(r"(?<=, )(['\"]) (\w[\w ]*)\1(?=\])")


def write_on_every_core(app, env):
    """Write pages in parallel; Jupyter Book has no option for it.

    They are read one by one, for what sphinx_proof finds cannot be united.
    """
    app.parallel = os.cpu_count() or 1


class Signs(SphinxPostTransform):
    """Keep "5 %" on one line, and begin "-5" with a minus, in sentences."""

    default_priority = 800
    formats = ("html",)

    def run(self, **kwargs):
        """Mend the text of a page that is no code."""
        for text in list(self.document.findall(nodes.Text)):
            mended = str(text)
            if not stands_in(text, CODE):
                mended = PER_CENT.sub("\N{NO-BREAK SPACE}%", mended)
            if not stands_in(text, TYPED):
                mended = HYPHEN.sub("\N{MINUS SIGN}", mended)
            if mended != text:
                text.parent.replace(text, nodes.Text(mended))


def stands_in(node, kinds):
    """Whether one of the nodes around it is of these kinds."""
    while node := node.parent:
        if isinstance(node, kinds):
            return True
    return False


def choose_scripts(app, pagename, templatename, context, doctree):
    """Run scripts once the page is there, each of them once.

    Two extensions register theirs twice, and a second `const` of one name is an
    error in the page.
    """
    seen, kept = set(), []
    for script in context.get("script_files", []):
        attributes = getattr(script, "attributes", {})
        body = attributes.get("body", "")
        name = str(getattr(script, "filename", None) or "").rpartition("/")[2]
        if body in seen - {""} or "thebe" in name + body:
            continue
        seen.add(body)
        if name in LATER:
            attributes["type"] = "text/later"
        elif name:
            attributes["defer"] = "defer"
        elif body.startswith("DOCUMENTATION_OPTIONS"):
            # It waits for the script before it.
            attributes["type"] = "module"
        kept.append(script)
    context["script_files"][:] = kept


def mend_signature(app, what, name, obj, options, signature, returns):
    """Write shapes well, and what makes a default anew for each object.

    Sphinx cannot read Python's own `<factory>`, nor then the whole signature.
    """
    if not signature:
        return None
    if is_dataclass(obj) and isinstance(obj, type):
        for field in fields(obj):
            if field.init and field.default_factory is not MISSING:
                made = f"{field.default_factory.__name__}()"
                signature = signature.replace("<factory>", made, 1)
    return SHAPE.sub(r"\1\2\1", signature), SHAPE.sub(r"\1\2\1", returns or "")


def unwrapped(text, element, idle):
    """Take away the elements of a name whose attributes show nothing.

    A browser is slowed by each, and some pages had thousands.
    """
    is_idle = []

    def kept(tag):
        closes, attributes = tag.groups()
        if not closes:
            is_idle.append(idle.fullmatch(attributes))
        gone = is_idle.pop() if closes else is_idle[-1]
        return "" if gone else tag[0]

    return re.sub(rf"<(/?){element}\b([^>]*)(?<!/)>", kept, text)


def plain_lines(signature):
    """A signature without idle parts, its lines no list without terms."""
    text = unwrapped(signature[0], "span", PLAIN_PART)
    text = text.replace("<dd>", '<span class="sig-line">').replace("<dl>", "")
    return text.replace("</dd>", "</span>").replace("</dl>", "")


def without_idle_elements(text):
    """A page with fewer elements that looks the same."""
    text = WORD.sub(r"\1", text)
    text = SIGNATURE.sub(plain_lines, text)
    text = FIELDS.sub(lambda each: FIELD.sub(r"<li>\1</li>", each[0]), text)
    return DRAWING.sub(lambda each: unwrapped(each[0], "g", NO_ATTRIBUTE), text)


def breakable(table):
    """Let long names of a table break between their parts; mark long cells."""
    return CELL.sub(
        marked_if_long,
        LONG_NAME.sub(lambda name: PARTS.sub("<wbr>", name[0]), table[0]),
    )


def marked_if_long(cell):
    """A cell, with a class where it holds a sentence."""
    is_long = len(TAG.sub("", cell[1]).strip()) > MANY
    return f'<td class="long">{cell[1]}</td>' if is_long else cell[0]


def counted_on_its_page(text):
    """Count what stands on a page without a number from 1 on, or not at all."""
    numbers = sorted(set(map(int, COUNTED_EXERCISE.findall(text))))
    place = {str(number): str(k) for k, number in enumerate(numbers, 1)}
    text = COUNTED_EXERCISE.sub(lambda number: place[number[0]], text)
    return COUNTED_FIGURE.sub("", text)


def repair_pages(app, exception):
    """Mend the finished pages."""
    if exception or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        text = THEBE.sub("", text)
        text = WRITTEN.sub(r"\1", text)
        text = UNKNOWN_COLOURS.sub(r'\1data-theme="light"', text)
        text = without_idle_elements(text)
        text = TABLE.sub(breakable, text)
        text = counted_on_its_page(text)
        text = SIZE.sub(SIZED, text)
        text = NOTED.sub(WITH_NOTES, text)
        text = WIDE_TABLE.sub(r'<table tabindex="0" \1', text)
        text = text.replace(UNNAMED_FOLD, NAMED_FOLD)
        # A role that has been withdrawn, and that no list may hold.
        text = text.replace('role="doc-biblioentry"', 'role="listitem"')
        page.write_text(text, encoding="utf-8")


def setup(app):
    """Connect the repairs; Sphinx calls this."""
    app.connect("env-updated", write_on_every_core)
    app.add_post_transform(Signs)
    app.connect("autodoc-process-signature", mend_signature)
    app.connect("html-page-context", choose_scripts, priority=900)
    app.connect("build-finished", repair_pages, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
