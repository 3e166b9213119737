"""``posembed results``: the results of a folder, one line a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from .output import one_line, progress, show

# What is shown of the metrics; --csv has all.
SHOWN = ("metrics.loss", "metrics.validation_loss", "metrics.accuracy")


def results(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Of posembed train --out, or of a grid.")],
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all settings and metrics as CSV, for programs.")] = False,
) -> None:
    """Show the results of a folder: of each run the settings in which the runs differ, and its losses.

    $ posembed results results/mine

    $ posembed results results/mine --csv > mine.csv
    """
    with progress(f"reading {folder}"):
        from ..stored import load_results

        table = load_results(folder)
    if as_csv:
        typer.echo(table.map(_cell).to_csv(index=False), nl=False)
        return
    settings = [name for name in table if name.startswith("config.") and table[name].map(str).nunique() > 1]
    if settings:
        table = table.sort_values(
            settings, key=lambda column: column if column.dtype.kind in "iuf" else column.map(str)
        )
    metrics = [name for name in SHOWN if name in table]
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("run", *metrics):
        drawn.add_column(_words(name), overflow="fold")
    for key, row in table.set_index("key").iterrows():
        told = ", ".join(f"{_words(name)} {_said(row[name])}" for name in settings if not _empty(row[name]))
        drawn.add_row(one_line(told or key), *(_said(row[name], ".4f") for name in metrics))
    show(one_line(f"{len(table)} {'run' if len(table) == 1 else 'runs'} in {folder}"), drawn)


def _words(name: str) -> str:
    return name.rpartition(".")[2].replace("_", " ")


def _said(value: Any, form: str = "g") -> str:
    return f"{value:{form}}" if isinstance(value, float) else str(value)


def _empty(value: Any) -> bool:
    # pandas writes nan where a column of numbers has none.
    return value is None or value != value or value in ("", [], {})


def _cell(value: Any) -> Any:
    """What a cell of CSV holds; lists and mappings are JSON there."""
    return json.dumps(value) if isinstance(value, list | dict) else value
