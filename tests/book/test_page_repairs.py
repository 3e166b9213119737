"""The repairs of finished pages: what is too wide breaks where it may, and signatures can be read."""

import ast
import inspect
from pathlib import Path

import pytest
from tool import load

from posembed import RunConfig, RunResult
from posembed.data import Perplexities

SOURCE = Path(__file__).resolve().parents[2] / "book" / "_ext" / "page_repairs.py"


@pytest.fixture(scope="module")
def repairs():
    return load("page_repairs", SOURCE.parent)


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("layers_with_positions", "layers_<wbr>with_<wbr>positions"),
        ("x-transformers RelativePositionBias: 3", "x-transformers Relative<wbr>Position<wbr>Bias: 3"),
        ("bias_by_offset(offsets)", "bias_<wbr>by_<wbr>offset(<wbr>offsets)"),
        ("d_model, PyTorch, 3 MiB, DistilBERT", "d_model, PyTorch, 3 MiB, DistilBERT"),
        ('<code class="layers_with_positions">x</code>', '<code class="layers_with_positions">x</code>'),
    ],
)
def test_long_names_of_a_table_break_between_their_parts(repairs, text, broken):
    row = '<table class="wide table"><tr><td>{}</td></tr></table>'
    assert repairs.TABLE.sub(repairs.breakable, row.format(text)) == row.format(broken)


def test_a_number_and_per_cent_stay_together_in_prose(repairs):
    page = "<p title='5 %'>some 95 % of it</p><pre>95 %</pre><script>'5 %'</script>"
    assert repairs.without_loose_signs(page) == page.replace("some 95 %", "some 95\N{NO-BREAK SPACE}%")


def test_a_number_below_zero_has_a_minus_in_sentences(repairs):
    reference = '<dt class="sig py">n_workers=-1</dt><li>-1 for all</li>'
    assert repairs.without_loose_signs(reference) == reference
    page = "<p>from -0.5 to 1-2, GPT-2, 2026-01-02</p><code>-1</code><table><td>-1</td></table><a title='-1'>(-3)</a>"
    made = page.replace("from -0.5", "from \N{MINUS SIGN}0.5").replace("(-3)", "(\N{MINUS SIGN}3)")
    assert repairs.without_loose_signs(page) == made


def test_a_cell_with_a_sentence_is_marked(repairs):
    table = '<table class="table"><tr><td>short</td><td><p>{}</p></td></tr></table>'
    made = repairs.TABLE.sub(repairs.breakable, table.format("words of a row " * 4))
    assert made == table.replace("<td><p>", '<td class="long"><p>').format("words of a row " * 4)


def test_what_is_counted_through_the_book_is_counted_on_its_page(repairs):
    page = (
        '<h3>Exercise 5 (a)</h3><h3>Exercise 7</h3>Solution to Exercise 5<span class="caption-number">Figure 8 </span>'
    )
    made = repairs.counted_on_its_page(page)
    assert made == "<h3>Exercise 1 (a)</h3><h3>Exercise 2</h3>Solution to Exercise 1"
    chapter = 'Exercise 4.2 <span class="caption-number">Figure 4.11 </span>'
    assert repairs.counted_on_its_page(chapter) == chapter


def test_the_name_of_a_test_breaks_between_its_parts(repairs):
    made = repairs.TEST_NAME.sub(repairs.break_between_parts, "<code>tests/a/test_b.py::test_all</code>")
    assert made == "<code>tests/<wbr>a/<wbr>test_<wbr>b.py::<wbr>test_<wbr>all</code>"


def test_notes_of_the_margin_stand_with_their_paragraph(repairs):
    note = '<aside class="margin sidebar">\n<p>{}</p>\n</aside>\n'.format
    page = f"<p>a</p>{note('b')}{note('c')}<p>d</p><p>e</p>{note('f')}<ul></ul><p>g</p>"
    made = repairs.NOTED.sub(repairs.WITH_NOTES, page)
    assert made == page.replace(note("b"), '<div class="noted">' + note("b")).replace("<p>d</p>", "<p>d</p></div>")


def test_other_text_is_left_alone(repairs):
    html = '<p>layers_with_positions</p><table class="dataframe"><td>layers_with_positions</td></table>'
    assert repairs.TABLE.sub(repairs.breakable, html) == html


def test_pictures_have_their_place_before_they_are_loaded(repairs):
    html = '<img alt="x" src="a.png" style="width: 660px; height: 310px;" />'
    assert (
        repairs.SIZE.sub(repairs.SIZED, html) == '<img alt="x" src="a.png" width="660" height="310" loading="lazy" />'
    )


@pytest.mark.parametrize(
    ("kind", "made"),
    [(RunConfig, {"dict()"}), (RunResult, {"dict()"}), (Perplexities, set())],
    ids=lambda each: str(each),
)
def test_defaults_that_are_made_anew_can_be_read(repairs, kind, made):
    signature = str(inspect.signature(kind))
    repaired, returns = repairs.show_made_defaults(None, "class", kind.__name__, kind, None, signature, "None")
    # Types are names of modules there, which Python can read as well.
    (function,) = ast.parse(f"def made{repaired.replace('~', '')}: ...").body
    assert {ast.unparse(default) for default in function.args.defaults if isinstance(default, ast.Call)} == made
    assert returns == "None"


def test_signatures_of_all_else_stay(repairs):
    assert repairs.show_made_defaults(None, "function", "f", len, None, "(obj, /)", "int") is None
    assert repairs.show_made_defaults(None, "class", "RunConfig", RunConfig, None, None, None) is None


# Two modes; strings look alike in both, comments and names of attributes in neither.
STYLES = """
html[data-theme="light"] .highlight .n { color: #080808 }
html[data-theme="light"] .highlight .w { color: #080808 } /* Space */
html[data-theme="light"] .highlight .o { color: #00622F } /* Operator */
html[data-theme="light"] .highlight .s2 { color: #00622F }
html[data-theme="light"] .highlight .si { color: #00622F }
html[data-theme="light"] .highlight .c1 { color: #515151 }
html[data-theme="light"] .highlight .mi { color: #7F4707 }
html[data-theme="light"] .highlight .nb { color: #7F4707 }
html[data-theme="dark"] .highlight .n { color: #F8F8F2 }
html[data-theme="dark"] .highlight .w { color: #F8F8F2 }
html[data-theme="dark"] .highlight .o { color: #ABE338 }
html[data-theme="dark"] .highlight .s2 { color: #ABE338 }
html[data-theme="dark"] .highlight .si { color: #ABE338 }
html[data-theme="dark"] .highlight .c1 { color: #FFD900 }
html[data-theme="dark"] .highlight .mi { color: #FFD900 }
html[data-theme="dark"] .highlight .nb { color: #FFD900 }
"""


@pytest.mark.parametrize(
    ("code", "marked"),
    [
        ('<span class="n">x</span> <span class="o">=</span> <span class="mi">1</span>', "x = 1"),
        # One string in three parts, and comments on two lines.
        (
            '<span class="s2">"a </span><span class="si">{</span><span class="n">b</span><span class="si">}</span>'
            '<span class="s2">"</span>',
            '<span class="si">"a {</span>b<span class="si">}"</span>',
        ),
        ('<span class="c1"># a</span>\n<span class="c1"># b</span>', '<span class="c1"># a\n# b</span>'),
        # In one mode they look alike.
        *[('<span class="nb">len</span> <span class="c1"># a</span>',) * 2],
        # Readers cannot select a prompt; what is printed has no style, and its columns are no marks of code.
        (
            '<span class="gp">&gt;&gt;&gt; </span>1\n<span class="go">1</span>',
            '<span class="gp">&gt;&gt;&gt; </span>1\n1',
        ),
        *[('<span class="label">a</span> <span class="label">b</span>',) * 2],
        # The first line of what is printed would be lost without the mark.
        ("<span></span>x", "x"),
        *[("<span></span>\nx",) * 2],
    ],
)
def test_code_has_marks_only_where_they_show_something(repairs, code, marked):
    made = repairs.CODE.sub(lambda code: repairs.few_marks(code, repairs.looks(STYLES)), f"<pre>{code}</pre>{code}")
    assert made == f"<pre>{marked}</pre>{code}"


def test_a_signature_has_lines_and_marks_that_show_something(repairs):
    name = '<span class="n">{}</span>'.format
    signature = (
        f'<dt class="sig sig-object py" id="f"><dl>\n<dd><em class="sig-param">{name("x")}: {name(name("int"))} '
        '<span class="o">=</span> <span class="default_value">1</span></em>,</dd>\n</dl>)<span class="sig-return"> '
        f'<span class="sig-return-icon">→</span> {name("T")}</span><a class="headerlink">#</a></dt>'
    )
    assert repairs.SIGNATURE.sub(repairs.plain_lines, signature) == (
        '<dt class="sig sig-object py" id="f"><span class="sig-lines">\n<em class="sig-param sig-line">x: int '
        '<span class="default_value">= 1</span>,</em>\n</span>) → T<a class="headerlink">#</a></dt>'
    )


def test_points_of_one_paragraph_are_plain(repairs):
    fields = '<dl class="field-list"><dt>Raises<span class="colon">:</span></dt><dd><ul>{}</ul></dd></dl>'.format
    many, plain = "<li><p>a</p>\n<p>b</p></li>", "<li><p>a <em>b</em></p></li>"
    made = repairs.FIELDS.sub(repairs.plain_points, fields(many + plain) + plain)
    assert made == fields(many + "<li>a <em>b</em></li>").replace('<span class="colon">:</span>', ":") + plain


def test_long_names_and_shapes_of_the_reference_are_broken_and_written_well(repairs):
    signature = (
        "<dt class=\"sig py\"><em>posembed.plans.RunConfig</em>(Float[Tensor, ' n_train'], sep=' ', a: 'x' | 'y')</dt>"
    )
    made = repairs.SIGNATURE.sub(repairs.plain_lines, signature)
    assert "<em>posembed.<wbr>plans.<wbr>Run<wbr>Config</em>(Float[Tensor, 'n_train'], sep=' ', a: 'x' | 'y')" in made
    fields = '<dl class="field-list"><li><a href="#posembed.plans.Part"><em>posembed.plans.Part</em></a></li></dl>'
    made = repairs.FIELDS.sub(repairs.plain_points, fields)
    assert made == fields.replace(">posembed.plans.Part<", ">posembed.<wbr>plans.<wbr>Part<")


def test_a_name_in_the_contents_is_plain_and_has_no_methods_below(repairs):
    entry = (
        '<li class="toc-h3 nav-item"><a class="reference nav-link" href="#{0}"><code class="literal">{0}</code></a>'
        '<ul class="nav">\n<li class="toc-h4 nav-item"><a class="nav-link" href="#m">m</a></li>\n</ul>\n</li>'
    )
    section = entry.replace('<code class="literal">{0}</code>', "Part")
    made = repairs.NAME_IN_CONTENTS.sub(repairs.PLAIN_NAME, (entry + section).format("f"))
    plain = '<li class="toc-h3 nav-item"><a class="reference nav-link literal" href="#f">f</a></li>'
    assert made == plain + section.format("f")


def test_groups_of_a_drawing_without_a_purpose_are_left_out(repairs):
    svg = '<svg class="plot"><g><g style="x"><g><path/></g><g/></g></g></svg>'
    assert repairs.unwrapped(svg, "g", repairs.NO_ATTRIBUTE) == '<svg class="plot"><g style="x"><path/><g/></g></svg>'


class Script:
    def __init__(self, filename, **attributes):
        self.filename, self.attributes = filename, attributes


def test_scripts_wait_for_the_page_and_come_once(repairs):
    scripts = [
        Script("a.js"),
        Script(None, body="const a = 1"),
        Script(None, body="const a = 1"),
        Script("_static/sphinx-thebe.js"),
        Script(None, body="DOCUMENTATION_OPTIONS.pagename = 'x'"),
    ]
    context = {"script_files": [*scripts]}
    repairs.order_scripts(None, "x", "page.html", context, None)
    assert [each.filename or each.attributes["body"] for each in context["script_files"]] == [
        "a.js",
        "const a = 1",
        "DOCUMENTATION_OPTIONS.pagename = 'x'",
    ]
    assert scripts[0].attributes == {"defer": "defer"} and scripts[4].attributes["type"] == "module"


def test_a_page_has_the_scripts_that_find_something_on_it(repairs):
    page = '<script defer src="a/_static/togglebutton.js?v=1"></script><script src="_static/design-tabs.js"></script>'
    assert repairs.without_idle_scripts(page) == ""
    for_menus = f'{page}<div class="dropdown dropdown-download-buttons"><p class="admonition-title">'
    assert "<script" not in repairs.without_idle_scripts(for_menus)
    assert "togglebutton" in repairs.without_idle_scripts(f'{page}<div class="admonition dropdown">')
    with_fold = f'{page}<div class="solution dropdown admonition" id="s">'
    assert "togglebutton" in (made := repairs.without_idle_scripts(with_fold)) and "tabs" not in made
    with_tabs = f'{page}<div class="sd-tab-set docutils">'
    assert "design-tabs" in (made := repairs.without_idle_scripts(with_tabs)) and "toggle" not in made
