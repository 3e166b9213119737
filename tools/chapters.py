"""Run the chapters: check that they print what is stored, or store what they print.

Usage: python tools/chapters.py check            every chapter, strictly compared by nbval
       python tools/chapters.py execute [PATH]   run and store the outputs, of all chapters or of those named

Both run each notebook as Colab would: in an empty folder, with the wheel that was built from the sources. Both run
without the Hugging Face hub and without checkpoints of this machine: with them some chapters show more tables, and
outputs could not be compared. `make book` runs chapters with what there is.
"""

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
import yaml

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
BUILD = ROOT / "_build"
WHEEL_SITE = BUILD / "wheel"
CACHE = BUILD / ".jupyter_cache"
CACHE_KEY = BUILD / "chapters.key"
CELL_SECONDS = 300
# Names that take precedence over HF_HOME.
OWN_CACHES = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE", "HF_ENDPOINT")


def chapters():
    """List the notebooks of the table of contents, in reading order."""
    toc = yaml.safe_load((BOOK / "_toc.yml").read_text())
    pages = [page for part in toc["parts"] for chapter in part["chapters"] for page in _with_sections(chapter)]
    return [path for page in pages if (path := BOOK / f"{page}.ipynb").exists()]


def _with_sections(entry):
    return [entry["file"], *(page for section in entry.get("sections", []) for page in _with_sections(section))]


def install_wheel():
    """Build the wheel and unpack it into a folder of its own, which stands before everything else on the path."""
    shutil.rmtree(WHEEL_SITE, ignore_errors=True)
    # With the build tools at hand no second environment is fetched for them.
    isolated = ["--no-build-isolation"] if importlib.util.find_spec("hatch_vcs") else []
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, *isolated, "--target", WHEEL_SITE, ROOT], check=True)


def chapter_environment(empty):
    """The environment a chapter runs in: the built wheel first, nothing of this repository, no colours, no hub, and an
    empty folder in place of every cache of checkpoints.
    """
    alone = {"HF_HUB_OFFLINE": "1"} | dict.fromkeys(("HF_HOME", "POSEMBED_CACHE", "POSEMBED_CHECKPOINTS"), str(empty))
    plain = {"PYTHONPATH": str(WHEEL_SITE), "PYTHONSAFEPATH": "1", "MPLBACKEND": "", "NO_COLOR": "1"}
    return {name: value for name, value in os.environ.items() if name not in OWN_CACHES} | alone | plain


def unexecuted(path):
    """Say which code cells have no stored run: nbval would pass over them without comparing anything."""
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    return [number for number, cell in enumerate(code, 1) if cell.execution_count is None]


def check(extra):
    """Run every chapter under nbval and compare its outputs with the stored ones."""
    notebooks = chapters()
    never_run = [f"{path.relative_to(ROOT)} (code cells {unexecuted(path)})" for path in notebooks if unexecuted(path)]
    if never_run:
        sys.exit("chapters: cells that were never run; run `make chapters`: " + ", ".join(never_run))
    install_wheel()
    with tempfile.TemporaryDirectory() as folder:
        copies = [copy_alone(path, Path(folder)) for path in notebooks]
        command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", folder, "-p", "no:cacheprovider"]
        command += ["--nbval", "--nbval-current-env", "--nbval-cell-timeout", str(CELL_SECONDS)]
        command += ["--nbval-sanitize-with", str(ROOT / "tests" / "book" / "nbval_sanitize.cfg")]
        command += ["-n", "2", "--dist", "loadfile", "-q", *extra, *map(str, copies)]
        (Path(folder) / "empty").mkdir()
        code = subprocess.run(command, cwd=folder, env=chapter_environment(Path(folder) / "empty")).returncode
    if code == 0:
        remember(notebooks)
    return code


def copy_alone(path, folder):
    """A copy of the notebook in a folder with nothing else in it."""
    home = folder / path.stem
    home.mkdir()
    return Path(shutil.copy(path, home))


def fresh_cache():
    """Empty the cache of executed chapters when the package, the pins or Python have changed since it was filled.

    Jupyter Book's cache compares the cells of a notebook alone; it would miss that the package they import is another.
    """
    key = hashlib.sha256(sys.version.encode())
    for path in [*sorted((ROOT / "posembed").rglob("*")), *sorted((ROOT / "requirements").glob("*"))]:
        if path.is_file() and "__pycache__" not in path.parts:
            key.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    if not CACHE_KEY.exists() or CACHE_KEY.read_text() != key.hexdigest():
        shutil.rmtree(CACHE, ignore_errors=True)
        BUILD.mkdir(exist_ok=True)
        CACHE_KEY.write_text(key.hexdigest())


def remember(notebooks):
    """Hand the chapters to the book's cache: nbval has just shown that a run gives what they store."""
    from jupyter_cache import get_cache

    fresh_cache()
    cache = get_cache(CACHE)
    for path in notebooks:
        cache.cache_notebook_file(path, check_validity=False, overwrite=True)


def execute(paths):
    """Run notebooks and store their outputs in them."""
    from nbclient import NotebookClient

    install_wheel()
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as empty:
            resources = {"metadata": {"path": folder}}
            client = NotebookClient(
                notebook,
                timeout=CELL_SECONDS,
                kernel_name="python3",
                resources=resources,
                store_widget_state=False,
                coalesce_streams=True,
                extra_arguments=["--log-level=40"],
            )
            client.execute(env=chapter_environment(empty))
        tidy(notebook)
        nbformat.write(notebook, path)
        print(f"chapters: stored {path.relative_to(ROOT)}", flush=True)


def tidy(notebook):
    """Keep what readers and comparisons need: counted ids, alt texts where Sphinx looks, no timings, no machine."""
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number:02d}"
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            complain(cell)
            forget_live_views(cell)
            store_alt_text(cell)


def complain(cell):
    """A chapter that writes to stderr shows its readers a warning: refuse it."""
    noise = [output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stderr"]
    if noise:
        sys.exit(f"chapters: a cell writes to stderr:\n{cell.source}\n---\n{''.join(noise)}")


def forget_live_views(cell):
    """Keep a figure's page form alone: a stored view of a widget whose kernel is gone shows an error in JupyterLab."""
    for output in cell.outputs:
        if "text/html" in output.get("data", {}):
            output.data.pop("application/vnd.jupyter.widget-view+json", None)


def store_alt_text(cell):
    """Copy the figure's alt text to the place where the book's renderer reads it."""
    alts = [
        output.metadata["image/png"]["alt"]
        for output in cell.outputs
        if "image/png" in output.get("data", {}) and "alt" in output.metadata.get("image/png", {})
    ]
    cell.metadata.pop("mystnb", None)
    if alts:
        cell.metadata["mystnb"] = {"image": {"alt": alts[0]}}


def main():
    parser = argparse.ArgumentParser(description="Run the chapters of the book.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="compare a fresh run of every chapter with the stored outputs")
    commands.add_parser("execute", help="run chapters and store their outputs").add_argument(
        "paths", nargs="*", type=Path
    )
    arguments, extra = parser.parse_known_args()
    if arguments.command == "check":
        sys.exit(check(extra))
    execute([path.resolve() for path in arguments.paths] or chapters())


if __name__ == "__main__":
    main()
