"""``posembed properties``: how the similarity of rows depends on their distance."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from . import _options as options
from . import _pictures as pictures
from ._output import print_json
from ._terminal import columns, is_plain, one_line, progress, show

BAR = 20
EXAMPLES = (
    "posembed properties gpt2 --max-offset 50",
    "posembed properties bert-base-cased --similarity cosine --rows 0:128",
    "posembed properties gpt2 --json",
)


class Similarity(StrEnum):
    """The similarities, by the names that `posembed.properties` knows."""

    DOT, COSINE = "dot", "cosine"


def properties(
    source: options.Source,
    max_offset: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The largest offset that monotonicity compares; by default all.",
            rich_help_panel=options.WHAT_DONE,
            show_default=False,
        ),
    ] = None,
    similarity: Annotated[
        Similarity, typer.Option(help="What makes two rows alike.", rich_help_panel=options.WHAT_DONE)
    ] = Similarity.DOT,
    rows: options.Rows = None,
    part: options.Part = None,
    revision: options.Revision = None,
    name: options.Name = None,
    offset: options.Offset = None,
    download: options.Download = False,
    refresh: options.Refresh = False,
    as_json: options.AsJson = False,
) -> None:
    """Measure three properties of the similarity of rows: monotonicity, translation invariance, symmetry."""
    with progress(f"reading the table of {source}", 1) as next_step:
        from ..similarity import properties as measure
        from ..tables import load_table

        found = load_table(
            source, part=part, revision=revision, name=name, offset=offset, download=download, refresh=refresh
        )
        next_step("comparing the rows")
        measured = measure(found, similarity=similarity.value, max_offset=max_offset, rows=rows)
    if as_json:
        settings = {"similarity": similarity.value, "max_offset": max_offset}
        print_json({"source": found.source} | settings | measured.to_dict())
        return

    from ..report.words import property_rows

    what = "dot products" if similarity is Similarity.DOT else "cosines"
    which = "all offsets" if max_offset is None else f"offsets up to {max_offset}"
    show(one_line(f"{what} of the rows of {found.source}; monotonicity among {which}"), style="bold")
    listed = property_rows(measured)
    lines = [
        (name, "undefined" if value != value else f"{value:.3f}", pictures.bar(value, 1, BAR, plain=is_plain()))
        for name, value, _ in listed
    ]
    show(columns(lines))
    for name, _, meaning in listed:
        show("", f"{name}: {meaning}", style="dim")
