"""Checks beside a chapter: how they are read, where they run, and what a chapter sees of them."""

import sys

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from refusals import refused
from tool import load
from traitlets.config import Config

CHAPTER = [
    new_markdown_cell("# A chapter\n\nThree is odd.\n\n```python\n# no heading\n```"),
    new_code_cell("import random\n\nimport torch\n\nrandom.seed(0)\ntorch.manual_seed(0)\nx = 3"),
    new_markdown_cell("## Even and odd"),
    new_code_cell("x = 4\ny = 2 * x"),
    new_code_cell("x = 5\nmine = {name for name in globals() if name.startswith('of_check')}"),
    new_markdown_cell("What follows is empty.\n\n## Empty\n\n## The end\n\n```{code} python\nx = 6\n```"),
    new_code_cell("drawn = random.random(), float(torch.rand(()))"),
]


@pytest.fixture
def tool(tmp_path, monkeypatch):
    module = load("checks")
    for name, folder in {"ROOT": "", "BOOK": "book", "CHECKS": "tests/book/checks"}.items():
        monkeypatch.setattr(module, name, tmp_path / folder)
    module.file_of(tmp_path / "book" / "one.ipynb").parent.mkdir(parents=True)
    return module


@pytest.fixture
def woven(tool):
    """Gives the chapter with these checks between its cells."""

    def weave(text):
        path = tool.CHECKS / "one.py"
        path.write_text(text)
        notebook = nbformat.from_dict(new_notebook(cells=CHAPTER))
        tool.weave(notebook, path)
        return notebook

    return weave


def run(notebook):
    """The names of the chapter after a run, or the error that ended it."""
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            shell.run_cell(cell.source).raise_error()
    return shell.user_ns


def test_checks_see_the_chapter_and_earlier_checks_and_the_chapter_sees_nothing_of_them(woven):
    checks = """\
# %% A chapter
of_check, y, seen = x, "another", []
def of_check_too():
    return x
random.seed(7), torch.manual_seed(7)
# %% Even and odd > y
assert (x, y) == (4, 8) and of_check == 3 and of_check_too() == 4
of_check = 9
# %% Even and odd
assert x == 5 and of_check == 9
seen.append("the section's end")
# %% Empty
assert seen == ["the section's end"] and "drawn" not in globals()
seen.append("no cell of code")
# %% The end
assert len(seen) == 2 and torch.rand(()) != torch.rand(())
"""
    names = run(woven(checks))
    assert names["mine"] == set() and names["y"] == 8 and "run_block" not in names
    assert names["drawn"] == run(new_notebook(cells=CHAPTER))["drawn"]


def test_checks_may_ask_a_studys_plan_and_the_chapter_has_none(tool, woven, monkeypatch):
    for name in [each for each in sys.modules if each.partition(".")[0] == "studies"]:
        monkeypatch.delitem(sys.modules, name)
    (tool.ROOT / "studies.py").write_text("SEEDS = (1, 2)\n")
    path = list(sys.path)
    run(woven("# %% A chapter\nimport studies\nassert studies.SEEDS == (1, 2)\n# %% The end\nassert studies.SEEDS\n"))
    assert "studies" not in sys.modules and sys.path == path


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (
            'assert x == 3\n# Holds: "Three is\n# odd."\nassert x % 2 == 0, "even"',
            r":5 fails, which holds 'Three is odd\.': AssertionError: even",
        ),
        ("assert not x", r":2 fails: AssertionError: $"),
        ("unknown", ":2 fails: NameError: name 'unknown' is not defined"),
        ("x = = 3", ":2 fails: SyntaxError: invalid syntax"),
    ],
)
def test_a_check_that_fails_names_its_file_its_line_and_the_sentence(woven, block, message, capsys):
    with pytest.raises(AssertionError, match=f"^tests/book/checks/one.py{message}"):
        run(woven(f"# %% A chapter\n{block}\n"))
    # The traceback shows the line.
    assert "tests/book/checks/one.py" in capsys.readouterr().out


def test_what_a_check_prints_is_no_output_of_the_chapter(tool, woven):
    """Its cell has a number, so nbval compares it, and no output: printing anything fails."""
    notebook = woven("# %% A chapter\nprint(x)\n")
    own = [cell for cell in notebook.cells if "run_block" in cell.source]
    assert len(own) == 2 and all(cell.execution_count is not None and cell.outputs == [] for cell in own)
    tool.unweave(notebook)
    assert [cell.source for cell in notebook.cells] == [cell.source for cell in CHAPTER]
    assert [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# %% Another\n", ":1: the chapter has no section 'Another'"),
        ("# %% Empty\nx\n\n# %% Even and odd > z\n", ":4: from section 'Even and odd' on no cell assigns 'z'"),
        ("x = 1\n# %% Empty\n", ":1: what stands before the first `# %%` would never run"),
        ("# %%\nassert True\n", ":1: a block begins with `# %% Title of a section`"),
        ("# %% Empty\n# Holds 'another sign'\n", ':1: a comment of this block quotes nothing: write `# Holds: "..."`'),
    ],
)
def test_a_file_that_does_not_fit_its_chapter(tool, woven, text, message):
    assert refused(tool.CheckFileError, woven, text) == f"tests/book/checks/one.py{message}"


def test_quotes(tool):
    path = tool.CHECKS / "one.py"
    definition = '    # By definition in What "odd" is: two: "Two: it is."'
    path.write_text(f'# %% Empty\n# Holds: "One\n# line."\nfor x in y:\n{definition}\n    pass\n')
    (block,) = tool.blocks(path)
    assert [(quote.word, quote.section, quote.text, quote.line) for quote in block.quotes] == [
        ("Holds", "Empty", "One line.", 2),
        ("By definition", 'What "odd" is: two', "Two: it is.", 5),
    ]
