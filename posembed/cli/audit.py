"""``posembed audit``: whether a model handles its positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from .output import one_line, print_json, progress, show
from .tables import AsJson

if TYPE_CHECKING:
    from ..auditing import AuditReport

BY_VERDICT = {"broken": "bold red", "holds": "green", "not decided": "yellow", "does not apply": "dim"}


def audit(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A hub id, or a checkpoint folder with its weights.")],
    seed: Annotated[int, typer.Option(help="Of the ids.")] = 0,
    exported: Annotated[bool, typer.Option("--exported", help="Export it as well, which is slow.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check that a model handles its positions: padding, packing, a cache, shifts, windows, half precision.

    The whole model is loaded, and copied in float64. The exit code is 1 where a check is broken, or none holds.

    $ posembed audit gpt2

    $ posembed audit ./my-port --json
    """
    with progress(f"loading {model}") as tell:
        from ..auditing import audit as run
        from ..auditing.models import load_model

        report = run(load_model(model), seed=seed, exported=exported, progress=lambda text, done: tell(one_line(text)))
    if as_json:
        print_json({"source": model, "passed": report.passed} | report.to_dict())
    else:
        show(report.summary, style="bold")
        show(_table(report))
        for each in report.broken:
            show(f"\n# {each.check}\n{each.script}" if each.script else "")
    if not report.passed:
        raise typer.Exit(1)


def _table(report: AuditReport) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for name, verdict, error, told in report.rows():
        grid.add_row(name, Text(verdict, BY_VERDICT[verdict]), error, one_line(told))
    return grid
