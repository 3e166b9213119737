"""Build the book, or serve the built one.

Usage: python tools/book.py build
       python tools/book.py serve [--port 8000]
"""

import argparse
import functools
import http.server
import importlib.util
import os
import shutil
import subprocess
import sys
import time
import webbrowser
from pathlib import Path

from chapters import BUILD, ROOT, fresh_cache

HTML = BUILD / "html"
# What of MathJax the pages use; the rest of its package (SVG output, speech) is ten times larger.
MATHJAX = ("tex-mml-chtml.js", "output/chtml/fonts/woff-v2", "a11y", "sre", "input/tex/extensions", "ui")


def build():
    """Execute what changed and build the site into _build/html. Warnings are errors."""
    if not os.access(ROOT, os.W_OK):
        sys.exit(f"book: cannot write in {ROOT}; clone the project into a folder of your own and run it there")
    start = time.monotonic()
    if subprocess.run([sys.executable, "tools/conformance_page.py", "check"], cwd=ROOT).returncode:
        sys.exit("book: nothing was built")
    copy_mathjax()
    fresh_cache()
    command = [Path(sys.executable).with_name("jupyter-book"), "build", "book", "--config", "_config.yml"]
    # All pages each time: Sphinx would miss a changed style sheet, option or docstring. Runs of chapters are kept.
    command += ["--path-output", ".", "--all", "-W", "-n", "--keep-going", "--quiet"]
    shutil.rmtree(HTML, ignore_errors=True)
    code = subprocess.run(command, cwd=ROOT, env=os.environ | {"NO_COLOR": "1"}).returncode
    if code:
        sys.exit("book: the build failed; the first error stands above")
    print(f"book: built in {time.monotonic() - start:.0f} s; open {HTML.relative_to(ROOT)}/index.html or `make serve`")


def copy_mathjax():
    """Put MathJax beside the book's own assets, from its package: pages load nothing from another host."""
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        sys.exit("book: sphinx-mathjax-offline is not installed; run `make setup`")
    source = Path(spec.origin).parent / "static" / "mathjax"
    target = BUILD / "assets" / "mathjax"
    shutil.rmtree(target, ignore_errors=True)
    for name in MATHJAX:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (source / name).is_dir() else shutil.copy
        copy(source / name, target / name)


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
    commands.add_parser("build")
    commands.add_parser("serve").add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    build() if arguments.command == "build" else serve(arguments.port)


if __name__ == "__main__":
    main()
