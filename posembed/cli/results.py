"""``posembed results``: the results of a folder or of a study, one line an arm."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.table import Table

from .output import one_line, progress, show

# What is shown of the metrics; --csv has all.
SHOWN = ("loss", "accuracy")


def results(
    source: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder of results, or the name of a study.")],
    against: Annotated[
        str | None, typer.Option(metavar="ARM", help="Show the difference from this arm, paired by seeds.")
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all settings and metrics as CSV, for programs.")] = False,
) -> None:
    """Show the results of a folder or of a study: of each arm the mean over its seeds, and a 95 % interval.

    Runs of one arm differ in their seed alone. Losses are in nats a guessed token.

    $ posembed results results/mine

    $ posembed results encodings --against nopos

    $ posembed results results/mine --csv > mine.csv
    """
    with progress(f"reading {source}"):
        from ..stored import load_results, summary

        table = load_results(source)
    if as_csv:
        typer.echo(table.map(_cell).to_csv(index=False), nl=False)
        return
    metrics = {name: summary(table, metric=name, against=against) for name in SHOWN if f"metrics.{name}" in table}
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("arm", "runs", *metrics):
        drawn.add_column(name.replace("_", " "), overflow="fold")
        if against is not None and name in metrics:
            drawn.add_column(one_line(f"minus {against}"), overflow="fold")
    for arm, runs in table.groupby("arm", sort=False):
        cells = [cell for each in metrics.values() for cell in _cells(each, arm, against)]
        drawn.add_row(one_line(arm), str(len(runs)), *cells)
    show(one_line(f"{len(table)} {'run' if len(table) == 1 else 'runs'} in {source}"), drawn)


def _cells(found: Any, arm: Any, against: str | None) -> list[str]:
    """A mean with its interval; with another arm the difference from it too."""
    names = [("mean", "low", "high")] + [("minus", "minus_low", "minus_high")] * (against is not None)
    if arm not in found.index:
        return [""] * len(names)
    return [_said(*found.loc[arm, list(each)]) for each in names]


def _said(mean: float, low: float, high: float) -> str:
    # NaN is not equal to itself: a single run has no interval. Student's lies evenly about the mean.
    return f"{mean:.4f} ±{(high - low) / 2:.4f}" if low == low else f"{mean:.4f}"


def _cell(value: Any) -> Any:
    """What a cell of CSV holds; lists and mappings are JSON there."""
    return json.dumps(value) if isinstance(value, list | dict) else value
