"""The command ``posembed`` and what all of its commands share: the version, the examples, the exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from . import _doctor, _grid, _probe, _properties, _report, _table, _train
from ._guard import INTERRUPTED, UsageError, guarded, refuse

HELP = (
    "What has a position table learned? Ask any checkpoint, for a few megabytes.\n\n"
    "SOURCE is a hub id (gpt2, facebook/opt-125m), a local checkpoint folder, or a file of weights. A name is looked "
    "up in the folder POSEMBED_CHECKPOINTS, then in the local caches, then on the hub, of which only the table is read."
)
EXAMPLES = (
    "posembed table gpt2  # shape, row health, spectrum",
    "posembed probe gpt2 --rows 512  # is the position readable?",
    "posembed properties bert-base-cased  # three numbers",
    "posembed report gpt2 roberta-base -o two.html  # side by side",
    "posembed train --scheme rope --steps 500  # one small model",
    "posembed grid nopos --preset smoke  # a study of many",
    "posembed doctor  # what is reachable, what runs instead",
)
COMMANDS: dict[Callable[..., None], tuple[str, ...]] = {
    _table.table: _table.EXAMPLES,
    _probe.probe: _probe.EXAMPLES,
    _properties.properties: _properties.EXAMPLES,
    _report.report: _report.EXAMPLES,
    _train.train: _train.EXAMPLES,
    _grid.grid: _grid.EXAMPLES,
    _doctor.doctor: _doctor.EXAMPLES,
}


def _listed(examples: Sequence[str]) -> str:
    # Typer joins lines into paragraphs, and sets paragraphs one below the other.
    return "\n\n".join(["Examples:", *(f"$ {example}" for example in examples)])


app = typer.Typer(
    name="posembed",
    help=HELP,
    epilog=_listed(EXAMPLES),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command, _examples in COMMANDS.items():
    _needs_source = _command is not _doctor.doctor
    app.command(no_args_is_help=_needs_source, epilog=_listed(_examples))(guarded(_command))


def _show_version(wanted: bool) -> bool:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"posembed {version('posembed')}")
        raise typer.Exit
    return wanted


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """The options of the command itself; its help stands in HELP."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit code.

    The code is 0 when all went well, 1 for an error of ours in one line on stderr, 2 for a call that is not
    understood, 130 when it was interrupted.

    Args:
        arguments: the words after the command's name; by default those of this process.

    Raises:
        SystemExit: always; it carries the exit code.

    Example:
        >>> import contextlib, io
        >>> from posembed.cli import main
        >>> with contextlib.redirect_stdout(io.StringIO()) as shown:
        ...     try:
        ...         main(["--version"])
        ...     except SystemExit as end:
        ...         code = end.code
        >>> shown.getvalue()[:9], code
        ('posembed ', 0)
    """
    for stream in (sys.stdout, sys.stderr):
        # A file name may hold what the terminal cannot show; a mark in its place is better than no result.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    words = None if arguments is None else list(arguments)
    try:
        code = app(args=words, prog_name="posembed", standalone_mode=False)
    except UsageError as error:
        code = refuse(error)
    except typer.Abort:
        code = INTERRUPTED
    raise SystemExit(code or 0)
