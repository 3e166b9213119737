"""The command ``posembed``: its commands, its version, and how an error ends it."""

import shlex
import signal
import sys
import warnings
from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from ..errors import PosembedError
from ..progress import say
from .audit import audit
from .doctor import doctor
from .report import report
from .results import results
from .tables import probe, properties, table
from .training import grid, train

# What a shell reports for SIGHUP, SIGINT and SIGTERM, and the commands that go on where they were.
INTERRUPTED, LASTING = (129, 130, 143), ("train", "grid")

app = typer.Typer(
    name="posembed",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (table, probe, properties, report, audit, results):
    app.command(no_args_is_help=True)(command)
# The options of a run are those of RunConfig, which takes a second to import; so they are read by an app of its own.
app.command(add_help_option=False, context_settings={"ignore_unknown_options": True})(train)
app.command(no_args_is_help=True)(grid)
app.command()(doctor)


@app.callback(invoke_without_command=True)
def _posembed(version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False) -> None:
    """What has a position table learned? Ask any checkpoint, for a few megabytes.

    SOURCE is a hub id (gpt2, facebook/opt-125m), a local checkpoint folder, or a file of weights. A name is looked up
    in the folder POSEMBED_CHECKPOINTS, then in the local caches, then on the hub, of which only the table is read.

    $ posembed report gpt2 roberta-base -o two.html
    """
    if version:
        typer.echo(f"posembed {installed_version('posembed')}")
        raise typer.Exit


def run(arguments: list[str] | None = None) -> None:
    """Run a command; what a user can cause ends in one line on stderr and an exit code, never in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # A file name may hold what the terminal cannot show; a mark in its place is better than no result.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    words = sys.argv[1:] if arguments is None else arguments
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: say(f"warning: {message}")
            app(words, prog_name="posembed")
    except SystemExit as end:
        if end.code in INTERRUPTED:
            lasting = bool(words) and words[0] in LASTING
            say(f"stopped; go on with: posembed {shlex.join(words)}" if lasting else "stopped")
            if arguments is None:  # as a command: what ends it need not be interrupted once more
                signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise
    except PosembedError as error:
        say(str(error))
    except ImportError as error:
        advice = '`posembed doctor` says what is broken; pip install "posembed[cli]" installs what is missing'
        say(f"a library cannot be imported: {error}; {advice}")
    raise SystemExit(1)
