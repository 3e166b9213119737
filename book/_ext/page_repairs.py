"""Repairs of the theme's pages that no option and no template offers."""

import itertools
import re

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform

ASIDE = r'<aside class="margin sidebar">(?:(?!</aside>).)*</aside>\s*'
ARGUMENT = r"<strong>[^<]*</strong> [(–](?:(?!</?p>).)*"
REPAIRS = {
    # What a note of the margin is a note to: below it where there is no margin.
    rf"((?:{ASIDE})+)(<p>.*?</p>)": r'<div class="noted">\1\2</div>',
    # On pages without a number figures are counted through the book: "Figure 8"
    # is the only one of its page.
    r'<span class="caption-number">(?:Figure|Table) \d+ </span>': "",
    # A role that has been withdrawn, and that no list may hold.
    'role="doc-biblioentry"': 'role="listitem"',
    # Elements that show nothing. A browser is slowed by each, and pages of the
    # reference had thousands: words of a name, what is by default, parts of a
    # type, the only paragraph of an argument.
    r'<span class="pre">([^<]*)</span>': r"\1",
    r'<span class="default_value">([^<]*)</span>': r"\1",
    "</em><em>": "",
    rf"<li><p>({ARGUMENT})</p></li>": r"<li>\1</li>",
    # The lines of a signature, which are no list, for they have no terms.
    r'<dl>(\s*<dd><em class="sig-param.*?)</dl>': r"\1",
    r'<dd>(<em class="sig-param.*?)</dd>': r'<span class="sig-line">\1</span>',
}
# A column is at least as wide as its longest word; names are long words, and
# may go on in the next line between their parts.
TABLE = re.compile(r'<table [^>]*class="[^"]*\btable\b.*?</table>', re.DOTALL)
LONG_NAME = re.compile(r"[\w(]{12,}(?=[^<>]*<)")
# On a phone the cells of a row stand below each other, each under its head.
STACKED = re.compile(
    r'<table [^>]*class="[^"]*\bstacked\b.*?</table>', re.DOTALL
)
HEAD = re.compile(r"<th [^>]*><p>(.*?)</p></th>")
PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[_(/:])(?=\w)")
# Exercises too are counted through the book.
COUNTED_EXERCISE = re.compile(r"(?<=Exercise )(\d+)(?!\.?\d)")
# Scripts that wait for the first touch: see book.js.
LATER = ("clipboard.min.js", "copybutton.js")
# A number and per cent stay on one line; one below zero has a minus.
PER_CENT = re.compile(r"(?<=\d) %")
HYPHEN = re.compile(r"(?<![\w.,)\]/=\N{EN DASH}-])-(?=\d)")
# What is typed as it stands, such as n_workers=-1.
TYPED = (
    nodes.literal
    | nodes.FixedTextElement
    | nodes.math
    | nodes.raw
    | addnodes.desc
)
# Shapes begin with a blank for type checkers.
SHAPE = re.compile(r"(?<=, )(['\"]) (\w[\w ]*)\1(?=\])")


class Signs(SphinxPostTransform):
    """Keep "5 %" on one line, and begin "-5" with a minus, in sentences."""

    default_priority = 800
    formats = ("html",)

    def run(self, **kwargs):
        """Mend the text of a page that is not typed."""
        typed = self.document.findall(lambda node: isinstance(node, TYPED))
        kept = {id(text) for each in typed for text in each.findall(nodes.Text)}
        for text in list(self.document.findall(nodes.Text)):
            mended = PER_CENT.sub("\N{NO-BREAK SPACE}%", text)
            mended = HYPHEN.sub("\N{MINUS SIGN}", mended)
            if mended != text and id(text) not in kept:
                text.parent.replace(text, nodes.Text(mended))


def choose_scripts(app, pagename, templatename, context, doctree):
    """Run scripts once the page is there, each of them once.

    Two extensions register theirs twice, and a second `const` of one name is an
    error in the page. Code by a server, which Thebe is for, is not offered.
    """
    kept = {}
    for script in context.get("script_files", []):
        attributes = script.attributes
        body = attributes.get("body", "")
        name = str(script.filename or "").rpartition("/")[2]
        if name in LATER:
            attributes["type"] = "text/later"
        elif name:
            attributes["defer"] = "defer"
        elif body.startswith("DOCUMENTATION_OPTIONS"):
            # It waits for the script before it.
            attributes["type"] = "module"
        if "thebe" not in name + body:
            kept.setdefault(name or body, script)
    context["script_files"][:] = kept.values()


def mend_signature(app, what, name, obj, options, signature, returns):
    """Write shapes well, and dictionaries that each object makes anew.

    Sphinx cannot read Python's own `<factory>`, nor then the whole signature.
    """
    if not signature:
        return None
    signature = signature.replace("<factory>", "dict()")
    return SHAPE.sub(r"\1\2\1", signature), SHAPE.sub(r"\1\2\1", returns or "")


def repair(pages, out):
    """Mend the finished pages."""
    for page, text in pages.items():
        for pattern, mended in REPAIRS.items():
            text = re.sub(pattern, mended, text, flags=re.DOTALL)
        text = TABLE.sub(breakable, STACKED.sub(headed, text))
        pages[page] = counted_on_its_page(text)


def breakable(table):
    """Let long names of a table break between their parts."""
    return LONG_NAME.sub(lambda name: PARTS.sub("<wbr>", name[0]), table[0])


def headed(table):
    """Tell each cell of a table the head of its column."""
    heads = itertools.cycle(HEAD.findall(table[0]))
    return re.sub("<td", lambda _: f'<td data-head="{next(heads)}"', table[0])


def counted_on_its_page(text):
    """Count exercises of a page without a number from 1 on."""
    numbers = sorted(set(map(int, COUNTED_EXERCISE.findall(text))))
    place = {str(number): str(k) for k, number in enumerate(numbers, 1)}
    return COUNTED_EXERCISE.sub(lambda number: place[number[0]], text)


def show_content_alone(writer, node):
    """Write no element for a part of a signature, as no style tells it."""


def setup(app):
    """Connect the repairs; Sphinx calls this."""
    alone = (show_content_alone, show_content_alone)
    for kind in addnodes.SIG_ELEMENTS:
        app.add_node(kind, override=True, html=alone)
    app.add_post_transform(Signs)
    app.connect("autodoc-process-signature", mend_signature)
    app.connect("html-page-context", choose_scripts, priority=900)
