"""Formulas as MathML, which browsers set by themselves.

A page needs no script for them, and nothing of it moves. Their font holds what
the book's formulas use and no more.
"""

import re
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from unicodedata import normalize
from xml.etree import ElementTree

import fonts
from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

CONVERTER = LatexToMathML(fancy_error=False)
STYLES = "formulas.css"
MATH = re.compile(r"<math.*?</math>", re.DOTALL)
# A browser would break a line between a formula and the full stop after it.
GLUED = re.compile(rf"([^\s<>]*)({MATH.pattern})([^\s<>]*)", re.DOTALL)
TAG = re.compile(r"<[^>]*>")
# A letter alone is set in italics, which are characters of their own.
ITALICS = {0x210E, *range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C)}
# No formula names it: it is drawn for <msqrt>.
ROOT = "√"
# A formula of so many characters fits a line of a phone, and stays whole.
SHORT = 16
RELATIONS_AND_SUMS = {*"=≈≠<>≤≥∈→+−±"}
FENCES = dict.fromkeys("([{⌊⌈⟨", 1) | dict.fromkeys(")]}⌋⌉⟩", -1)
BARS = {*"|‖"}
QUADS = ("1em", "2em")


def mathml(tex, display):
    """A formula as MathML, in pieces between which a line may break.

    It breaks between clauses, which a wide space parts, before it breaks inside
    of one.
    """
    text = CONVERTER.convert_with_local_state(tex, displaystyle=display)
    formula = ElementTree.fromstring(
        text.replace("&ApplyFunction;", "\N{FUNCTION APPLICATION}")
    )
    formula.attrib = {"displaystyle": "true"} if display else {}
    if len("".join(formula.itertext())) <= SHORT:
        return html(formula)
    parts = ["".join(map(html, pieces(each))) for each in clauses(formula)]
    if len(parts) == 1:
        return parts[0]
    return '<span class="quad"> </span>'.join(
        f'<span class="clause">{part}</span>' for part in parts
    )


def html(formula):
    """A formula as it stands in a page."""
    return ElementTree.tostring(formula, encoding="unicode")


def clauses(formula):
    """Split it at wide spaces."""
    parts = [ElementTree.Element("math", formula.attrib)]
    for child in formula:
        if child.tag == "mspace" and child.get("width") in QUADS:
            parts.append(ElementTree.Element("math", formula.attrib))
        else:
            parts[-1].append(child)
    return parts


def pieces(formula):
    """Split it before relations and sums, and after commas.

    What stands in parentheses stays whole.
    """
    parts, depth, after_comma = [], 0, True
    for child in formula:
        text = "".join(child.itertext())
        if after_comma or (depth == 0 and may_begin(child, text, parts[-1])):
            parts.append(ElementTree.Element("math", formula.attrib))
        parts[-1].append(child)
        depth += deeper(child)
        after_comma = depth == 0 and text == ","
    return parts


def may_begin(child, text, piece):
    """Whether a line may break before this part of a formula."""
    if child.tag != "mo" or text not in RELATIONS_AND_SUMS:
        return False
    # The sign of a number belongs to it.
    if piece[-1].tag == "mo" and piece[-1].text in RELATIONS_AND_SUMS:
        return False
    # As the first of a piece it would else be taken for a sign.
    child.set("form", "infix")
    return True


def deeper(child):
    """By how many parentheses and bars what follows stands deeper."""
    operators = list(child.iter("mo"))
    bars = (mo.get("form") for mo in operators if mo.text in BARS)
    return sum(FENCES.get(mo.text, 0) for mo in operators) + sum(
        {"prefix": 1, "postfix": -1}.get(form, 0) for form in bars
    )


def set_formula(writer, node, display):
    """Append a formula to the page; one that cannot be set is a warning."""
    try:
        writer.body.append(mathml(node.astext(), display))
    except LatexError as error:
        message = "a formula cannot be set: %s"
        logging.getLogger(__name__).warning(message, error, location=node)


def visit_inline(writer, node):
    """A formula in a line of text."""
    set_formula(writer, node, display=False)
    raise nodes.SkipNode


def visit_display(writer, node):
    """A formula in lines of its own, with its number if it has one."""
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    if node["number"]:
        number = get_node_equation_number(writer, node)
        writer.body.append(f'<span class="eqno">({number})')
        writer.add_permalink_ref(node, "Link to this equation")
        writer.body.append("</span>")
    writer.body.append('<span class="formula">')
    set_formula(writer, node, display=True)
    writer.body.append("</span></div>\n")
    raise nodes.SkipNode


def add_styles(app, pagename, templatename, context, doctree):
    """Load the font where there is a formula."""
    if "<math" in context.get("body", ""):
        app.add_css_file(STYLES)


def finish(pages, out):
    """Keep formulas and what touches them together, and write their font."""
    formulas = []
    for page, text in pages.items():
        formulas += MATH.findall(text)
        pages[page] = GLUED.sub(keep_together, text)
    styles = fonts.face("Formulas", font(used_in(formulas)))
    (out / "_static" / STYLES).write_text(styles, encoding="utf-8")


def keep_together(match):
    """Let no line break between a formula and the text that touches it."""
    before, formula, after = match.groups()
    if not before and not after:
        return formula
    return f'<span class="text-nowrap">{match.group()}</span>'


def used_in(formulas):
    """The characters that a browser takes from the font, as numbers."""
    found = {ROOT, *unescape(TAG.sub("", "".join(formulas)))}
    italics = {n for n in ITALICS if normalize("NFKC", chr(n)) in found}
    return italics.union(map(ord, found))


def font(characters):
    """STIX Two Math with these characters only."""
    folder = Path(find_spec("ziamath").origin).with_name("fonts")
    path = folder / "STIXTwoMath-Regular.ttf"
    whole = fonts.subset(path, characters, layout_features=["ssty"])
    narrow_roots(whole)
    return whole


def narrow_roots(whole):
    """Make the taller forms of the root sign as wide as the smallest.

    Chromium leaves room for the widest, whichever it draws.
    """
    root, widths = whole.getBestCmap()[ord(ROOT)], whole["hmtx"]
    variants = whole["MATH"].table.MathVariants
    forms = variants.VertGlyphConstruction[
        variants.VertGlyphCoverage.glyphs.index(root)
    ]
    taller = {each.VariantGlyph for each in forms.MathGlyphVariantRecord}
    taller |= {part.glyph for part in forms.GlyphAssembly.PartRecords}
    for name in taller - {root}:
        scale = widths[root][0] / widths[name][0]
        whole["glyf"][name].coordinates.scale((scale, 1))
        widths[name] = (widths[root][0], round(widths[name][1] * scale))


def setup(app):
    """Make it the way formulas are set; Sphinx calls this."""
    app.add_html_math_renderer(
        "mathml", (visit_inline, None), (visit_display, None)
    )
    app.connect("html-page-context", add_styles)
