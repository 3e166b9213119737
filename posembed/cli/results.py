"""``posembed results``: the results of a folder or of a study, one line an arm."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from .output import one_line, progress, show

# What is shown of the metrics; --csv has all.
SHOWN = ("loss", "accuracy")


def results(
    source: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder of results, or the name of a study.")],
    against: Annotated[
        str | None, typer.Option(metavar="ARM", help="Show the difference from this arm (minus), paired by seeds.")
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all settings and metrics as CSV, for programs.")] = False,
) -> None:
    """Show the results of a folder or of a study: of each arm the mean over its seeds, and a 95 % interval.

    Runs of one arm differ in their seed alone. Losses are in nats a guessed token.

    $ posembed results results/mine

    $ posembed results encodings --against nopos

    $ posembed results results/mine --csv > mine.csv
    """
    if as_csv and against:
        raise typer.BadParameter(
            "--csv prints the runs themselves; leave --against out, or --csv", param_hint="--against"
        )
    with progress(f"reading {source}"):
        from ..stored.results import load_results, summary, table_of

        table = load_results(source) if as_csv else table_of(source)
    if as_csv:
        typer.echo(table.map(_cell).to_csv(index=False), nl=False)
        return
    found = {name: summary(table, metric=name, against=against) for name in SHOWN if f"metrics.{name}" in table}
    show(one_line(f"{len(table)} {'run' if len(table) == 1 else 'runs'} in {source}"))
    for name, arms in found.items():
        # No name can pose as a line of its own.
        arms.index = [one_line(arm) for arm in arms.index]
        typer.echo(f"\n{name}\n{arms.round(4).to_string(na_rep='')}")


def _cell(value: Any) -> Any:
    """What a cell of CSV holds; lists and mappings are JSON there."""
    return json.dumps(value) if isinstance(value, list | dict) else value
