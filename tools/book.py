"""Build the book, or serve the built one.

Usage: python tools/book.py build [--hub] [--without-solutions]
       python tools/book.py serve [--port 8000]
"""

import argparse
import functools
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import time
import webbrowser
from pathlib import Path

import chapters
import nbformat
import slides
from chapters import BUILD, ROOT
from jupyter_cache import get_cache
from nbclient.exceptions import CellExecutionError
from without_solutions import without_solutions

HTML = BUILD / "html"
# What the built book was made from.
STAMP = BUILD / "book.made-from"
# How Jupyter Book is handed the chapters that were run here: it finds each in this cache, and runs nothing itself.
CACHE = BUILD / ".jupyter_cache"
# The chapter whose slides the part for instructors shows, beside the samples of tools/samples.py.
SAMPLE = "why/permutation-equivariance.ipynb"
# The book as it is built with SOLUTIONS=no.
WITHOUT_SOLUTIONS = BUILD / "without-solutions"


def build(hub, solutions=True):
    """Run the chapters that changed and build the site into _build/html. Warnings are errors.

    Args:
        hub: run all chapters with the hub and the checkpoints that there are, so that readers see what these add.
        solutions: whether pages and downloads show the solutions of exercises.
    """
    if not os.access(ROOT, os.W_OK):
        sys.exit(f"book: cannot write in {ROOT}; clone the project into a folder of your own and run it there")
    start = time.monotonic()
    sources = (chapters.BOOK, ROOT / "posembed", ROOT / "requirements", ROOT / "_config.yml", Path(__file__).parent)
    made_from = chapters.fingerprint(*sources, f"solutions: {solutions}")
    if not hub and (HTML / "index.html").exists() and STAMP.exists() and STAMP.read_text() == made_from:
        print(f"book: {HTML.relative_to(ROOT)} is built from these sources")
        return
    if subprocess.run([sys.executable, "tools/claims.py"], cwd=ROOT).returncode:
        sys.exit("book: nothing was built")
    STAMP.unlink(missing_ok=True)
    with subprocess.Popen([sys.executable, "tools/conformance_page.py", "check"], cwd=ROOT) as conformance:
        notebooks = run_all() if hub else run_changed()
    if conformance.returncode:
        sys.exit("book: nothing was built")
    source = chapters.BOOK if solutions else leave_out_solutions(notebooks)
    hand_over(notebooks)
    print("book: building the pages", flush=True)
    command = [Path(sys.executable).with_name("jupyter-book"), "build", source, "--config", "_config.yml"]
    # All pages each time: Sphinx would miss a changed style sheet, option or docstring.
    command += ["--path-output", ".", "--all", "-W", "-n", "--keep-going", "--quiet"]
    shutil.rmtree(HTML, ignore_errors=True)
    code = subprocess.run(command, cwd=ROOT, env=os.environ | {"NO_COLOR": "1"}).returncode
    if code:
        sys.exit("book: the build failed; the first error stands above")
    slides.write(chapters.BOOK / SAMPLE, HTML / "_static" / "samples" / "slides.html")
    if not hub:
        STAMP.write_text(made_from)
    print(f"book: built in {time.monotonic() - start:.0f} s; open {HTML.relative_to(ROOT)}/index.html or `make serve`")


def run_changed():
    """The chapters as they are stored where a run gives the same, and else as they come out here."""
    notebooks = {path: nbformat.read(path, as_version=4) for path in chapters.chapters()}
    different = chapters.compare(list(notebooks))
    for path in different:
        print(f"book: {path.stem} prints something else here than it stores; the page shows what it prints here")
    return notebooks | run(different)


def run_all():
    """Every chapter with what there is."""
    chapters.install_wheel()
    return run(chapters.chapters(), hub=True)


def run(paths, **options):
    """Run chapters; one that cannot be run to its end ends the build."""
    try:
        return dict(chapters.in_parallel(functools.partial(chapters.execute, **options), list(paths)))
    except CellExecutionError as error:
        sys.exit(f"book: a cell of a chapter fails:\n{error}")


def leave_out_solutions(notebooks):
    """Take the solutions out of these runs, and make a copy of the book that has these."""
    shutil.rmtree(WITHOUT_SOLUTIONS, ignore_errors=True)
    shutil.copytree(chapters.BOOK, WITHOUT_SOLUTIONS)
    for path, notebook in notebooks.items():
        notebook.cells = [nbformat.from_dict(cell) for cell in without_solutions(notebook.cells)]
        nbformat.write(notebook, WITHOUT_SOLUTIONS / path.relative_to(chapters.BOOK))
    return WITHOUT_SOLUTIONS


def hand_over(notebooks):
    """Fill the cache of Jupyter Book with these runs and no others."""
    shutil.rmtree(CACHE, ignore_errors=True)
    cache = get_cache(CACHE)
    with tempfile.TemporaryDirectory() as folder:
        for path, notebook in notebooks.items():
            copy = Path(folder) / path.name
            nbformat.write(notebook, copy)
            cache.cache_notebook_file(copy, check_validity=False, overwrite=True)


def serve(port):
    """Serve the built book on this machine only, until Ctrl-C."""
    if not (HTML / "index.html").exists():
        sys.exit("book: nothing is built yet; run `make book` first")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=HTML)
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError:
        sys.exit(f"book: port {port} is in use or not allowed; name another: make serve PORT={port + 1}")
    address = f"http://127.0.0.1:{port}"
    print(f"book: {address} (Ctrl-C ends it)", flush=True)
    webbrowser.open(address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()


def main():
    parser = argparse.ArgumentParser(description="Build the book, or serve the built one.")
    commands = parser.add_subparsers(dest="command", required=True)
    built = commands.add_parser("build")
    built.add_argument(
        "--hub", action="store_true", help="run all chapters with the hub and what checkpoints there are"
    )
    built.add_argument("--without-solutions", action="store_true", help="leave the solutions of exercises out")
    commands.add_parser("serve").add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    if arguments.command == "build":
        build(arguments.hub, not arguments.without_solutions)
    else:
        serve(arguments.port)


if __name__ == "__main__":
    main()
