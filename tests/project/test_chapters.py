"""The tool that runs the chapters: what it refuses, what it keeps, and when it forgets."""

import importlib.util
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """The tool, working on a small book of one chapter in an empty folder."""
    spec = importlib.util.spec_from_file_location("chapters", ROOT / "tools" / "chapters.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, folder in {"ROOT": ".", "BOOK": "book", "BUILD": "_build", "CACHE": "_build/.jupyter_cache"}.items():
        monkeypatch.setattr(module, name, tmp_path / folder)
    monkeypatch.setattr(module, "CACHE_KEY", tmp_path / "_build" / "chapters.key")
    for folder in ("book", "posembed", "requirements"):
        (tmp_path / folder).mkdir()
    (tmp_path / "book" / "_toc.yml").write_text("root: intro\nparts:\n- chapters:\n  - file: intro\n  - file: one\n")
    return module


def write_chapter(tool, *cells):
    path = tool.BOOK / "one.ipynb"
    nbformat.write(new_notebook(cells=list(cells)), path)
    return path


def test_chapters_are_the_notebooks_of_the_table_of_contents(tool):
    path = write_chapter(tool)
    (tool.BOOK / "intro.md").touch()
    assert tool.chapters() == [path]


def test_a_cell_that_was_never_run_fails_the_check(tool):
    ran, never, empty = new_code_cell("1", execution_count=1), new_code_cell("2"), new_code_cell("")
    write_chapter(tool, ran, new_markdown_cell("text"), never, empty)
    with pytest.raises(SystemExit) as error:
        tool.check([])
    assert "never run; run `make chapters`" in str(error.value.code)
    assert "one.ipynb (code cells [2])" in str(error.value.code)


def test_a_cell_that_writes_to_stderr_is_refused(tool):
    cell = new_code_cell("warn()", outputs=[new_output("stream", name="stderr", text="careful\n")])
    with pytest.raises(SystemExit, match="careful"):
        tool.tidy(new_notebook(cells=[cell]))


def test_tidy_keeps_no_traces_of_the_machine(tool):
    cell = new_code_cell("1", metadata={"execution": {"iopub.execute_input": "2026-01-01"}, "tags": ["hide-input"]})
    notebook = new_notebook(
        cells=[cell], metadata={"widgets": {}, "kernelspec": {"name": "mine", "display_name": "Mine"}}
    )
    tool.tidy(notebook)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert cell.metadata == {"tags": ["hide-input"]} and cell.id == "cell-00"


def test_the_alt_text_of_a_figure_is_stored_for_the_book(tool):
    png = new_output("display_data", data={"image/png": ""}, metadata={"image/png": {"alt": "A line."}})
    cell = new_code_cell("draw()", outputs=[png])
    tool.tidy(new_notebook(cells=[cell]))
    assert cell.metadata["mystnb"] == {"image": {"alt": "A line."}}
    cell.outputs = []
    tool.tidy(new_notebook(cells=[cell]))
    assert "mystnb" not in cell.metadata


@pytest.mark.parametrize("changed", ["posembed/new.py", "posembed/static/figure.js", "requirements/lock.txt"])
def test_the_cache_of_runs_is_emptied_when_the_package_or_the_pins_change(tool, changed):
    run = tool.CACHE / "run"
    tool.fresh_cache()
    run.mkdir(parents=True)
    tool.fresh_cache()
    assert run.exists()
    (tool.ROOT / changed).parent.mkdir(exist_ok=True)
    (tool.ROOT / changed).write_text("changed")
    tool.fresh_cache()
    assert not run.exists()
