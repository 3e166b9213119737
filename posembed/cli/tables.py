"""``posembed table``, ``probe`` and ``properties``: what one position table is, and what can be read from it."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from functools import wraps
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import posembed

from ..errors import listed
from .output import facts, one_line, print_json, progress, show

if TYPE_CHECKING:
    from ..probing import Spectrum
    from ..tables import PositionTable

HOW_FOUND = "How the table is found"
READ = (
    "Read the error beside the three controls. A low one shows that a simple function of a row gives its position, not "
    "that the model computes that function, nor that it uses positions at all."
)
MEANINGS = {
    "monotonicity": "of two rows on the same side of a row, how often the nearer one is the more alike",
    "translation_invariance": "the share of the variance of the similarities that the offset alone explains",
    "symmetry": "always 1 for the dot products of a table with itself, so it says nothing about the table",
}


def parse_rows(text: str) -> int | slice:
    """Read a choice of rows: 512 for the first so many, 2:512 for those from the one up to the other."""
    if not re.fullmatch(r"-?\d+|\d*:\d*", text):
        raise typer.BadParameter(
            f"{text!r} is no choice of rows; say 512 for the first 512, or 2:512 for those from 2 on"
        )
    start, colon, stop = text.partition(":")
    return slice(int(start or 0), int(stop) if stop else None) if colon else int(text)


Source = Annotated[str, typer.Argument(metavar="SOURCE", help="A hub id, a checkpoint folder, or a file of weights.")]


def load_options(
    part: Annotated[
        str | None,
        typer.Option(help="Of several tables: encoder, decoder, text or vision.", rich_help_panel=HOW_FOUND),
    ] = None,
    revision: Annotated[str | None, typer.Option(help="A branch, tag or commit.", rich_help_panel=HOW_FOUND)] = None,
    name: Annotated[
        str | None, typer.Option(help="The tensor's name, in a layout that is not known.", rich_help_panel=HOW_FOUND)
    ] = None,
    offset: Annotated[
        int | None, typer.Option(help="How many rows stand before position 0.", rich_help_panel=HOW_FOUND)
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch the whole file, not the table alone.", rich_help_panel=HOW_FOUND)
    ] = False,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Ask the hub again, past the caches.", rich_help_panel=HOW_FOUND)
    ] = False,
) -> None:
    """What all commands can say to `load_table`, once."""


def loads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `load_options`, which it takes as one dictionary, `how`."""
    own = inspect.signature(command, eval_str=True)
    shared = inspect.signature(load_options, eval_str=True).parameters

    @wraps(command)
    def with_options(**given: Any) -> None:
        command(how={name: given.pop(name) for name in shared}, **given)

    parameters = [each for each in (*own.parameters.values(), *shared.values()) if each.name != "how"]
    parameters = [each.replace(kind=each.KEYWORD_ONLY) for each in parameters]
    with_options.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {each.name: each.annotation for each in parameters}
    return with_options


# Any is what the parser makes of it.
Rows = Annotated[
    Any, typer.Option("--rows", parser=parse_rows, metavar="N|A:B", help="The first N rows, or those from A up to B.")
]
Seed = Annotated[int, typer.Option(help="Of folds, controls and intervals.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@loads_tables
def table(
    source: Source,
    *,
    how: dict[str, Any],
    as_json: AsJson = False,
) -> None:
    """Show a position table: its shape, where it stands, the health of its rows, its spectrum.

    $ posembed table gpt2

    $ posembed table openai/whisper-tiny --part decoder
    """
    with progress(f"reading the table of {source}") as tell:
        from ..probing import spectrum

        found = posembed.load_table(source, **how)
        tell("the spectrum")
        # A table with NaN is shown all the same.
        spread = None if found.non_finite_rows else spectrum(found)
        tell("comparing the rows")
        told: Any = _table_json(found, spread) if as_json else _table_shown(found, spread)
    if as_json:
        print_json(told)
    else:
        show(*told)


def _table_shown(found: PositionTable, spread: Spectrum | None) -> list[Any]:
    broken = found.non_finite_rows
    norms = [length for length in found.norms.tolist() if math.isfinite(length)]
    told = {
        "table": f"{found.name} of {found.source}",
        "shape": f"{found.n_positions} positions x {found.d_model}, stored as {found.stored_dtype}",
        "file": found.file,
        "part": found.part,
        "revision": found.revision,
        "offset": f"{found.offset} rows before position 0, left out here" if found.offset else None,
        "rows": found.line or None,
        "other tables": f"--name reads {found.others}" if found.others else None,
        "bytes read": f"{found.bytes_read:,}",
        "norms": f"median {median(norms):.4g}, from {min(norms):.4g} to {max(norms):.4g}" if norms else None,
        "untrained rows": listed(found.untrained_rows) or "none",
        "NaN or infinity": f"rows {listed(broken)}" if broken else None,
    }
    return [facts(told), "", str(spread or "rows with NaN or infinity have no spectrum")]


def _table_json(found: PositionTable, spread: Spectrum | None) -> dict[str, Any]:
    names = "source name file part revision stored_dtype offset n_class_tokens grid patches others bytes_read"
    told = {name: getattr(found, name) for name in (*names.split(), "untrained_rows", "non_finite_rows")}
    norms = found.norms[found.norms.isfinite()]
    ends = {"median": norms.quantile(0.5), "min": norms.min(), "max": norms.max()} if len(norms) else None
    of_rows = spread and {**spread.to_dict(), "components": None, "positions": None}
    return told | {"shape": [found.n_positions, found.d_model], "norms": ends, "spectrum": of_rows}


@loads_tables
def probe(
    source: Source,
    kind: Annotated[
        Literal["ols", "ridge", "gd", "mlp"],
        typer.Option("--probe", help="Least squares, ridge, gradient descent, or a two-layer network."),
    ] = "ridge",
    split: Annotated[
        Literal["even-odd", "all", "folds", "half"],
        typer.Option(help="Test on rows between, on those trained on, on each of five folds, or on the second half."),
    ] = "even-odd",
    rows: Rows = None,
    seed: Seed = 0,
    *,
    how: dict[str, Any],
    as_json: AsJson = False,
) -> None:
    """Read the position from each row by a simple probe, beside a constant guess and two controls.

    $ posembed probe gpt2

    $ posembed probe gpt2 --probe ols --split folds --rows 512
    """
    with progress(f"reading the table of {source}") as tell:
        found = posembed.load_table(source, **how)
        tell("probing the rows")
        result = posembed.probe_table(found, probe=kind, split=split, rows=rows, seed=seed)
    if as_json:
        print_json(result)
        return
    controls, regions = (
        result.baselines,
        {f"{each.start} to {each.stop - 1}": f"{each.mae:.3g}" for each in result.by_region},
    )
    show(one_line(f"{result.probe}, {result.split}: {result.n_rows} rows of {result.source}"), style="bold")
    show("mean absolute error, in positions", style="dim")
    show(
        facts(
            {
                "this table": f"{result.test_mae:.4g} (95 % interval {result.interval})",
                "constant guess": f"{controls.constant:.4g}",
                "permuted labels": f"{controls.permuted_labels:.4g}",
                "a random table": f"{controls.random_table:.4g}",
                "this table, rows trained on": f"{result.train_mae:.4g}",
            }
        )
    )
    show("\nby region of the table", style="dim")
    show(facts(regions), READ)
    if result.remark:
        show(f"\n{result.remark}")


@loads_tables
def properties(
    source: Source,
    max_offset: Annotated[int | None, typer.Option(help="The largest offset that monotonicity compares.")] = None,
    similarity: Annotated[Literal["dot", "cosine"], typer.Option(help="What makes two rows alike.")] = "dot",
    rows: Rows = None,
    *,
    how: dict[str, Any],
    as_json: AsJson = False,
) -> None:
    """Measure three properties of the similarity of rows: monotonicity, translation invariance, symmetry.

    $ posembed properties gpt2 --max-offset 50

    $ posembed properties bert-base-cased --similarity cosine --rows 0:128
    """
    with progress(f"reading the table of {source}") as tell:
        found = posembed.load_table(source, **how)
        tell("comparing the rows")
        measured = posembed.properties(found, similarity=similarity, max_offset=max_offset, rows=rows).to_dict()
    if as_json:
        print_json({"source": found.source, "similarity": similarity, "max_offset": max_offset} | measured)
        return
    show(one_line(f"{similarity} similarity of the rows of {found.source}"), style="bold")
    told = {name: "undefined" if measured[name] is None else f"{measured[name]:.3g}" for name in MEANINGS}
    show(facts({name.replace("_", " "): f"{told[name]}: {meaning}" for name, meaning in MEANINGS.items()}))
