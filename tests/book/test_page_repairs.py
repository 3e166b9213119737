"""The repairs of pages: what is too wide breaks where it may, signs stand well, signatures can be read."""

import ast
import inspect
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.core import publish_doctree
from tool import load

from posembed import RunConfig, RunResult
from posembed.data import Perplexities

EXTENSIONS = Path(__file__).resolve().parents[2] / "book" / "_ext"


@pytest.fixture(scope="module")
def repairs():
    return load("page_repairs", EXTENSIONS)


def repaired(repairs, page):
    pages = {"page": page}
    repairs.repair(pages, None)
    return pages["page"]


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("layers_with_positions", "layers_<wbr>with_<wbr>positions"),
        ("x-transformers RelativePositionBias: 3", "x-transformers Relative<wbr>Position<wbr>Bias: 3"),
        ("d_model, PyTorch, 3 MiB, DistilBERT", "d_model, PyTorch, 3 MiB, DistilBERT"),
        ('<code class="layers_with_positions">x</code>', '<code class="layers_with_positions">x</code>'),
    ],
)
def test_long_names_of_a_table_break_between_their_parts(repairs, text, broken):
    row = '<table class="wide table"><tr><td>{}</td></tr></table>'
    assert repairs.TABLE.sub(repairs.breakable, row.format(text)) == row.format(broken)
    elsewhere = row.replace("wide table", "dataframe").format(text)
    assert repairs.TABLE.sub(repairs.breakable, elsewhere) == elsewhere


def test_cells_that_stand_below_each_other_know_their_heads(repairs):
    head = '<th class="head"><p>take</p></th><th class="head"><p>because</p></th>'
    table = f'<table class="stacked table">{head}<tr><td><p>a</p></td><td><p>b</p></td></tr></table>'
    assert repaired(repairs, table).count('data-head="take"><p>a</p></td><td data-head="because"><p>b</p>') == 1
    assert "data-head" not in repaired(repairs, table.replace("stacked", "wide"))


PAGE = """
some 95 % of it, from -0.5 to 1-2, GPT-2, 2026-01-02, (-3) and ``95 % -1``

=====  ===
a      -1
b      5 %
=====  ===
"""


def test_signs_of_sentences_and_tables_are_mended_and_those_of_code_stay(repairs):
    page = publish_doctree(PAGE)
    repairs.Signs(page).run()
    prose, table = page.children
    assert prose.astext() == (
        "some 95\N{NO-BREAK SPACE}% of it, from \N{MINUS SIGN}0.5 to 1-2, GPT-2, 2026-01-02, (\N{MINUS SIGN}3) "
        "and 95 % -1"
    )
    assert [cell.astext() for cell in table.findall(nodes.entry)] == [
        "a",
        "\N{MINUS SIGN}1",
        "b",
        "5\N{NO-BREAK SPACE}%",
    ]


def test_what_is_counted_through_the_book_is_counted_on_its_page(repairs):
    page = (
        '<h3>Exercise 5 (a)</h3><h3>Exercise 7</h3>Solution to Exercise 5<span class="caption-number">Figure 8 </span>'
    )
    made = repaired(repairs, page)
    assert made == "<h3>Exercise 1 (a)</h3><h3>Exercise 2</h3>Solution to Exercise 1"
    chapter = 'Exercise 4.2 <span class="caption-number">Figure 4.11 </span>'
    assert repaired(repairs, chapter) == chapter


def test_notes_of_the_margin_stand_with_their_paragraph(repairs):
    note = '<aside class="margin sidebar">\n<p>{}</p>\n</aside>\n'.format
    page = f"<p>a</p>{note('b')}{note('c')}<p>d</p><p>e</p>{note('f')}<ul></ul><p>g</p>"
    made = page.replace(note("b"), '<div class="noted">' + note("b")).replace("<p>d</p>", "<p>d</p></div>")
    assert repaired(repairs, page) == made


@pytest.mark.parametrize(
    ("kind", "made"),
    [(RunConfig, {"dict()"}), (RunResult, {"dict()"}), (Perplexities, set())],
    ids=lambda each: str(each),
)
def test_defaults_that_are_made_anew_can_be_read(repairs, kind, made):
    signature = str(inspect.signature(kind))
    repaired, _ = repairs.mend_signature(None, "class", kind.__name__, kind, None, signature, "None")
    # Types are names of modules there, which Python can read as well.
    (function,) = ast.parse(f"def made{repaired.replace('~', '')}: ...").body
    assert {ast.unparse(default) for default in function.args.defaults if isinstance(default, ast.Call)} == made


def test_shapes_of_a_signature_are_written_well(repairs):
    given = "(x: Float[Tensor, ' n_train'], sep=' ', a: 'x' | 'y')", "Float[Tensor, ' n']"
    made = repairs.mend_signature(None, "function", "f", len, None, *given)
    assert made == ("(x: Float[Tensor, 'n_train'], sep=' ', a: 'x' | 'y')", "Float[Tensor, 'n']")


def test_what_shows_nothing_is_no_element(repairs):
    signature = '<dt class="sig py"><dl>\n<dd><em class="sig-param"><span class="pre">x</span></em></dd></dl></dt>'
    fields = "<ul><li><p><strong>b</strong> (<em>c</em><em>d</em>)</p></li><li><p>c</p>\n<p>d</p></li></ul>"
    assert repaired(repairs, signature + fields) == (
        '<dt class="sig py">\n<span class="sig-line"><em class="sig-param">x</em></span></dt>'
        "<ul><li><strong>b</strong> (<em>cd</em>)</li><li><p>c</p>\n<p>d</p></li></ul>"
    )


def test_scripts_wait_for_the_page_and_come_once(repairs):
    names = ["_static/a.js", None, None, "_static/sphinx-thebe.js", None, "_static/clipboard.min.js"]
    bodies = ["", "const a = 1", "const a = 1", "", "DOCUMENTATION_OPTIONS.pagename = 'x'", ""]
    scripts = [
        SimpleNamespace(filename=name, attributes={"body": body} if body else {})
        for name, body in zip(names, bodies, strict=True)
    ]
    context = {"script_files": [*scripts]}
    repairs.choose_scripts(None, "x", "page.html", context, None)
    assert context["script_files"] == [scripts[k] for k in (0, 1, 4, 5)]
    assert scripts[0].attributes == {"defer": "defer"} and scripts[5].attributes == {"type": "text/later"}
    assert scripts[4].attributes["type"] == "module"


def test_what_is_printed_in_no_columns_wraps():
    page = publish_doctree("::\n\n  caught: two  \n  lines\n\n::\n\n  a   1\n")
    for text in page:
        text["classes"].append("output")
    load("cells", EXTENSIONS).let_sentences_wrap(None, page)
    assert [text["classes"] for text in page] == [["output", "running"], ["output"]]


def test_code_has_marks_only_where_they_show_something():
    from pygments import highlight
    from pygments.lexers import get_lexer_by_name

    made = highlight(
        'x.y = len([1, f"a {b}"])  # c\n', get_lexer_by_name("python"), load("few_marks", EXTENSIONS).FewMarks()
    )
    code = made.partition("<span></span>")[2].partition("\n")[0]
    assert code == (
        'x.y = <span class="nb">len</span>([1, <span class="s">f"a {</span>b<span class="s">}"</span>])  '
        '<span class="c"># c</span>'
    )
