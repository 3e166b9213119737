"""What the commands write: JSON for programs, tables for people, progress while either waits."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from .._plain import plain

BLOCKS = "▁▂▃▄▅▆▇█"
# For an output that cannot show blocks.
LETTERS = ".:-=+*#@"
# What errors call the options of the commands.
OPTIONS = "part|revision|name|offset|download|refresh|rows|seed|similarity|max_offset|n_workers"
# Numbers of a list that are shown one by one.
LISTED = 8


def print_json(value: Any) -> None:
    """Print a value as JSON, in ASCII; NaN and infinity, which JSON has not, become null."""
    typer.echo(json.dumps(plain(value), indent=2, allow_nan=False))


def show(*parts: Any, style: str | None = None) -> None:
    """Print texts and tables one below the other, without markup, so that no name can pose as a style."""
    # Read anew each time: the terminal may have been made wider.
    console = Console(markup=False, highlight=False, emoji=False)
    for part in parts:
        console.print(part, style=style)


def one_line(text: object) -> str:
    """Write a text in one line without control characters, which a file's name or a header could bring along."""
    words = " ".join(str(text).split())
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in words)


def facts(rows: Mapping[str, object]) -> Table:
    """Lay out what is known as two columns: what it is, and what it says."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, value in rows.items():
        grid.add_row(name, one_line(value))
    return grid


def listed(numbers: Sequence[int]) -> str:
    """Write numbers in one line, the first few where there are many."""
    more = f" and {len(numbers) - LISTED} more" if len(numbers) > LISTED else ""
    return ", ".join(map(str, numbers[:LISTED])) + more if numbers else "none"


def strip(values: Sequence[float], high: float, choose: Callable[..., float] = max) -> str:
    """Draw numbers from 0 to ``high`` as one line of blocks; where the terminal is narrow, several share one.

    What is not finite is passed over; a block that has nothing else is a question mark.
    """
    console = Console()
    blocks = LETTERS if console.options.ascii_only else BLOCKS
    width = min(len(values), console.width)
    groups = [values[n * len(values) // width : (n + 1) * len(values) // width] for n in range(width)]
    drawn = ""
    for group in groups:
        finite = [value for value in group if math.isfinite(value)]
        share = choose(finite) / high if finite and high > 0 else 0.0
        drawn += blocks[min(7, max(0, math.ceil(8 * share) - 1))] if finite else "?"
    return drawn


@contextmanager
def progress(doing: str, steps: int | None = None) -> Iterator[Callable[..., None]]:
    """Show on stderr, where that is a terminal, what is being done; it is gone at the end.

    Yields:
        A function to be called with what is being done next, and with how many steps are done, where they are counted.
    """
    console = Console(stderr=True)
    count = [BarColumn(bar_width=16), MofNCompleteColumn()] if steps else []
    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), *count, TimeElapsedColumn()]
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task(one_line(doing), total=steps)
        yield lambda text, done=0: bars.update(task, description=one_line(text), completed=done)


def complain(message: str) -> None:
    """Write one line to stderr; advice that is given in Python is put into the options of the commands."""
    message = re.sub(r"(?:call )?load_table\((?:'[^']*'|\.\.\.), (.*?)\)(?=$|[\s;:.])", r"say \1", message)
    message = re.sub(rf",? ?\b({OPTIONS})=(?:True\b)?(?=(\S?))", _as_option, message)
    print(f"posembed: {one_line(message)}", file=sys.stderr)


def _as_option(found: re.Match[str]) -> str:
    before, after = " " if found.start() else "", " " if found[2].strip() else ""
    return f"{before}--{found[1].replace('_', '-')}{after}"
