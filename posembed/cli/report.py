"""``posembed report``: a notebook about one or more tables, run, and as a page that needs nothing but a browser."""

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from pprint import pformat
from typing import Annotated, Any

import typer

from ..errors import ReportError
from ..progress import say
from .output import one_line, progress, show
from .tables import Rows, Seed, loads_tables

HERE = Path(__file__).parent
# Of a terminal, in what a kernel says.
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@loads_tables
def report(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Hub ids, checkpoint folders, or files of weights; SOURCE:PART for one of several tables.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.html", help="The page.", dir_okay=False, writable=True)
    ] = Path("report.html"),
    rows: Rows = None,
    seed: Seed = 0,
    *,
    how: dict[str, Any],
) -> None:
    """Write a page about one or more tables, side by side, and the notebook that it was made by, to go on with.

    A source that cannot be read is named on the page and on stderr, and the exit code is then 1.

    $ posembed report gpt2 -o report.html

    $ posembed report bert-base-cased roberta-base gpt2 -o three.html

    Of a model with several tables SOURCE:PART says which, and --part which of all the others.

    $ posembed report bert-base-cased openai/clip-vit-base-patch32:text openai/clip-vit-base-patch32:vision
    """
    notebook_file = beside(output)
    given = {option: value for option, value in how.items() if value is not None and value is not False}
    named = {name: divided(source) for name, source in labels(sources).items()}
    parts = {name: {"part": part} for name, (_, part) in named.items() if part}
    places = {name: place for name, (place, _) in named.items()}
    try:
        # Before the work, so that a folder that cannot be written is refused before it.
        with tempfile.TemporaryDirectory(dir=output.parent, prefix=".posembed-") as folder:
            notebook = fill({"sources": places, "parts": parts, "options": given, "rows": rows, "seed": seed})
            refused = execute(notebook, len(named))
            written = write(notebook, Path(folder))
            written[0].replace(notebook_file)
            written[1].replace(output)
    except OSError as error:
        raise ReportError(f"{output} cannot be made: {error}") from None
    for line in refused:
        say(f"warning: {line}")
    count = f"{len(named) - len(refused)} of {len(named)} sources could be read"
    show(one_line(f"{output}: {count}; to go on with: {notebook_file}"))
    raise typer.Exit(1 if refused else 0)


def beside(output: Path) -> Path:
    """Name the notebook's file; one that is there may have been gone on with."""
    if output.suffix.lower() not in (".html", ".htm"):
        raise ReportError(f"{output} is to be the page; name it FILE.html, the notebook is written beside it")
    notebook = output.with_suffix(".ipynb")
    if notebook.exists():
        raise ReportError(f"{notebook} is there, and may hold your own work; move it, or name another FILE.html")
    return notebook


def divided(source: str) -> tuple[str, str | None]:
    """A source, and the part of it that is asked for; what is there under its whole name has none."""
    place, _, part = source.rpartition(":")
    return (place, part) if len(place) > 1 and part.isidentifier() and not Path(source).exists() else (source, None)


def labels(sources: Sequence[str]) -> dict[str, str]:
    """Name each source by the last part of its name, or by all of it where two have the same."""
    # Paths that hold wherever the notebook is opened.
    wholes = {source: divided(source)[0] for source in sources}
    places = [
        f"{Path(whole).resolve()}{source.removeprefix(whole)}" if Path(whole).exists() else source
        for source, whole in wholes.items()
    ]
    short = [Path(place).name for place in places]
    return {name if short.count(name) == 1 else place: place for name, place in zip(short, places, strict=True)}


def fill(values: dict[str, Any]) -> Any:
    """Make a notebook from the template, with these values in the cell that is tagged for them."""
    import nbformat

    notebook = nbformat.read(HERE / "report.ipynb", as_version=4)
    cell = _tagged(notebook, "parameters")
    comment, *_ = cell.source.splitlines()
    lines = [f"{name} = {pformat(value, sort_dicts=False)}" for name, value in values.items()]
    cell.source = "\n".join([comment, *lines])
    notebook.metadata["title"] = f"Position tables: {', '.join(values['sources'])}"
    return notebook


def _tagged(notebook: Any, tag: str) -> Any:
    return next(cell for cell in notebook.cells if tag in cell.metadata.get("tags", ()))


def execute(notebook: Any, n_sources: int) -> list[str]:
    """Run a notebook in a process of its own.

    Returns:
        A line for each source that could not be read, from the cell that is tagged for it.

    Raises:
        ReportError: none could be read, or a cell failed.
    """
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    # The Python of this process, whatever kernels the user has; no bars of downloads on the page.
    kernel = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    environment = os.environ | {"HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    try:
        with progress("running the notebook", len(notebook.cells)) as tell:
            client = NotebookClient(
                notebook, km=kernel, on_cell_start=lambda cell, cell_index: tell("running the notebook", cell_index)
            )
            client.execute(env=environment, stderr=subprocess.DEVNULL)
    except (CellExecutionError, DeadKernelError) as error:
        last = COLOURS.sub("", str(error)).strip().splitlines()[-1]
        raise ReportError(f"the notebook stopped: {last}; report the sources one by one to see which") from None
    printed = [output.text for output in _tagged(notebook, "sources").outputs if output.get("name") == "stdout"]
    refused = "".join(printed).splitlines()
    if len(refused) == n_sources:
        raise ReportError(f"there is nothing to report: {'; '.join(refused)}")
    return refused


def write(notebook: Any, folder: Path) -> tuple[Path, Path]:
    """Write a notebook and its page into a folder; the page holds all that it shows, and no code."""
    import nbformat
    from nbconvert import HTMLExporter
    from traitlets.config import Config

    exporter = HTMLExporter(
        # Of a picture in several forms the one that has its alt text.
        config=Config({"NbConvertBase": {"display_data_priority": ["image/png", "text/html", "text/plain"]}}),
        template_name="basic",
        template_file=str(HERE / "report.html.j2"),
        exclude_input=True,
        exclude_output_prompt=True,
        exclude_input_prompt=True,
        exclude_anchor_links=True,
    )
    page, _ = exporter.from_notebook_node(notebook)
    files = folder / "report.ipynb", folder / "report.html"
    nbformat.write(notebook, files[0])
    files[1].write_text(page, encoding="utf-8")
    return files
