"""``posembed doctor``: what is reachable, and what runs instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.table import Table
from rich.text import Text

from . import _options as options
from ._guard import FAILED
from ._output import print_json
from ._terminal import one_line, progress, show

if TYPE_CHECKING:
    from ._checks import Check

STYLES = {"ok": "green", "missing": "yellow", "broken": "bold red"}
EXAMPLES = (
    "posembed doctor",
    "posembed doctor --json",
)


def doctor(as_json: options.AsJson = False) -> None:
    """Say what is installed and reachable, and what runs instead of what is not.

    The exit code is 1 if something is broken that posembed needs.
    """
    with progress("looking around") as next_step:
        from ._checks import all_checks

        checks = []
        for check in all_checks():
            checks.append(check)
            next_step(f"looked at {check.name}")
    working = not any(check.state == "broken" for check in checks)
    if as_json:
        print_json({"ok": working, "checks": [vars(check) for check in checks]})
    else:
        show(_as_grid(checks))
    if not working:
        raise typer.Exit(FAILED)


def _as_grid(checks: list[Check]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(style="bold", max_width=22, overflow="fold")
    grid.add_column(overflow="fold")
    for check in checks:
        # What runs instead belongs to what is missing, so it stands under it.
        said = one_line(check.found) + (f"\n{one_line(check.instead)}" if check.instead else "")
        grid.add_row(Text(check.state, style=STYLES[check.state]), check.name, Text(said))
    return grid
