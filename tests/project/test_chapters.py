"""The tools that run the chapters: what they refuse, what they keep, and when they run a chapter again."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import DeadKernelError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from refusals import refused
from tool import TOOLS, load


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """The tool, working on a small book of one chapter in an empty folder."""
    module = load("chapters")
    folders = {"ROOT": ".", "BOOK": "book", "BUILD": "_build", "RUNS": "_build/chapters", "SANITIZE": "book/_toc.yml"}
    for name, folder in folders.items():
        monkeypatch.setattr(module, name, tmp_path / folder)
    for name, folder in {"ROOT": ".", "BOOK": "book", "CHECKS": "checks"}.items():
        monkeypatch.setattr(module.checks, name, tmp_path / folder)
    monkeypatch.setattr(module, "processes", lambda: ThreadPoolExecutor(1))
    for folder in ("book", "checks", "posembed", "studies", "requirements"):
        (tmp_path / folder).mkdir()
    (tmp_path / "book" / "_toc.yml").write_text("root: intro\nparts:\n- chapters:\n  - file: intro\n  - file: one\n")
    return module


def write_chapter(tool, *cells):
    path = tool.BOOK / "one.ipynb"
    nbformat.write(new_notebook(cells=list(cells)), path)
    return path


@pytest.fixture
def runs(tool, monkeypatch):
    """The chapters that were run. One that says `raise` in a cell does not print what it stores."""
    found = []

    def compare_one(path):
        found.append(path)
        tool.report_of(path).write_text("report")
        return int("raise" in path.read_text()), "2 is not 1"

    monkeypatch.setattr(tool, "install_wheel", lambda: None)
    monkeypatch.setattr(tool, "compare_one", compare_one)
    return found


def test_a_cell_that_was_never_run_fails_the_check_of_the_chapters_in_the_table_of_contents(tool):
    ran, never, empty = new_code_cell("1", execution_count=1), new_code_cell("2"), new_code_cell("")
    path = write_chapter(tool, ran, new_markdown_cell("text"), never, empty)
    (tool.BOOK / "intro.md").touch()
    (tool.BOOK / "draft.ipynb").touch()
    assert tool.chapters() == [path]
    with pytest.raises(SystemExit, match=r"never run; run `make chapters`: book/one.ipynb \(code cells \[2\]\)"):
        tool.check(tool.chapters(), None)


@pytest.mark.parametrize(
    "changed",
    ["posembed/new.py", "posembed/static/figure.js", "studies/new.py", "requirements/lock.txt", "checks/one.py"],
)
def test_a_chapter_that_passed_runs_again_only_when_what_it_depends_on_changes(tool, runs, changed, capsys):
    path = write_chapter(tool, new_code_cell("1", execution_count=1))
    tool.check(tool.chapters(), None)
    tool.check(tool.chapters(), None)
    assert runs == [path]
    assert "chapters: 1 of 1 are as they were when they passed" in capsys.readouterr().out
    (tool.ROOT / "posembed" / ".ruff_cache").mkdir()
    (tool.ROOT / "posembed" / ".ruff_cache" / "0").touch()
    tool.check(tool.chapters(), None)
    assert runs == [path]
    (tool.ROOT / changed).parent.mkdir(exist_ok=True)
    (tool.ROOT / changed).write_text("changed")
    tool.check(tool.chapters(), None)
    write_chapter(tool, new_code_cell("2", execution_count=1))
    tool.check(tool.chapters(), None)
    assert len(runs) == 3


def test_a_chapter_that_prints_something_else_fails_the_check_and_runs_again(tool, runs, capsys, tmp_path):
    write_chapter(tool, new_code_cell("raise", execution_count=1))
    for n_runs in (1, 2):
        message = "1 of 1 do not print what they store, or a check of theirs fails"
        assert message in refused(SystemExit, tool.check, tool.chapters(), tmp_path)
        assert len(runs) == n_runs
    out = capsys.readouterr().out
    assert "chapters: 1/1 one 0 s not as stored\n" in out and "2 is not 1" in out
    assert (tmp_path / "chapter-one.xml").read_text() == "report"


def test_a_chapter_is_compared_with_its_checks_and_stored_without_them(tool, monkeypatch):
    path = write_chapter(tool, new_markdown_cell("# One"), new_code_cell("1", execution_count=1))
    (tool.ROOT / "checks" / "one.py").write_text("# %% One\nassert True\n")
    ran = []
    monkeypatch.setattr(tool, "run_cells", lambda notebook, hub: ran.append(len(notebook.cells)))
    # What the book shows is not always compared, so its checks run where it is executed.
    assert [len(made.cells) for made in (tool.execute(path), tool.attempted(path))] == [2, 2]
    assert ran == [4, 2] and len(tool.with_checks(path).cells) == 4


def test_checks_without_their_section_fail_the_chapter_in_one_line(tool):
    path = write_chapter(tool, new_markdown_cell("# One"), new_code_cell("1", execution_count=1))
    (tool.ROOT / "checks" / "one.py").write_text("# %% Two\nassert True\n")
    tool.RUNS.mkdir(parents=True)
    assert tool.compare_one(path) == (1, "checks/one.py:1: the chapter has no section 'Two'")


def test_a_chapter_runs_without_the_hub_and_without_the_readers_checkpoints_unless_asked(tool, monkeypatch):
    for name in ("HF_HUB_CACHE", "POSEMBED_CHECKPOINTS"):
        monkeypatch.setenv(name, "/home/reader")
    alone = tool.chapter_environment(Path("/empty"))
    assert "HF_HUB_CACHE" not in alone
    assert (alone["POSEMBED_CHECKPOINTS"], alone["HF_HUB_OFFLINE"]) == ("/empty", "1")
    with_hub = tool.chapter_environment(None)
    assert with_hub["HF_HUB_CACHE"] == with_hub["POSEMBED_CHECKPOINTS"] == "/home/reader"
    assert with_hub["PYTHONPATH"] == alone["PYTHONPATH"] == str(tool.WHEEL_SITE)


@pytest.mark.parametrize(
    ("errors", "calls"),
    [
        ([RuntimeError("Kernel died before replying to kernel_info")], 2),
        ([RuntimeError("Kernel died before replying to kernel_info")] * 2, 2),
        ([DeadKernelError("Kernel died")], 1),
    ],
)
def test_a_kernel_that_did_not_start_is_started_once_more(tool, monkeypatch, errors, calls):
    path, left, seen = write_chapter(tool, new_code_cell("1")), list(errors), []

    def run_cells(notebook, *, hub):
        seen.append(notebook)
        if left:
            raise left.pop(0)

    monkeypatch.setattr(tool, "run_cells", run_cells)
    with nullcontext() if len(errors) < calls else pytest.raises(RuntimeError):
        tool.execute(path)
    assert len(seen) == calls


def test_the_book_shows_what_a_chapter_prints_here_where_that_is_something_else(tool, monkeypatch, capsys):
    monkeypatch.syspath_prepend(TOOLS)
    book, path = load("book"), write_chapter(tool, new_code_cell("1", execution_count=1))
    fresh = new_notebook(cells=[new_code_cell("1", outputs=[new_output("stream", text="fresh")])])
    monkeypatch.setattr(book, "chapters", tool)
    monkeypatch.setattr(tool, "execute", lambda path: fresh)
    monkeypatch.setattr(tool, "compare", lambda paths: {})
    assert book.run_changed()[path].cells[0].outputs == []
    monkeypatch.setattr(tool, "compare", lambda paths: {path: "2 is not 1"})
    assert book.run_changed() == {path: fresh}
    assert "book: one prints something else here than it stores" in capsys.readouterr().out


def test_what_is_stored_has_alt_texts_and_no_traces_of_the_machine_and_no_warnings(tool):
    cell = new_code_cell("1", metadata={"execution": {"iopub.execute_input": "2026-01-01"}, "tags": ["hide-input"]})
    png = new_output("display_data", data={"image/png": ""}, metadata={"image/png": {"alt": "A line."}})
    cell.outputs = [png]
    notebook = new_notebook(cells=[cell], metadata={"widgets": {}, "kernelspec": {"name": "mine", "display_name": "M"}})
    tool.tidy(notebook)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    # Where the book's renderer reads the alt text of a figure, and where JupyterLab and Colab read what is folded.
    folded = {"jupyter": {"source_hidden": True}, "cellView": "form"}
    assert cell.metadata == {"tags": ["hide-input"], "mystnb": {"image": {"alt": "A line."}}, **folded}
    assert cell.id == "cell-00"
    tool.complain(notebook)
    cell.outputs = [new_output("stream", name="stderr", text="careful\n")]
    with pytest.raises(SystemExit, match="careful"):
        tool.complain(notebook)
