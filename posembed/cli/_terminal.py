"""What the commands write to: a console that is plain where it is piped, and text that no checkpoint can abuse."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

# The least that the tables need; a narrower terminal wraps by itself.
NARROWEST = 30


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Make the console for results: stdout, without markup, so that no text can pose as a style.

    Example:
        >>> from posembed.cli._terminal import console
        >>> console().width >= 30
        True
    """
    options: Any = {"file": sys.stdout, "markup": False, "highlight": False, "emoji": False}
    made = _Console(**options)
    return made if made.width >= NARROWEST else _Console(**options, width=NARROWEST)


def show(*parts: Any, style: str | None = None, wrap: bool = True) -> None:
    """Print texts and tables one below the other, without the spaces that fill their lines.

    Args:
        parts: texts, or what rich can draw.
        style: of rich, for a terminal that has colours.
        wrap: whether a long line goes on in the next one.

    Example:
        >>> from posembed.cli._terminal import show
        >>> show("[red]stays as it is[/red]")
        [red]stays as it is[/red]
    """
    to_whom = console()
    with to_whom.capture() as drawn:
        for part in parts or ("",):
            to_whom.print(part, style=style, soft_wrap=not wrap)
    print("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def one_line(text: object) -> str:
    r"""Write a text in one line without control characters, which a file's name or a header could bring along.

    Example:
        >>> from posembed.cli._terminal import one_line
        >>> print(one_line("a name\nwith \x1b[2J"))
        a name with \x1b[2J
    """
    words = " ".join(str(text).split())
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in words)


def facts(rows: dict[str, str]) -> Table:
    """Lay out what is known as two columns: what it is, and what it says.

    Example:
        >>> from posembed.cli._terminal import facts, show
        >>> show(facts({"shape": "4 x 2", "offset": "0"}))
        shape   4 x 2
        offset  0
    """
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows.items():
        grid.add_row(name, Text(one_line(value)))
    return grid


def columns(rows: Sequence[tuple[str, str, str]]) -> Table:
    """Lay out names, numbers and pictures; the numbers end in one line.

    Example:
        >>> from posembed.cli._terminal import columns, show
        >>> show(columns([("0 to 63", "0.5", "##"), ("64 to 127", "12.5", "###")]))
        0 to 63     0.5  ##
        64 to 127  12.5  ###
    """
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column()
    grid.add_column(justify="right")
    grid.add_column(no_wrap=True)
    for name, value, picture in rows:
        grid.add_row(Text(one_line(name)), value, picture)
    return grid


def is_plain() -> bool:
    """Whether the output cannot show block letters.

    Example:
        >>> from posembed.cli._terminal import is_plain
        >>> is_plain() in (True, False)
        True
    """
    try:
        "█".encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False


@contextmanager
def progress(doing: str, steps: int | None = None) -> Iterator[Callable[[str], None]]:
    """Show on stderr, where that is a terminal, what is being done; it is gone at the end.

    Args:
        doing: what is being done.
        steps: how many steps there will be, where that is known.

    Yields:
        A function to be called before each step with what it does.

    Example:
        >>> from posembed.cli._terminal import progress
        >>> with progress("starting", 2) as next_step:
        ...     next_step("counting one")
        ...     next_step("counting two")
    """
    to_whom = Console(stderr=True)
    done = itertools.count()
    shown = [SpinnerColumn(), TextColumn("{task.description}", markup=False), *_count(steps), TimeElapsedColumn()]
    with Progress(*shown, console=to_whom, transient=True, disable=not to_whom.is_terminal) as bars:
        task = bars.add_task(one_line(doing), total=steps)
        yield lambda text: bars.update(task, description=one_line(text), completed=next(done))


def _count(steps: int | None) -> list[Any]:
    return [BarColumn(bar_width=16), MofNCompleteColumn()] if steps else []
