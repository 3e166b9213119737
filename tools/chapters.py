"""Run the chapters: see that they print what they store and that their checks hold, or store what they print.

Usage: python tools/chapters.py check [PATH]     strictly compared by nbval, with the checks of tests/book/checks
       python tools/chapters.py execute [PATH]   run and store the outputs, without checks

Both run each notebook as Colab would: in an empty folder, with the wheel that was built from the sources. Both run
without the Hugging Face hub and without checkpoints of this machine: with them some chapters show more tables, and
outputs could not be compared. `make book HUB=yes` runs chapters with what there is.

A chapter that has passed is not run again while it, the package, the pins and Python are the same: `make test` and
`make book` share its run.
"""

import argparse
import contextlib
import hashlib
import importlib.util
import io
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import checks
import nbformat
import yaml

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
BUILD = ROOT / "_build"
WHEEL_SITE = BUILD / "wheel"
# With which instructions PyTorch computes; "" for the best that the processor has.
INSTRUCTIONS = os.environ.get("ATEN_CPU_CAPABILITY", "")
# Of each chapter pytest's report, and what it was made from when it passed.
RUNS = BUILD / "chapters" / INSTRUCTIONS
SANITIZE = ROOT / "tests" / "book" / "nbval_sanitize.cfg"
CELL_SECONDS = 300
# Each kernel takes one core, and up to a gigabyte.
KERNELS = min(os.cpu_count() or 1, 4)
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
    """The environment a chapter runs in: the built wheel first, nothing of this repository, no colours, one thread.

    Args:
        empty: a folder in place of every cache of checkpoints, and no hub; None for both as they are.
    """
    own = {"PYTHONPATH": str(WHEEL_SITE), "PYTHONSAFEPATH": "1", "MPLBACKEND": "", "NO_COLOR": "1"}
    own |= {"OMP_NUM_THREADS": "1"}
    if empty is None:
        return os.environ | own
    alone = {"HF_HUB_OFFLINE": "1"} | dict.fromkeys(("HF_HOME", "POSEMBED_CACHE", "POSEMBED_CHECKPOINTS"), str(empty))
    return {name: value for name, value in os.environ.items() if name not in OWN_CACHES} | own | alone


def fingerprint(*parts):
    """A hash of Python's version and of files, folders and texts: the same again means that there is nothing to do."""
    key = hashlib.sha256(sys.version.encode())
    for part in parts:
        if isinstance(part, str):
            key.update(part.encode())
            continue
        for path in [part] if part.is_file() else sorted(part.rglob("*")):
            name = path.relative_to(ROOT)
            # What tools leave behind, such as .ruff_cache, is no source.
            if path.is_file() and not any(folder.startswith((".", "__pycache__")) for folder in name.parts):
                key.update(name.as_posix().encode() + path.read_bytes())
    return key.hexdigest()


def fingerprints(paths):
    """Of each chapter, with its checks and all that its outputs depend on."""
    folders = [ROOT / name for name in ("posembed", "studies", "requirements")]
    shared = fingerprint(*folders, SANITIZE, ROOT / "tools" / "checks.py")
    own = {path: [part for part in (path, checks.file_of(path)) if part.exists()] for path in paths}
    return {path: fingerprint(shared, *parts) for path, parts in own.items()}


def unexecuted(path):
    """Say which code cells have no stored run: nbval would pass over them without comparing anything."""
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    return [number for number, cell in enumerate(code, 1) if cell.execution_count is None]


def compare(paths):
    """Run chapters under nbval, but those that passed before as they are now.

    Returns:
        For each chapter that does not print what it stores, what nbval said.
    """
    made_from = fingerprints(paths)
    stamps = {path: RUNS / f"{path.stem}.passed" for path in paths}
    to_run = [p for p in paths if not (stamps[p].exists() and stamps[p].read_text() == made_from[p])]
    if len(to_run) < len(paths):
        print(f"chapters: {len(paths) - len(to_run)} of {len(paths)} are as they were when they passed", flush=True)
    if not to_run:
        return {}
    RUNS.mkdir(parents=True, exist_ok=True)
    install_wheel()
    different = {}
    for path, (code, said) in in_parallel(compare_one, to_run, lambda result: "not as stored" if result[0] else ""):
        if code:
            different[path] = said
            stamps[path].unlink(missing_ok=True)
        else:
            stamps[path].write_text(made_from[path])
    return different


def compare_one(path):
    """Run one chapter and its checks under nbval: its exit code, and what it said.

    For a process into which pytest is loaded once.
    """
    import pytest

    report_of(path).unlink(missing_ok=True)
    try:
        notebook = with_checks(path)
    except checks.CheckFileError as error:
        return 1, str(error)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as empty:
        woven = Path(folder) / path.name
        nbformat.write(notebook, woven)
        words = ["-c", os.devnull, "--rootdir", folder, "-p", "no:cacheprovider", "-q", str(woven)]
        words += ["--nbval", "--nbval-current-env", "--nbval-cell-timeout", str(CELL_SECONDS)]
        words += ["--nbval-sanitize-with", str(SANITIZE), "--junit-xml", str(report_of(path))]
        # For the kernel that nbval starts.
        environment = chapter_environment(empty)
        os.environ.clear()
        os.environ.update(environment)
        said = io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = pytest.main(words)
    return int(code), said.getvalue()


def with_checks(path):
    """A chapter as it is run to be compared: its checks stand between its cells."""
    notebook = nbformat.read(path, as_version=4)
    checks.weave(notebook, checks.file_of(path))
    return notebook


def report_of(path):
    """Where pytest's report on a chapter is."""
    return RUNS / f"{path.stem}.xml"


def in_parallel(work, paths, remark=lambda result: ""):
    """Yield each chapter with what `work` gives for it as soon as it is done, and print a line about it."""
    with processes() as pool:
        futures = {pool.submit(timed, work, path): path for path in paths}
        try:
            for number, future in enumerate(as_completed(futures), 1):
                result, seconds = future.result()
                line = f"{number}/{len(paths)} {futures[future].stem} {seconds:.0f} s {remark(result)}"
                print(f"chapters: {line}".rstrip(), flush=True)
                yield futures[future], result
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def processes():
    """As many as there are kernels. Each has loaded what runs chapters once, for all that it runs."""
    return ProcessPoolExecutor(KERNELS, mp_context=multiprocessing.get_context("spawn"))


def timed(work, path):
    """What `work` gives, and the seconds it took."""
    start = time.monotonic()
    return work(path), time.monotonic() - start


def check(notebooks, reports):
    """Compare chapters with what they store; copy the reports of pytest where somebody wants to count."""
    never_run = [f"{path.relative_to(ROOT)} (code cells {unexecuted(path)})" for path in notebooks if unexecuted(path)]
    if never_run:
        sys.exit("chapters: cells that were never run; run `make chapters`: " + ", ".join(never_run))
    different = compare(notebooks)
    for path, said in different.items():
        print(f"\n{path.relative_to(ROOT)}\n{said}")
    if reports:
        for path in (path for path in notebooks if report_of(path).exists()):
            shutil.copy(report_of(path), reports / f"chapter-{path.stem}{INSTRUCTIONS}.xml")
    if different:
        said = "do not print what they store, or a check of theirs fails"
        sys.exit(
            f"chapters: {len(different)} of {len(notebooks)} {said}; it stands above (`make chapters` stores anew)"
        )


def execute(path, *, hub=False, checked=True):
    """Run a chapter, with its checks or without, and return it with its outputs; install the wheel before."""
    from nbclient.exceptions import DeadKernelError

    notebook = with_checks(path) if checked else nbformat.read(path, as_version=4)
    try:
        run_cells(notebook, hub=hub)
    except DeadKernelError:
        raise
    except RuntimeError:  # of two kernels that start at once one may find its port taken, and ends before any cell
        run_cells(notebook, hub=hub)
    checks.unweave(notebook)
    tidy(notebook)
    return notebook


def run_cells(notebook, *, hub):
    """Run the cells of a notebook in place, in a kernel and a folder of their own."""
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as empty:
        client = NotebookClient(
            notebook,
            timeout=CELL_SECONDS,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
            store_widget_state=False,
            coalesce_streams=True,
            # A kernel warns of each connection that is not encrypted; this one never leaves the machine.
            extra_arguments=["--log-level=40"],
        )
        client.execute(env=chapter_environment(None if hub else empty))


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
            forget_live_views(cell)
            store_alt_text(cell)
            fold(cell)


def complain(notebook):
    """A chapter that writes to stderr shows its readers a warning: refuse it."""
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        noise = [output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stderr"]
        if noise:
            sys.exit(f"chapters: a cell writes to stderr:\n{cell.source}\n---\n{''.join(noise)}")


def forget_live_views(cell):
    """Keep a figure's page form alone: a stored view of a widget whose kernel is gone shows an error in JupyterLab."""
    for output in cell.outputs:
        if "text/html" in output.get("data", {}):
            output.data.pop("application/vnd.jupyter.widget-view+json", None)


def fold(cell):
    """What the page folds is folded in JupyterLab and in Colab too."""
    hidden = any(tag.startswith("hide-") for tag in cell.metadata.get("tags", []))
    for name in ("jupyter", "cellView"):
        cell.metadata.pop(name, None)
    if hidden:
        cell.metadata.update(jupyter={"source_hidden": True}, cellView="form")


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


def attempted(path):
    """The chapter with its outputs, or what went wrong in it: the others are stored all the same."""
    from nbclient.exceptions import CellExecutionError

    try:
        return execute(path, checked=False)
    except CellExecutionError as error:
        return str(error)


def store(paths):
    """Run notebooks and store their outputs in them."""
    install_wheel()
    failed = {}
    for path, result in in_parallel(attempted, paths, lambda result: "failed" if isinstance(result, str) else ""):
        if isinstance(result, str):
            failed[path.stem] = result
            continue
        complain(result)
        nbformat.write(result, path)
    if failed:
        sys.exit("\n".join([*failed.values(), f"chapters: a cell fails in {', '.join(failed)}"]))


def main():
    parser = argparse.ArgumentParser(description="Run the chapters of the book.")
    commands = parser.add_subparsers(dest="command", required=True)
    compared = commands.add_parser("check", help="compare a fresh run of chapters with the stored outputs; run checks")
    compared.add_argument("paths", nargs="*", type=Path)
    compared.add_argument("--reports", type=Path, metavar="FOLDER", help="where pytest's reports are copied to")
    stored = commands.add_parser("execute", help="run chapters and store their outputs")
    stored.add_argument("paths", nargs="*", type=Path)
    arguments = parser.parse_args()
    paths = [path.resolve() for path in arguments.paths]
    if unknown := [path for path in paths if path not in chapters()]:
        sys.exit(f"chapters: {unknown[0]} is no chapter; name notebooks that stand in book/_toc.yml")
    if arguments.command == "check":
        check(paths or chapters(), arguments.reports)
    else:
        store(paths or chapters())


if __name__ == "__main__":
    main()
