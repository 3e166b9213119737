"""What the commands write: JSON for programs, tables for people, progress while either waits."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..progress import one_line, show_progress
from ..serialization import plain


def print_json(value: Any) -> None:
    """Print a value as JSON, in ASCII; NaN and infinity, which JSON has not, become null."""
    typer.echo(json.dumps(plain(value), indent=2, allow_nan=False))


def show(*parts: Any, style: str | None = None) -> None:
    """Print texts and tables one below the other, without markup, so that no name can pose as a style."""
    console = Console(markup=False, highlight=False, emoji=False)
    for part in parts:
        console.print(part, style=style)


def facts(rows: Mapping[str, str | None]) -> Table:
    """Lay out what is known as two columns: what it is, and what it says; what is None is left out."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, value in rows.items():
        if value is not None:
            grid.add_row(name, one_line(value))
    return grid


@contextmanager
def progress(doing: str, steps: int | None = None) -> Iterator[Callable[..., None]]:
    """Show on stderr what is being done: on a terminal a line that is gone at the end, elsewhere one every ten seconds.

    Yields:
        A function to be called with what is being done next, and with how many steps are done, where they are counted.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        with show_progress(doing, steps) as tell:
            yield tell
        return
    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()]
    columns += [BarColumn(bar_width=16), MofNCompleteColumn()] if steps else []
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(one_line(doing), total=steps)
        yield lambda text, done=0: shown.update(task, description=one_line(text), completed=done)
