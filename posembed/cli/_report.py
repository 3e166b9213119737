"""``posembed report``: one page about one or more tables, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import _options as options
from ._guard import FAILED, complain
from ._terminal import one_line, progress, show

EACH = " Once for all sources, or once for each."
EXAMPLES = (
    "posembed report gpt2 -o report.html",
    "posembed report bert-base-cased roberta-base gpt2 -o three.html",
    "posembed report openai/whisper-tiny openai/whisper-tiny --part encoder --part decoder -o whisper.html",
)


def report(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help=options.SOURCE_HELP, show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page.", rich_help_panel=options.HOW_SHOWN)
    ] = Path("report.html"),
    label: Annotated[
        list[str] | None,
        typer.Option(help="A name on the page, once for each source.", rich_help_panel=options.HOW_SHOWN),
    ] = None,
    rows: options.Rows = None,
    seed: options.Seed = 0,
    part: Annotated[
        list[str] | None, typer.Option(help=options.PART_HELP + EACH, rich_help_panel=options.HOW_FOUND)
    ] = None,
    revision: Annotated[
        list[str] | None, typer.Option(help=options.REVISION_HELP + EACH, rich_help_panel=options.HOW_FOUND)
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(help=options.NAME_HELP + EACH, rich_help_panel=options.HOW_FOUND)
    ] = None,
    offset: Annotated[
        list[int] | None, typer.Option(help=options.OFFSET_HELP + EACH, rich_help_panel=options.HOW_FOUND)
    ] = None,
    download: options.Download = False,
    refresh: options.Refresh = False,
) -> None:
    """Write one page about one or more tables, side by side, that needs nothing but a browser.

    A source that cannot be read is shown as its error beside the others, and the exit code is then 1.
    """
    with progress("starting"):
        from ..report import n_steps, write_report
    with progress("starting", n_steps(len(sources))) as next_step:
        written = write_report(
            sources,
            output,
            label=label or None,
            part=part or None,
            revision=revision or None,
            name=name or None,
            offset=offset or None,
            download=download,
            refresh=refresh,
            rows=rows,
            seed=seed,
            tell=next_step,
        )
    for refusal in written.refusals:
        complain(refusal)
    tables = "1 table" if len(sources) == 1 else f"{len(sources)} tables"
    show(one_line(f"{output}: {tables}, {written.n_bytes / 1e6:.1f} MB"), wrap=False)
    if written.refusals:
        raise typer.Exit(FAILED)
