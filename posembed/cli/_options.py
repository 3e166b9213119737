"""The arguments and options that several commands share."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

HOW_FOUND = "How the table is found"
WHAT_DONE = "What is done with it"
HOW_SHOWN = "How it is shown"

SOURCE_HELP = "A hub id (gpt2, facebook/opt-125m), a local checkpoint folder, or a file of weights."
PART_HELP = "Of a model with several tables: encoder, decoder, text or vision."
REVISION_HELP = "A branch, tag or commit on the hub."
NAME_HELP = "The tensor's name, in a layout that is not known."
OFFSET_HELP = "How many rows stand before position 0, in a layout that is not known."

Source = Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCE_HELP, show_default=False)]
Part = Annotated[str | None, typer.Option(help=PART_HELP, rich_help_panel=HOW_FOUND, show_default=False)]
Revision = Annotated[str | None, typer.Option(help=REVISION_HELP, rich_help_panel=HOW_FOUND, show_default=False)]
Name = Annotated[str | None, typer.Option(help=NAME_HELP, rich_help_panel=HOW_FOUND, show_default=False)]
Offset = Annotated[int | None, typer.Option(help=OFFSET_HELP, rich_help_panel=HOW_FOUND, show_default=False)]
Download = Annotated[
    bool, typer.Option("--download", help="Download the whole file, not the table alone.", rich_help_panel=HOW_FOUND)
]
Refresh = Annotated[
    bool, typer.Option("--refresh", help="Ask the hub again, whatever the cache holds.", rich_help_panel=HOW_FOUND)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.", rich_help_panel=HOW_SHOWN)]
Seed = Annotated[int, typer.Option(help="Of folds, controls and intervals.", rich_help_panel=WHAT_DONE)]

_WHOLE = re.compile(r"\d+")
_RANGE = re.compile(r"(\d*):(\d*)")


def parse_rows(text: str) -> int | slice:
    """Read a choice of rows: a number means the first so many, two with a colon mean from the one up to the other.

    Raises:
        typer.BadParameter: anything else.

    Example:
        >>> from posembed.cli._options import parse_rows
        >>> parse_rows("512"), parse_rows("2:512"), parse_rows("100:")
        (512, slice(2, 512, None), slice(100, None, None))
    """
    if _WHOLE.fullmatch(text):
        return int(text)
    found = _RANGE.fullmatch(text)
    if not found or text == ":":
        raise typer.BadParameter(f"{text!r} is no choice of rows; write 512 for the first 512, or 0:512")
    start, stop = (int(end) if end else None for end in found.groups())
    return slice(start, stop)


Rows = Annotated[
    # What the parser makes of it; typer itself sees text.
    Any,
    typer.Option(
        "--rows",
        parser=parse_rows,
        metavar="N | A:B",
        help="The first N rows, or those from A up to B; by default all.",
        rich_help_panel=WHAT_DONE,
        show_default=False,
    ),
]
