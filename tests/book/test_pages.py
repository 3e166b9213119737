"""Every chapter as it is stored: run, described, numbered, with its exercises, and in the table of contents."""

import ast
import itertools
import json
import re
import tomllib

import nbformat
import pytest
import yaml
from prose import BOOK, prose, source
from tool import load

ROOT = BOOK.parent
NOTEBOOKS = sorted(path.relative_to(BOOK).as_posix() for path in BOOK.rglob("*.ipynb") if "checkpoint" not in path.name)
LONGEST_CELL = 20
# Of code that a page shows or folds under "The code", without empty lines.
LONGEST_CHAPTER = 350
# What belongs to one session of a kernel: no other session knows the model, so nothing can show it.
OF_A_SESSION = "application/vnd.jupyter.widget-view+json"


# Pages of the reference part have another form; that of schemes test_scheme_pages.py holds.
CHAPTERS = [name for name in NOTEBOOKS if not name.startswith(("schemes/", "reading-a-config"))]
QUESTION = re.MULTILINE | re.DOTALL
# Chapters with a quick question after each section.
QUESTIONED = [name for name in CHAPTERS if name.startswith(("encodings/", "probing/", "nopos/"))]


@pytest.fixture(params=NOTEBOOKS)
def notebook(request):
    return json.loads((BOOK / request.param).read_text(encoding="utf-8"))


@pytest.fixture(params=CHAPTERS)
def chapter(request):
    return json.loads((BOOK / request.param).read_text(encoding="utf-8"))


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def outputs(notebook):
    return [output for cell in code_cells(notebook) for output in cell["outputs"]]


def text_of(notebook):
    return "\n\n".join(source(cell) for cell in notebook["cells"] if cell["cell_type"] == "markdown")


def headings(notebook):
    """The level and the text of each; what stands in a block of code is none."""
    text = re.sub(r"^```.*?^```", "", text_of(notebook), flags=re.MULTILINE | re.DOTALL)
    return [(len(marks), heading) for marks, heading in re.findall(r"^(#+) +(.+)$", text, re.MULTILINE)]


def shows_something(cell):
    """Whether a cell prints, or ends with a value that is no call, whose value may be None."""
    statements = ast.parse(re.sub(r"^(\s*)%.*$", r"\1pass", source(cell), flags=re.MULTILINE)).body
    if isinstance(statements[-1], ast.Expr) and not isinstance(statements[-1].value, ast.Call):
        return True
    run = [node for node in statements if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    calls = [node for statement in run for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return any(isinstance(call.func, ast.Name) and call.func.id == "print" for call in calls)


def test_every_cell_was_run_in_order(notebook):
    counts = [cell["execution_count"] for cell in code_cells(notebook) if source(cell).strip()]
    assert counts == list(range(1, len(counts) + 1))
    assert not [cell for cell in code_cells(notebook) if not source(cell).strip()]


def test_cells_that_show_something_have_an_output(notebook):
    silent = [source(cell) for cell in code_cells(notebook) if shows_something(cell) and not cell["outputs"]]
    assert silent == []


def test_no_cell_fails_or_warns(notebook):
    assert [output for output in outputs(notebook) if output["output_type"] == "error"] == []
    assert [output for output in outputs(notebook) if output.get("name") == "stderr"] == []


def test_cells_are_short(notebook):
    long = [source(cell) for cell in code_cells(notebook) if len(source(cell).splitlines()) > LONGEST_CELL]
    assert long == []


def visible(notebook):
    """Cells that no fold hides with what they print."""
    return [cell for cell in code_cells(notebook) if "hide-cell" not in cell["metadata"].get("tags", [])]


def only_asserts(statements):
    """Whether all that is done is to assert, once or in a loop."""
    return all(
        isinstance(each, ast.Assert | ast.Import | ast.ImportFrom)
        or (isinstance(each, ast.For) and only_asserts(each.body))
        for each in statements
    )


def test_no_cell_is_there_to_hold_a_sentence(notebook):
    """These stand beside the chapter, in tests/book/checks; what is folded is the reader's, and has a name."""
    assert not [cell for cell in code_cells(notebook) if re.search(r"# (Holds|By definition)\b", source(cell))]
    folded = [source(cell) for cell in code_cells(notebook) if cell not in visible(notebook)]
    assert not [code for code in folded if not code.startswith(tuple(load("cells", BOOK / "_ext").NAMES))]
    assert not [cell for cell in visible(notebook) if only_asserts(ast.parse(source(cell)).body)]


def test_a_chapter_imports_only_what_its_reader_has(notebook):
    """The plans of `studies` stand in the repository and are not installed."""
    imports = re.compile(r"^ *(?:from|import) +(?:studies|tests|tools)\b", re.MULTILINE)
    assert not [source(cell) for cell in code_cells(notebook) if imports.search(source(cell))]


def test_a_chapter_is_no_longer_than_one_reads(notebook):
    lines = [line for cell in visible(notebook) for line in source(cell).splitlines() if line.strip()]
    assert len(lines) <= LONGEST_CHAPTER


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_what_is_said_of_outputs_that_are_not_compared_is_asserted(name):
    """What was trained on the spot has other last digits on another processor; what is said of it must hold there."""
    checks = load("checks")
    notebook = nbformat.read(BOOK / name, as_version=4)
    held = {block.section for block in checks.blocks(checks.file_of(BOOK / name))}
    for title, (first, last, _) in checks.sections(notebook).items():
        cells = notebook.cells[first + 1 : last + 1]
        loose = [cell.source for cell in cells if "nbval-ignore-output" in cell.metadata.get("tags", [])]
        assert title in held or all(re.search(r"^ *assert ", code, re.MULTILINE) for code in loose)


def test_figures_are_described(notebook):
    for cell in code_cells(notebook):
        drawn = [output["metadata"] for output in cell["outputs"] if "image/png" in output.get("data", {})]
        alts = [metadata.get("image/png", {}).get("alt", "") for metadata in drawn]
        assert all(alt.strip() for alt in alts), source(cell)
        # Where the book's renderer reads it.
        stored = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt")
        assert alts in ([stored], []), source(cell)


def test_what_is_shown_has_a_caption_that_says_what_to_see(notebook):
    for cell in code_cells(notebook):
        shown = [output.get("data", {}) for output in cell["outputs"]]
        if any("image/png" in data or "posembed-root" in "".join(data.get("text/html", "")) for data in shown):
            caption = cell["metadata"].get("caption", "")
            assert len(re.findall(r"[.?](?: |$)", caption)) > 1, source(cell)
            # Of Markdown it takes code and formulas alone.
            assert not re.search(r"[*_\[\]]", re.sub(r"`[^`]*`|\$[^$]*\$", "", caption)), source(cell)


def test_interactive_figures_stand_alone(notebook):
    """They are stored as the page that runs by itself, with ids that the next run gives again."""
    pages = [
        "".join(output["data"]["text/html"]) for output in outputs(notebook) if "text/html" in output.get("data", {})
    ]
    ids = [id for page in pages for id in re.findall(r'<div class="posembed-root" data-posembed="([^"]+)"', page)]
    assert len(ids) == len(set(ids)) == sum("posembed-root" in page for page in pages)
    assert all(re.fullmatch(r"pe-[0-9a-f]{8}", id) for id in ids)
    assert [output for output in outputs(notebook) if OF_A_SESSION in output.get("data", {})] == []


def test_ids_and_metadata_are_counted_not_drawn(notebook):
    assert [cell["id"] for cell in notebook["cells"]] == [f"cell-{n:02d}" for n in range(len(notebook["cells"]))]
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert not [cell for cell in notebook["cells"] if "execution" in cell["metadata"]]


def test_first_code_cell_installs_in_colab_only(notebook):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project["urls"]["Repository"].removeprefix("https://github.com/")
    code = source(code_cells(notebook)[0])
    assert f'REPOSITORY = "{repository}"' in code
    guard = code.index('if "google.colab" in sys.modules')
    assert 0 <= guard < code.index(f'%pip install -q "{project["name"]} @ git+https://github.com/{{REPOSITORY}}"')
    assert "%pip" not in "".join(map(source, code_cells(notebook)[1:]))


def test_exercises_have_solutions(chapter):
    text = text_of(chapter)
    exercises = re.findall(r"^:::\{exercise\}[^\n]*\n:label: (\S+)$", text, re.MULTILINE)
    solutions = re.findall(r"^:::\{solution-start\} (\S+)\n:label: (\S+)\n:class: dropdown\n:::$", text, re.MULTILINE)
    assert 2 <= len(exercises) <= 4
    assert [exercise for exercise, _ in solutions] == exercises
    labels = [*exercises, *(label for _, label in solutions)]
    assert len(set(labels)) == len(labels)
    assert text.count(":::{solution-end}") == len(exercises)


def test_headings_go_down_one_level_at_a_time_and_no_two_are_alike(notebook):
    levels = [level for level, _ in headings(notebook)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    # Checks name their section by its title.
    assert len({title for _, title in headings(notebook)}) == len(levels)
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_chapter_ends_with_what_to_remember_and_its_sources(chapter):
    sections = [text for level, text in headings(chapter) if level == 2]
    assert sections[-3:] == ["Exercises", "What to remember", "Sources"]


@pytest.mark.parametrize("name", QUESTIONED)
def test_a_chapter_asks_quick_questions_with_a_choice(name):
    text = prose(name.removesuffix(".ipynb"))
    questions = re.findall(r"^:::\{admonition\} Quick question\n:class: quick-question\n(.*?)^:::$", text, QUESTION)
    assert len(questions) >= 2
    for question in questions:
        answers = re.findall(r"<details><summary>(.+)</summary>\n\n((?:.+\n)+)\n</details>", question)
        assert len(answers) >= 2 and len(answers) == question.count("<details>"), question[:60]


@pytest.mark.parametrize("name", CHAPTERS)
def test_one_option_of_a_quick_question_is_right_and_says_so_first(name):
    """What book/assets/questions.js tells it by, and a reader without scripts."""
    text = prose(name.removesuffix(".ipynb"))
    questions = re.findall(r"^:::\{admonition\} Quick question\n:class: quick-question\n(.*?)^:::$", text, QUESTION)
    assert len(questions) == text.count("quick-question") == text.count("Quick question")
    for question in questions:
        explanations = re.findall(
            r"^<details><summary>.+</summary>\n\n(.+\n(?:.+\n)*)\n</details>$", question, re.MULTILINE
        )
        assert len(explanations) == question.count("<details>") >= 2, question
        # HTML takes no Markdown.
        assert not re.search(r"<summary>.*[`*$].*</summary>", question), question
        firsts = [re.match(r"\W*(\w+\W)", explanation)[1] for explanation in explanations]
        assert sum(first in ("Right.", "Right,", "Right:") for first in firsts) == 1, question
        assert sum(first.startswith(("Right", "right")) for first in firsts) == 1, question


@pytest.mark.parametrize("name", CHAPTERS)
def test_no_two_quick_questions_of_a_chapter_are_one(name):
    """The answers that a browser remembers are found by what is asked."""
    questions = re.findall(r"^:class: quick-question\n(.*?)\n\n", prose(name.removesuffix(".ipynb")), QUESTION)
    assert len(set(questions)) == len(questions)


def test_contents_list_every_chapter_and_nothing_else():
    toc = yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8"))
    entries = [chapter for part in toc["parts"] for chapter in part["chapters"]]
    entries += [section for chapter in entries for section in chapter.get("sections", [])]
    listed = [toc["root"], *(entry["file"] for entry in entries)]
    assert len(set(listed)) == len(listed)
    missing = [file for file in listed if not any((BOOK / f"{file}{end}").is_file() for end in (".ipynb", ".md"))]
    assert missing == []
    unlisted = [name for name in NOTEBOOKS if name.removesuffix(".ipynb") not in listed]
    assert unlisted == []


def test_what_the_page_folds_is_folded_in_jupyterlab_and_colab_too(notebook):
    for cell in code_cells(notebook):
        meta = cell["metadata"]
        folded = any(tag.startswith("hide-") for tag in meta.get("tags", []))
        assert folded == meta.get("jupyter", {}).get("source_hidden", False) == (meta.get("cellView") == "form")
