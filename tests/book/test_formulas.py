"""Formulas as MathML: where they break, what stays together, and a font that has all that they need."""

import json
import re
from xml.etree import ElementTree

import pytest
from math_core import LatexError
from prose import BOOK
from tool import load

# Between dollar signs, in one line or in its own lines.
DISPLAY = re.compile(r"^\$\$\n(.+?)\n\$\$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(?<![$\\`])\$([^$`\n]+)\$(?!\$)")


@pytest.fixture(scope="module")
def formulas():
    return load("formulas", BOOK / "_ext")


def texts():
    """The Markdown of every page of the book."""
    for path in sorted(BOOK.rglob("*.md")):
        yield path.read_text(encoding="utf-8")
    for path in sorted(BOOK.rglob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "markdown":
                yield "".join(cell["source"])


def parts(html):
    """What each piece of a formula shows."""
    return ["".join(ElementTree.fromstring(each).itertext()) for each in re.findall("<math.*?</math>", html)]


@pytest.mark.parametrize(
    ("tex", "pieces"),
    [
        (r"n \le d + 1", ["n≤d+1"]),  # short
        (r"f(X + E) = f(P X + P E) - g(X)", ["f(X+E)", "=f(PX+PE)", "−g(X)"]),
        (r"T_0 = -1, T_1 = +2, T_2 = 4 + 8", ["T0", "=−1,", "T1", "=+2,", "T2", "=4", "+8"]),
        (r"\lvert a + b \rvert^2 < [c + d, e + f + g]", ["|a+b|2", "<[c+d,e+f+g]"]),
    ],
)
def test_a_line_breaks_before_relations_and_sums_and_after_commas(formulas, tex, pieces):
    assert parts(formulas.mathml(tex, display=False)) == pieces


def test_a_sum_stays_a_sum_at_the_beginning_of_a_piece(formulas):
    assert '<math><mo form="infix">+</mo>' in formulas.mathml(r"a + b + c + d + e + f + g + h + i", display=False)


def test_a_line_breaks_between_clauses_first(formulas):
    html = formulas.mathml(r"E_p = \sin(\omega p), \qquad \omega = 10000^{-2i/d}", display=True)
    assert parts(html) == ["Ep", "=sin\N{FUNCTION APPLICATION}(ωp),", "ω", "=10000−2i/d"]
    first, second = html.split('<span class="quad"> </span>')
    assert first.startswith('<span class="clause">') and second.startswith('<span class="clause">')
    assert html.count('displaystyle="true"') == 4


def test_a_formula_and_what_touches_it_stay_together(formulas):
    page = "<p>for <math><mi>x</mi></math>, in (<math><mi>y</mi></math>) and <math><mi>z</mi></math> too</p>"
    together = formulas.GLUED.sub(formulas.keep_together, page)
    assert re.findall(r"nowrap.>(.*?)</span>", re.sub("</?(math|mi)>", "", together)) == ["x,", "(y)"]
    assert re.sub("</?span.*?>", "", together) == page


def test_a_formula_that_cannot_be_set_is_refused(formulas):
    with pytest.raises(LatexError):
        formulas.mathml(r"\nosuchcommand x", display=False)


KINDS = ((DISPLAY, True), (INLINE, False))


def test_the_font_has_what_the_formulas_of_the_book_use_and_no_more(formulas):
    found = [(tex, display) for text in texts() for pattern, display in KINDS for tex in pattern.findall(text)]
    assert len(found) > 500
    characters = formulas.used_in(formulas.mathml(*each) for each in found)
    assert {ord("√"), ord("𝑥"), ord("⊤"), ord("ℝ"), ord("∑")} <= characters
    assert ord("𝔛") not in characters
    font = formulas.font(characters)
    assert len(load("fonts", BOOK / "_ext").face("Formulas", font)) < 53_000  # 40 kB in base 64
    # What is drawn by its size and place alone has no form of its own.
    assert characters - font.getBestCmap().keys() <= {ord("\N{FUNCTION APPLICATION}")}
    assert font["MATH"].table.MathConstants


def test_tall_roots_are_no_wider_than_small_ones(formulas):
    font = formulas.font({ord(each) for each in "√d"})
    (root,) = font["MATH"].table.MathVariants.VertGlyphConstruction
    names = [each.VariantGlyph for each in root.MathGlyphVariantRecord]
    names += [each.glyph for each in root.GlyphAssembly.PartRecords]
    assert len(names) > 3
    assert len({font["hmtx"][name][0] for name in names}) == 1
