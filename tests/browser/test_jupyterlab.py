"""The chapters and their figures in JupyterLab, each notebook alone in a folder, as a reader downloads it."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import NamedTuple

import nbformat
import pytest
from playwright.sync_api import expect

from .built import BOOK, figures
from .chromium import HOME, Record

pytestmark = pytest.mark.slow
# JupyterLab starts, a kernel starts, PyTorch is imported: on a busy machine none of it is quick.
PATIENCE = 60
TOKEN = "only-for-this-test"
SETTINGS = {
    # Everything is in the page, also what stands below the window.
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}
LIVE = """
import ipywidgets
from posembed import load_encoder
from posembed.data import load_corpus
from posembed.stored import load_model
from posembed.widgets import LookupFigure, ModelsFigure, ShuffleFigure

models = {name: load_model(name) for name in ("causal-nopos", "causal-rope")}
typed = ModelsFigure(models, load_corpus().vocabulary, "the union")
shuffle, lookup, kernel = ShuffleFigure(load_encoder(), "I do like coding"), LookupFigure(), ipywidgets.Label("waiting")

def report(change):
    kernel.value = f"the kernel has {shuffle.order} and {lookup.selected}"

shuffle.observe(report, "order")
lookup.observe(report, "selected")
"""


class Lab(NamedTuple):
    address: str
    folder: object
    environment: dict


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab of this test's own: its port, its settings, its folder of notebooks."""
    home = tmp_path_factory.mktemp("lab")
    environment = os.environ | {
        "HOME": str(home),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
    }
    write_settings(home / "settings")
    (home / "notebooks").mkdir()
    with started(home, environment) as address:
        yield Lab(address, home / "notebooks", environment)


def write_settings(folder):
    for name, settings in SETTINGS.items():
        path = folder / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings))


@contextlib.contextmanager
def started(home, environment):
    port = free_port()
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}"]
    command += [f"--ServerApp.root_dir={home / 'notebooks'}"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url=None"]
    with (home / "log.txt").open("w") as log:
        server = subprocess.Popen(command, cwd=home, env=environment, stdout=log, stderr=log)
        try:
            wait_for_server(server, f"{HOME}:{port}", home / "log.txt")
            yield f"{HOME}:{port}"
        finally:
            end(server)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_server(server, address, log):
    deadline = time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(f"{address}/api"):
            return
        if server.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-2000:]}", pytrace=False)
        time.sleep(0.1)


def end(server):
    """End the server, which ends its kernels."""
    server.terminate()
    try:
        server.wait(timeout=20)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


@pytest.fixture
def open_notebook(lab, browser):
    """A function that opens a notebook of the lab's folder; an error or a request to another host fails the test."""
    pages, records = [], []

    def open_notebook(name):
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        pages.append(page)
        page.set_default_timeout(PATIENCE * 1000)
        records.append(Record(page))
        page.goto(f"{lab.address}/lab/tree/{name}?token={TOKEN}&reset")
        page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        return page

    yield open_notebook
    for page in pages:
        page.close()
    # JupyterLab's own console is not this book's.
    assert [fault for record in records for fault in (*record.errors, *record.elsewhere)] == []


def put_chapter(lab, name, trusted=True):
    """Copy a chapter into the lab's folder, and nothing else with it."""
    path = lab.folder / f"{'trusted' if trusted else 'new'}-{name.split('/')[-1]}.ipynb"
    notebook = nbformat.read(BOOK / f"{name}.ipynb", as_version=4)
    # Trust goes by content, wherever a notebook lies: the two copies must differ.
    notebook.metadata["title"] = path.stem
    nbformat.write(notebook, path)
    if trusted:
        command = [sys.executable, "-m", "jupyter", "trust", str(path)]
        subprocess.run(command, env=lab.environment, check=True, capture_output=True)
    return path.name


def run_all(page):
    """Run every cell once the kernel is there to do it."""
    page.get_by_text("| Idle").wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


def wait_for_output(page, locator):
    """Wait for what the cells show; an error of a cell ends the waiting."""
    error = page.locator("[data-mime-type='application/vnd.jupyter.error']")
    locator.or_(error).first.wait_for()
    assert error.all_inner_texts() == []


def first_move(page):
    """Move the first word of a shuffle figure by key, and return the words as they then stand."""
    figure = page.locator(".pe-figure:has(.pe-word)").first
    figure.locator(".pe-word").first.focus()
    page.keyboard.press("ArrowRight")
    expect(figure.get_by_role("status")).to_contain_text("do I like coding")
    return figure.locator(".pe-word").all_inner_texts()


def pick_next(page):
    """Go one row down in a lookup figure by key, and return what is then picked."""
    figure = page.locator(".pe-figure:has(.pe-pick)").first
    figure.locator(".pe-pick[aria-pressed=true]").focus()
    page.keyboard.press("ArrowDown")
    expect(figure.get_by_role("status")).to_contain_text("the product is row 3")
    return figure.locator(".pe-pick[aria-pressed=true]").all_inner_texts()


def drive(page):
    """Go to the first figure of a chapter and use it with the keyboard; it says something else then."""
    page.locator(".posembed-root[data-started]").first.scroll_into_view_if_needed()
    page.locator(".pe-figure").first.wait_for()
    if page.locator(".pe-models").count():
        # Its models come from the kernel or from the built book, and neither is here; it says so.
        page.locator(".pe-models").get_by_role("textbox").fill("We hold")
        expect(page.locator(".pe-models").get_by_role("status")).to_contain_text("could not be fetched")
    elif page.locator(".pe-word").count():
        assert first_move(page) == ["do", "I", "like", "coding"]
    elif page.locator(".pe-pick").count():
        assert pick_next(page) == ["3 dog"]
    else:
        figure = page.locator(".pe-figure").first
        before = figure.get_by_role("status").inner_text()
        moved = figure.locator(".pe-property-map, input[type=range]:visible:enabled")
        # A figure without either has a grip.
        (moved if moved.count() else figure.get_by_role("slider")).first.press("ArrowRight")
        expect(figure.get_by_role("status")).not_to_have_text(before)


@pytest.mark.parametrize("name", figures())
def test_trusted_chapter_works_before_it_is_run(lab, open_notebook, name):
    page = open_notebook(put_chapter(lab, name))
    drive(page)


# What is shown then is the same for all figures: the table in front of the script.
@pytest.mark.parametrize("name", figures()[:2])
def test_untrusted_chapter_shows_something_readable(lab, open_notebook, name):
    page = open_notebook(put_chapter(lab, name, trusted=False))
    table = page.locator(".jp-OutputArea-output table:has(caption)")
    table.first.wait_for()
    expect(table.first).to_contain_text("needs JavaScript")


def test_live_figures_reach_the_kernel(lab, open_notebook):
    cells = [nbformat.v4.new_code_cell(source) for source in (LIVE, "shuffle", "lookup", "typed", "kernel")]
    metadata = nbformat.read(BOOK / f"{figures()[0]}.ipynb", as_version=4).metadata
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), lab.folder / "live.ipynb")
    page = open_notebook("live.ipynb")
    run_all(page)
    wait_for_output(page, page.get_by_text("waiting", exact=True))
    assert first_move(page) == ["do", "I", "like", "coding"]
    expect(page.get_by_text("the kernel has [1, 0, 2, 3] and 2")).to_be_visible()
    assert pick_next(page) == ["3 dog"]
    expect(page.get_by_text("the kernel has [1, 0, 2, 3] and 3")).to_be_visible()
    # Models come from the kernel, and read what is typed.
    models = page.locator(".pe-models")
    models.get_by_role("textbox").fill("We hold these truths to b")
    expect(models.get_by_role("status")).to_contain_text("guesses “e”")
