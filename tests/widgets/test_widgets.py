"""What every interactive figure is held to: a page that stands alone, the same everywhere; and two small figures."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
import torch
from refusals import refused
from widget_checks import HERE, a_run, assert_refused, learned_runs, rows_of

import posembed
from posembed import widgets
from posembed.widgets import InteractiveFigure, LookupFigure, ShuffleFigure
from posembed.widgets.base import STATIC
from posembed.widgets.lookup import BATCH, WORDS

SENTENCE = "I do like coding"
# By the code that makes them, which another interpreter can run too.
FIGURES = {
    "lookup": "LookupFigure()",
    "models": "ModelsFigure({f'{kind}-nopos': posembed.stored.load_model(f'{kind}-nopos') for kind in "
    "('causal', 'masked')}, posembed.data.load_corpus().vocabulary, 'the union')",
    "sinusoids": "SinusoidFigure()",
    "offset": "RotationFigure()",
    "rope": "RotationFigure(view='rope')",
    "biases": "BiasFigure()",
    "trained biases": "BiasFigure(learned_runs())",
    "properties": "PropertiesFigure({'a square': posembed.sinusoidal(8, 8)})",
    "probe": "ProbeFigure(posembed.stored.stored_studies())",
    "layer errors": "LayerErrorFigure({'a': {'nopos': [a_run()]}}, paper={'nopos': [1.0, 0.0]})",
    "counting": "CountingFigure()",
    "depth": "DepthFigure({'a': {'nopos': [a_run()]}})",
    "doses": "DoseFigure({'a': {'symmetry': [[1, 0], [1, 1]]}}, degrees=[0, 12], guesses={'a': 0.5})",
    "comparison": "ComparisonFigure({'a': [[1, 2]] * 2, 'b': [[2, 2]] * 2}, title='t', x=[0, 1], xlabel='', ylabel='')",
    "helix": "HelixFigure('a', [[0, 1, 2], [1, 0, 1]], [0, 1])",
    "repairs": "RepairFigure('a', [[0, 1]], [[1, 1]], ('a\\nb', 'a\\nc'))",
}
# What that code knows.
SHOWN = {"posembed": posembed, "a_run": a_run, "learned_runs": learned_runs, **vars(widgets)}


@pytest.fixture(scope="module")
def shuffle_figure(encoder):
    return ShuffleFigure(encoder, SENTENCE)


@pytest.fixture(scope="module", params=["shuffle", *FIGURES])
def figure(request):
    code = FIGURES.get(request.param)
    return eval(code, SHOWN) if code else request.getfixturevalue("shuffle_figure")


@pytest.mark.parametrize("name", FIGURES)
def test_drawing_a_figure_leaves_torch_as_it_was(name):
    before = torch.get_rng_state()
    eval(FIGURES[name], SHOWN).page_html()
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_default_dtype() == torch.float32


class Page(HTMLParser):
    """A page as a browser takes it apart: the elements, their attributes, and the text of each kind of element."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.texts, self.open = [], [], {}, []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *attribute) for attribute in attrs]
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.setdefault(self.open[-1] if self.open else None, []).append(data)


def state_in(html):
    """The state as the page's script reads it; JSON is JavaScript, and nothing else is on its line."""
    return json.loads(re.search(r"^const state = (.*);$", html, re.MULTILINE).group(1))


def source_in(html):
    return json.loads(re.search(r"^const source = (.*);$", html, re.MULTILINE).group(1))


def test_the_page_carries_the_state_and_the_module(figure):
    html = figure.page_html()
    assert state_in(html) == figure.state() == figure.get_state(figure.state().keys())
    assert source_in(html) == figure.source() == figure._esm


def test_a_page_is_one_root_one_script_and_one_style(figure):
    page = Page(figure.page_html())
    assert page.open == []
    assert [page.tags.count(tag) for tag in ("script", "style", "table")] == [1, 1, 1]
    assert ("script", "type", "module") in page.attributes


# What fetches something from somewhere: addresses with or without a scheme, style sheets, fonts, other modules. SVG's
# name space looks like an address, but nothing is asked of it.
FETCHES = re.compile(
    r"""https?:(?!//www\.w3\.org/2000/svg["\\])|['"(]//|\burl\(|@import|@font-face|\bfetch\(|"""
    r"""XMLHttpRequest|^\s*import\b|\bfrom\s+["']""",
    re.M,
)


def test_a_page_fetches_nothing(figure):
    html = figure.page_html()
    # The module apart, because as JSON it begins with a quote and the slashes of a comment.
    assert FETCHES.findall(source_in(html)) == []
    assert FETCHES.findall(re.sub(r"^const source = .*$", "", html, flags=re.MULTILINE)) == []
    assert not [
        name
        for _, name, value in Page(html).attributes
        if name in ("src", "href", "srcset", "data", "onload", "onerror") and not value.startswith("data:image/png;")
    ]


def test_the_module_reads_nothing_that_the_state_lacks(figure):
    read = set(re.findall(r"""model\.get\(["'](\w+)["']\)""", figure.source()))
    read |= set(re.findall(r"""(?:toggle|slider|choose)\(model, ["'](\w+)["']""", figure.source()))
    listened = set(re.findall(r"""model\.on\(["']change:(\w+)["']""", figure.source()))
    assert read and listened
    assert read | listened <= set(figure.state())


@pytest.mark.parametrize(
    "word",
    [
        "</script><img src=x onerror=alert(1)>",
        "<!--<script>",
        "]]></style>&lt;b&gt;&amp;\"'`${1}\\",
        "\u2028\u2029\x00💡 ñ {uid} {0} %s",
    ],
    ids=ascii,
)
def test_a_word_is_a_word_whatever_is_in_it(word):
    figure = LookupFigure()
    plain = Page(figure.page_html())
    figure.words = [word, *figure.words[1:]]
    html = figure.page_html()
    page = Page(html)
    assert page.tags == plain.tags
    assert [name for _, name, _ in page.attributes] == [name for _, name, _ in plain.attributes]
    assert state_in(html)["words"] == figure.words
    assert LookupFigure().words == WORDS
    assert "\u2028" not in html.partition("<script")[2].partition("</script>")[0]


def test_two_figures_on_one_page_have_names_of_their_own(figure):
    roots = [re.search(r'data-posembed="([\w-]+)"', figure.page_html())[1] for _ in range(3)]
    assert len(set(roots)) == 3
    html = figure.page_html()
    root = re.search(r'class="posembed-root" data-posembed="([\w-]+)"', html)[1]
    assert set(re.findall(r'data-posembed="([\w-]+)"', html)) == {root}


@pytest.mark.slow
def test_a_page_is_the_same_text_on_every_machine(encoder, fresh_environment):
    """From two interpreters, which hash strings and add numbers in other orders."""
    code = f"""
import json, sys, posembed
from posembed.widgets import *
sys.path += [{str(HERE)!r}, {str(HERE.parent)!r}]
from widget_checks import a_run, learned_runs
shuffle = ShuffleFigure(posembed.load_encoder(), {SENTENCE!r})
pages = {{"shuffle": [shuffle.page_html(), shuffle.page_html()]}}
pages |= {{name: [eval(code).page_html()] for name, code in {FIGURES!r}.items()}}
print(json.dumps(pages))
"""
    settings = [{"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2", "ATEN_CPU_CAPABILITY": "default"}]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    runs = [
        subprocess.Popen([sys.executable, "-c", code], env=fresh_environment | each, **options) for each in settings
    ]
    (first, error), (second, other_error) = (run.communicate(timeout=120) for run in runs)
    assert [run.returncode for run in runs] == [0, 0], error + other_error
    assert json.loads(first) == json.loads(second)


def test_an_output_has_a_widget_a_page_and_a_text(figure):
    data, _ = figure._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == figure.model_id
    assert 'class="posembed-root"' in data["text/html"]
    assert data["text/plain"] == f"<{type(figure).__name__}: interactive figure>"
    # Colab's ipywidgets 7 displays a widget by itself unless this is switched off, and the page form would be lost.
    assert figure._ipython_display_ is None


def test_without_javascript_the_lookup_is_a_table_of_the_same_numbers():
    figure = LookupFigure()
    figure.selected = 5
    header, *rows = rows_of(figure)
    assert header == ["id", "one-hot", "column 0", "column 1", "column 2", "column 3", "in the batch"]
    assert [row[0] for row in rows] == [f"{number} {word}" for number, word in enumerate(WORDS)]
    assert [row[1] for row in rows] == ["0", "0", "0", "0", "0", "1", "0", "0"]
    assert [[float(cell) for cell in row[2:6]] for row in rows] == figure.table
    assert [int(row[6]) for row in rows] == [BATCH.count(number) for number in range(len(WORDS))]


def test_without_javascript_the_shuffle_says_what_it_shows(shuffle_figure):
    assert shuffle_figure.words == SENTENCE.split()
    assert (shuffle_figure.order, shuffle_figure.positions, shuffle_figure.causal) == ([0, 1, 2, 3], False, False)
    header, *rows = rows_of(shuffle_figure)
    assert len(header) == 3
    assert [row[1:] for row in rows] == [
        ["moves with its word, unchanged", "unchanged"],
        ["changes"] * 2,
        ["changes where the words before it are no longer the same", "changes"],
    ]


def test_every_fallback_has_a_caption_and_headers(figure):
    html = figure.fallback_html()
    assert "JavaScript" in re.search(r"<caption>(.*?)</caption>", html)[1]
    assert html.count('<th scope="col">') == len(rows_of(figure)[0])


@pytest.mark.parametrize(
    ("kind", "prefix"),
    [
        (widgets.CountingFigure, "pe-count"),
        (widgets.DoseFigure, "pe-chart"),
        (widgets.HelixFigure, "pe-helix"),
        (widgets.ModelsFigure, "pe-models"),
        (widgets.RepairFigure, "pe-repair"),
        (widgets.BiasFigure, "pe-bias"),
        (widgets.ProbeFigure, "pe-probe"),
        (widgets.PropertiesFigure, "pe-property"),
    ],
)
def test_its_own_rules_stand_behind_those_of_all_figures(kind, prefix):
    shared, own = (
        (STATIC / "figure.css").read_text("utf-8"),
        (STATIC / kind.module).with_suffix(".css").read_text("utf-8"),
    )
    css = kind.stylesheet()
    assert kind._css == css and css.startswith(shared) and css.endswith(own) and ".pe-scheme-rope {" in css
    # On a page with other figures their copies of the shared rules may follow: none of its own touches theirs.
    selectors = [part.strip() for part in re.findall(r"^ *([^@{}\n]+?) *\{", own, re.MULTILINE)]
    assert selectors
    assert [each for each in selectors if prefix not in each] == []


def test_a_figure_without_a_fallback_says_so():
    class Bare(InteractiveFigure):
        module, height = "lookup.js", (1, 1)

    assert "Bare must draw a form of itself" in refused(NotImplementedError, Bare().page_html)


def test_the_lookup_batch_teaches_what_it_is_meant_to():
    """A word twice, padding, and words that no gradient reaches."""
    counts = [BATCH.count(number) for number in range(len(WORDS))]
    assert max(counts) == 2
    assert counts[0] == 1
    assert 0 in counts
    assert len(LookupFigure().targets) == len(BATCH)


@pytest.mark.parametrize("sentence", ["I like coding", "I do not like his coding"])
def test_three_to_six_words_fit(encoder, sentence):
    n_words = len(sentence.split())
    layer = ShuffleFigure(encoder, sentence).layer
    n_rows = n_words + n_words**2
    assert (len(layer["logits"]), len(layer["logits"][0]), len(layer["logits"][0][0])) == (12, n_rows, n_rows)
    assert (len(layer["values"]), len(layer["values"][0]), len(layer["values"][0][0])) == (12, n_rows, 16)
    assert len(layer["bias"]) == 16


@pytest.mark.parametrize(
    ("sentence", "pieces"),
    [
        ("I like", ["three to six words", "'I like'", "has 2"]),
        ("I do not like coding very much", ["three to six words", "has 7"]),
        ("I like unbelievableness", ["unbelievableness", "use words that"]),
        ("I like 🥨", ["🥨", "use words that"]),
        ("coding, is antidisestablishmentarianism", ["coding,, antidisestablishmentarianism"]),
    ],
)
def test_a_sentence_that_does_not_fit_is_an_error_that_says_why(encoder, sentence, pieces):
    assert_refused(lambda: ShuffleFigure(encoder, sentence), *pieces)
