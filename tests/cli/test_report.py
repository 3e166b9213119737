"""A report is a notebook that was run, and its page; both are written whole or not at all."""

import contextlib
import io
import re

import nbformat
import numpy as np
import pytest
import torch
from bs4 import BeautifulSoup

from posembed import load_table, probe_table, properties
from posembed.cli import main, report
from posembed.probing import spectrum


@pytest.fixture(scope="module")
def made(tmp_path_factory, checkpoint_folder, fresh_environment):
    """The folder of a report: a table that is well, one with a row of NaN, one of a column, and what cannot be read."""
    folder = tmp_path_factory.mktemp("report")
    sources = [checkpoint_folder / "waves", checkpoint_folder / "owner" / "broken", folder / "$no<b>$"]
    sources.append(tmp_path_factory.mktemp("own") / "one.npy")
    np.save(sources[-1], np.random.default_rng(0).normal(size=(48, 1)))
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        patch.setenv("PYTHONPATH", fresh_environment["PYTHONPATH"])
        patch.setenv("COLUMNS", "500")
        patch.chdir(checkpoint_folder)
        with pytest.raises(SystemExit) as end:
            main(["report", "waves", *map(str, sources[1:]), "--rows", "48", "-o", str(folder / "page.html")])
    assert end.value.code == 1
    return folder, said.getvalue().splitlines(), sources[-1]


@pytest.fixture(scope="module")
def page(made):
    return BeautifulSoup((made[0] / "page.html").read_text(encoding="utf-8"), "html.parser")


@pytest.fixture(scope="module")
def notebook(made):
    return nbformat.read(made[0] / "page.ipynb", as_version=4)


def test_what_was_read_is_counted_and_what_was_not_is_a_warning(made):
    folder, lines, _ = made
    # On a busy machine a line every ten seconds says how far it is.
    warning, count = (line for line in lines if " gone" not in line)
    assert warning.startswith("posembed: warning: $no<b>$ could not be read: ")
    assert count == f"{folder / 'page.html'}: 3 of 4 sources could be read; to go on with: {folder / 'page.ipynb'}"
    assert sorted(path.name for path in folder.iterdir()) == ["page.html", "page.ipynb"]


def test_the_page_says_what_the_package_computes(page, checkpoint_folder):
    table = load_table(checkpoint_folder / "waves")
    cells = [cell.get_text() for cell in page.find_all("td")]
    for split in ("even-odd", "half"):
        result = probe_table(table, split=split, rows=48)
        for expected in (
            f"{result.test_mae:.1f} ({result.interval})",
            f"{result.baselines.constant:.1f}",
            f"{result.baselines.random_table:.1f}",
        ):
            assert expected in cells
    measured, spread = properties(table, max_offset=50, rows=48), spectrum(table, rows=48)
    assert {f"{measured.monotonicity:.3f}", f"{measured.translation_invariance:.3f}"} <= set(cells)
    assert {f"{spread.effective_rank:.1f}", f"{spread.helix.period:.1f}", "[40]", "[3]"} <= set(cells)
    assert "0 to 47; the pictures above, all" in cells


def test_what_cannot_be_computed_is_one_line_on_the_page(page):
    unread, left_out = [note.get_text().strip() for note in page.find_all("pre")]
    assert unread.startswith("$no<b>$ could not be read: ") and "\n" not in unread
    assert left_out.startswith("broken is left out from here on: ") and "\n" not in left_out


def test_the_page_stands_alone_without_code_and_describes_its_pictures(page):
    assert page.title.text == "Position tables: waves, broken, $no<b>$, one.npy"
    assert not page.find_all(["script", "link", "iframe", "b"]) and "load_table(" not in page.style.text
    assert not page.select(".input") and "import pandas" not in page.get_text()
    pictures = page.find_all("img")
    # Heat map, row health and cosines of three tables; of two two probes and the spectrum, of one its helix.
    assert len(pictures) == 3 * 3 + 2 * 3 + 1
    assert all(picture["src"].startswith("data:image/png;base64,") for picture in pictures)
    assert all(re.search("waves|broken|one.npy", picture["alt"]) for picture in pictures)
    assert not page.find_all(href=True)


def test_the_notebook_can_be_gone_on_with(notebook, checkpoint_folder, made):
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    names = {}
    exec(first.source, names)
    # As paths that hold wherever it is opened.
    assert names["sources"] == {
        "waves": str(checkpoint_folder / "waves"),
        "broken": str(checkpoint_folder / "owner" / "broken"),
        "$no<b>$": str(made[0] / "$no<b>$"),
        "one.npy": str(made[2]),
    }
    assert (names["options"], names["rows"], names["seed"]) == ({}, 48, 0)
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
    # Cells are short, as in the chapters.
    assert max(len(cell.source.splitlines()) for cell in notebook.cells) <= 25


def test_names_are_short_where_they_differ(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    found = report.labels(["gpt2", "mine", "a/one", "b/one", "gpt2", "."])
    assert found == {
        "gpt2": "gpt2",
        "mine": str(tmp_path / "mine"),
        "a/one": "a/one",
        "b/one": "b/one",
        tmp_path.name: str(tmp_path),
    }
    of_parts = {
        "mine:text": f"{tmp_path / 'mine'}:text",
        "mine:vision": f"{tmp_path / 'mine'}:vision",
        "clip:text": "a/clip:text",
    }
    assert report.labels(["mine:text", "mine:vision", "a/clip:text"]) == of_parts
    (tmp_path / "odd:name").mkdir()
    assert report.divided("odd:name") == ("odd:name", None)


@pytest.fixture
def kernel(monkeypatch):
    """A kernel of which each cell prints what a test says, in a few milliseconds."""

    class Client:
        prints = ""
        raises = None

        def __init__(self, notebook, **_):
            self.notebook = notebook

        def execute(self, **_):
            if self.raises:
                raise self.raises
            cell = next(cell for cell in self.notebook.cells if "sources" in cell.metadata.get("tags", ()))
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=self.prints)]

    monkeypatch.setattr("nbclient.NotebookClient", Client)
    return Client


def test_options_are_passed_on(kernel, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["a/b", "--part", "decoder", "--offset", "0", "--refresh", "--rows", "2:9", "--seed", "7"]
    assert call("report", *words, columns=200) == (
        0,
        "report.html: 1 of 1 sources could be read; to go on with: report.ipynb\n",
        "",
    )
    cell = next(cell for cell in nbformat.read("report.ipynb", as_version=4).cells if cell.cell_type == "code")
    names = {}
    exec(cell.source, names)
    assert names["sources"] == {"b": "a/b"}
    assert names["options"] == {"part": "decoder", "offset": 0, "refresh": True}
    assert (names["rows"], names["seed"]) == (slice(2, 9), 7)


def test_each_source_may_have_its_own_part(kernel, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call("report", "bert", "a/clip:text", "a/clip:vision", "--part", "encoder", columns=200)[0] == 0
    notebook = nbformat.read("report.ipynb", as_version=4)
    parameters, reading = (cell.source for cell in notebook.cells if cell.metadata.get("tags"))
    names, asked = {}, []
    exec(parameters, names)
    monkeypatch.setattr(
        "posembed.load_table", lambda source, **how: asked.append((source, how)) or load_table(torch.eye(3))
    )
    exec(reading, names)
    parts = [("bert", "encoder"), ("a/clip", "text"), ("a/clip", "vision")]
    assert asked == [(source, {"part": part}) for source, part in parts]


def refused(call, tmp_path, output, part):
    before = {path: path.read_text() for path in tmp_path.glob("*.*")}
    code, printed, complained = call("report", "waves", "other", "-o", output)
    (line,) = complained.splitlines()
    assert (code, printed) == (1, "") and line.startswith("posembed: ") and part in line
    assert {path: path.read_text() for path in tmp_path.glob("*.*")} == before


def test_no_report_leaves_an_older_one_as_it_was(kernel, call, tmp_path, monkeypatch):
    from nbclient.exceptions import CellExecutionError

    (tmp_path / "page.html").write_text("older")
    kernel.prints = "a could not be read: why\nb could not be read: therefore\n"
    refused(call, tmp_path, tmp_path / "page.html", "nothing to report: a could not be read: why; b could")
    kernel.prints, kernel.raises = (
        "",
        CellExecutionError("Traceback\n\x1b[31mMemoryError\x1b[39m: full", "MemoryError", "full"),
    )
    refused(call, tmp_path, tmp_path / "page.html", "the notebook stopped: MemoryError: full; report the")
    kernel.raises = None
    monkeypatch.setattr("nbconvert.HTMLExporter.from_notebook_node", lambda *_: ("\N{SNOWMAN}", {}))
    monkeypatch.setattr("pathlib.Path.write_text", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left")))
    refused(call, tmp_path, tmp_path / "page.html", "page.html cannot be made: [Errno 28] No space left")


def test_a_page_that_cannot_be_written_is_refused_before_the_work(kernel, call, tmp_path):
    kernel.raises = AssertionError("the work began")
    refused(call, tmp_path, tmp_path / "missing" / "page.html", "page.html cannot be made: [Errno 2] No such file")
    refused(call, tmp_path, tmp_path / "page.ipynb", "name it FILE.html")
    assert call("report", "waves", "-o", tmp_path)[0] == 2


def test_a_notebook_that_may_have_been_gone_on_with_is_not_replaced(kernel, call, tmp_path):
    page = tmp_path / "page.html"
    assert call("report", "waves", "-o", page)[0] == 0
    refused(call, tmp_path, page, "page.ipynb is there, and may hold your own work; move it")
    (tmp_path / "page.ipynb").unlink()
    assert call("report", "waves", "-o", page)[0] == 0
