"""What stands between a command and the shell: errors in one line, and exit codes."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from ..errors import PosembedError
from ._terminal import one_line

# What errors call the options of the commands.
OPTIONS = ("part", "revision", "name", "offset", "download", "refresh", "rows", "seed")

# Of the parser behind typer, which newer versions carry inside and older ones import.
UsageError: Any = typer.BadParameter.__bases__[0]

FAILED, NOT_UNDERSTOOD = 1, 2
# What a shell reports for a process that SIGINT or SIGPIPE has ended.
INTERRUPTED, NOBODY_READS = 130, 141


def guarded(command: Callable[..., Any]) -> Callable[..., None]:
    """Run a command so that what a user can cause ends in one line on stderr and an exit code, never a traceback.

    Args:
        command: a function with typer's annotations.

    Returns:
        The function with the same signature. It raises ``typer.Exit``: with 1 for a `PosembedError` and for a library
        that cannot be imported, 130 for Ctrl-C, 141 when what read its output has gone.

    Example:
        >>> import typer
        >>> from posembed.cli._guard import guarded
        >>> def stopped():
        ...     raise KeyboardInterrupt
        >>> try:
        ...     guarded(stopped)()
        ... except typer.Exit as end:
        ...     end.exit_code
        130
    """

    @wraps(command)
    def wrapper(*arguments: Any, **options: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = lambda message, *_: complain(f"warning: {message}")
                command(*arguments, **options)
            sys.stdout.flush()
        except PosembedError as error:
            complain(error)
            raise typer.Exit(FAILED) from None
        except ImportError as error:
            complain(f"a library cannot be imported: {error}; `posembed doctor` says which, and what to do")
            raise typer.Exit(FAILED) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _forget_output()
            raise typer.Exit(NOBODY_READS) from None

    return wrapper


def complain(error: PosembedError | str) -> None:
    r"""Write an error to stderr, in one line that begins with the command's name.

    Example:
        >>> from posembed.cli._guard import complain
        >>> complain("two\nlines")  # to stderr: posembed: two lines
    """
    print(f"posembed: {one_line(in_words_of_the_shell(str(error)))}", file=sys.stderr)


def refuse(error: Any) -> int:
    """Say in one line why a call is not understood, and return the exit code; without any words, show the help.

    Args:
        error: a `UsageError`.
    """
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
    else:
        command = error.ctx.command_path if error.ctx else "posembed"
        complain(f"{error.format_message().rstrip('.?')}; see {command} --help")
    return NOT_UNDERSTOOD


def in_words_of_the_shell(message: str) -> str:
    """Turn advice that is given in Python into the options of the commands.

    Example:
        >>> from posembed.cli._guard import in_words_of_the_shell
        >>> in_words_of_the_shell("there are two: load_table('a/b', name='pos.weight', offset=0)")
        "there are two: say --name 'pos.weight' --offset 0"
        >>> in_words_of_the_shell("leave them out with rows=")
        'leave them out with --rows'
    """
    message = re.sub(r"(?:call )?load_table\((?:'[^']*'|\.\.\.), (.*?)\)(?=$|[\s;:.])", r"say \1", message)
    message = re.sub(r"slice\((?:None|(\d+)), (?:None|(\d+)), None\)", r"\1:\2", message)
    return re.sub(rf",? ?\b({'|'.join(OPTIONS)})=(?:True\b)?(\S?)", _as_option, message)


def _as_option(found: re.Match[str]) -> str:
    before = " " if found.start() else ""
    return f"{before}--{found[1]}" + (f" {found[2]}" if found[2] else "")


def _forget_output() -> None:
    # Python flushes stdout once more when it ends, and would complain again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
