"""``posembed table``, ``probe`` and ``properties``: what one position table is, and what can be read from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.bar import Bar
from rich.table import Table

from .output import facts, listed, one_line, print_json, progress, show, strip

if TYPE_CHECKING:
    from ..probing import ProbeResult
    from ..tables import PositionTable

HOW_FOUND = "How the table is found"
# Of the spectrum, in JSON.
MOST_COMPONENTS = 20
BAR = 20
CAVEAT = (
    "A low error shows that a simple function of a row gives its position. It does not show that the model computes "
    "that function, nor that it uses positions at all."
)
MEANINGS = {
    "monotonicity": "of two rows on the same side of a row, how often the nearer one is the more alike",
    "translation_invariance": "the share of the variance of the similarities that the offset alone explains",
    "symmetry": "always 1 for the dot products of a table with itself, so it says nothing about the table",
}


def parse_rows(text: str) -> int | slice:
    """Read a choice of rows: 512 for the first so many, 2:512 for those from the one up to the other."""
    ends = [int(end) if end else None for end in text.split(":")]
    return slice(*ends) if ":" in text else int(text)


Source = Annotated[str, typer.Argument(metavar="SOURCE", help="A hub id, a checkpoint folder, or a file of weights.")]
Part = Annotated[
    str | None,
    typer.Option(help="Of several tables: encoder, decoder, text or vision.", rich_help_panel=HOW_FOUND),
]
Revision = Annotated[str | None, typer.Option(help="A branch, tag or commit.", rich_help_panel=HOW_FOUND)]
Name = Annotated[
    str | None, typer.Option(help="The tensor's name, in a layout that is not known.", rich_help_panel=HOW_FOUND)
]
Offset = Annotated[int | None, typer.Option(help="How many rows stand before position 0.", rich_help_panel=HOW_FOUND)]
Download = Annotated[
    bool, typer.Option("--download", help="Fetch the whole file, not the table alone.", rich_help_panel=HOW_FOUND)
]
Refresh = Annotated[
    bool, typer.Option("--refresh", help="Ask the hub again, past the caches.", rich_help_panel=HOW_FOUND)
]
# Any is what the parser makes of it.
Rows = Annotated[
    Any, typer.Option("--rows", parser=parse_rows, metavar="N|A:B", help="The first N rows, or those from A up to B.")
]
Seed = Annotated[int, typer.Option(help="Of folds, controls and intervals.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def table(
    source: Source,
    part: Part = None,
    revision: Revision = None,
    name: Name = None,
    offset: Offset = None,
    download: Download = False,
    refresh: Refresh = False,
    as_json: AsJson = False,
) -> None:
    """Show a position table: its shape, where it stands, the health of its rows, its spectrum.

    $ posembed table gpt2

    $ posembed table openai/whisper-tiny --part decoder
    """
    with progress(f"reading the table of {source}"):
        from ..tables import load_table

        found = load_table(
            source, part=part, revision=revision, name=name, offset=offset, download=download, refresh=refresh
        )
        spread = _spectrum(found)
    if as_json:
        print_json(_table_json(found, spread))
        return
    show(facts(_table_facts(found, spread)))
    norms, nearest = found.norms.tolist(), found.nearest.tolist()
    highest = max((norm for norm in norms if norm < float("inf")), default=0.0)
    show("\nnorm of each row, from 0", style="dim")
    show(strip(norms, highest))
    show("cosine of each row with its nearest other row, from 0 to 1", style="dim")
    show(strip(nearest, 1.0, min))


def _spectrum(found: PositionTable) -> Any:
    """The spectrum, or None where rows hold NaN or infinity; the table is shown all the same."""
    from ..probing import spectrum

    return None if found.non_finite_rows else spectrum(found)


def _table_facts(found: PositionTable, spread: Any) -> dict[str, object]:
    norms = found.norms[found.norms.isfinite()]
    rows: dict[str, object] = {
        "table": f"{found.name} of {found.source}",
        "shape": f"{found.n_positions} positions x {found.d_model}, stored as {found.stored_dtype}",
        "file": found.file,
        "part": found.part,
        "revision": found.revision,
        "offset": f"{found.offset} rows before position 0, left out here" if found.offset else "none",
        "class tokens": f"the first {found.n_class_tokens} rows" if found.n_class_tokens else None,
        "grid": found.grid and "{} x {} patches".format(*found.grid),
        "bytes read": f"{found.bytes_read:,}",
        "norms": f"median {norms.median():.4g}, from {norms.min():.4g} to {norms.max():.4g}" if len(norms) else "none",
        "untrained rows": listed(found.untrained_rows),
        "NaN or infinity": f"in row {listed(found.non_finite_rows)}" if found.non_finite_rows else None,
    }
    if spread is not None:
        # Its own words, without the first line, which says the shape again.
        lines = str(spread).splitlines()[1:]
        rows |= {"spectrum": "; ".join(line.strip() for line in lines[:2]), "helix": lines[2].partition(": ")[2]}
    return {name: value for name, value in rows.items() if value is not None}


def _table_json(found: PositionTable, spread: Any) -> dict[str, Any]:
    names = (
        "source name file part revision stored_dtype offset n_class_tokens grid bytes_read untrained_rows "
        "non_finite_rows"
    )
    norms = found.norms[found.norms.isfinite()]
    ends = {"median": norms.quantile(0.5), "min": norms.min(), "max": norms.max()} if len(norms) else None
    shape = [found.n_positions, found.d_model]
    told = {name: getattr(found, name) for name in names.split()}
    return told | {"shape": shape, "norms": ends, "spectrum": spread and _spectrum_json(spread)}


def _spectrum_json(spread: Any) -> dict[str, Any]:
    helix = spread.helix
    turning = helix and {
        "components": [number + 1 for number in helix.components],
        "period": helix.period,
        "share": helix.share,
    }
    return {
        "components_for_90_percent": spread.n_components_for(0.9),
        "explained_variance_ratio": spread.explained_variance_ratio[:MOST_COMPONENTS],
        "effective_rank": spread.effective_rank,
        "participation_ratio": spread.participation_ratio,
        "helix": turning,
    }


def probe(
    source: Source,
    kind: Annotated[str, typer.Option("--probe", help="ols, ridge, gd (gradient descent) or mlp.")] = "ridge",
    split: Annotated[
        str, typer.Option(help="even-odd, folds (five), half (first to second), or all, which has no test.")
    ] = "even-odd",
    rows: Rows = None,
    seed: Seed = 0,
    part: Part = None,
    revision: Revision = None,
    name: Name = None,
    offset: Offset = None,
    download: Download = False,
    refresh: Refresh = False,
    as_json: AsJson = False,
) -> None:
    """Read the position from each row by a simple probe, beside a constant guess and two controls.

    $ posembed probe gpt2

    $ posembed probe gpt2 --probe ols --split folds --rows 512
    """
    with progress(f"reading the table of {source}") as tell:
        from ..errors import ProbeInputError
        from ..probing import description_length, probe_table
        from ..tables import load_table

        found = load_table(
            source, part=part, revision=revision, name=name, offset=offset, download=download, refresh=refresh
        )
        tell("probing the rows")
        choice: Any = {"probe": kind, "split": split}
        result = probe_table(found, rows=rows, seed=seed, **choice)
        tell("the description length")
        try:
            length = description_length(found, rows=rows, seed=seed)
        except ProbeInputError:
            # It needs more rows than a probe does.
            length = None
    if as_json:
        print_json(result.to_dict() | {"description_length": length})
        return
    show(one_line(f"{result.probe}, {result.split}: {result.n_rows} rows of {result.source}"), style="bold")
    show("mean absolute error, in positions", style="dim")
    show(facts(_errors(result)))
    show("\nerror by region of the table", style="dim")
    show(_with_bars({f"{part.start} to {part.stop - 1}": part.mae for part in result.by_region}))
    if length is not None:
        bits = f"{length.bits:,.0f} bits, {length.compression:.3g} times shorter than without the rows"
        show("", facts({"description length": f"{bits}; with a random table {length.random_table_bits:,.0f} bits"}))
    show(f"\n{verdict(result)}")
    show(CAVEAT, style="dim")


def _errors(result: ProbeResult) -> dict[str, object]:
    controls = result.baselines
    return {
        "this table": f"{result.test_mae:.4g}  (95 % interval {result.interval.low:.4g} to {result.interval.high:.4g})",
        "constant guess": f"{controls.constant:.4g}",
        "permuted labels": f"{controls.permuted_labels:.4g}",
        "a random table": f"{controls.random_table:.4g}",
        "this table, rows trained on": f"{result.train_mae:.4g}",
    }


def verdict(result: ProbeResult) -> str:
    """Say in one sentence what a probe's error means beside its controls."""
    if not result.held_out:
        return "Rows that a probe was trained on show how well it fits, not what the table holds."
    controls = result.baselines
    best = min(controls.constant, controls.permuted_labels, controls.random_table)
    rows = "rows beyond those it was trained on" if result.split == "half" else "rows that the probe has not seen"
    if result.interval.high < best:
        return f"The position can be read from {rows}: the error is {result.test_mae / best:.2%} of the best control's."
    if result.interval.low > best:
        return f"What the probe learned does not hold for {rows}: a control errs less."
    return f"From {rows} the probe reads no more than a control does."


def properties(
    source: Source,
    max_offset: Annotated[int | None, typer.Option(help="The largest offset that monotonicity compares.")] = None,
    similarity: Annotated[str, typer.Option(help="What makes two rows alike: dot or cosine.")] = "dot",
    rows: Rows = None,
    part: Part = None,
    revision: Revision = None,
    name: Name = None,
    offset: Offset = None,
    download: Download = False,
    refresh: Refresh = False,
    as_json: AsJson = False,
) -> None:
    """Measure three properties of the similarity of rows: monotonicity, translation invariance, symmetry.

    $ posembed properties gpt2 --max-offset 50

    $ posembed properties bert-base-cased --similarity cosine --rows 0:128
    """
    with progress(f"reading the table of {source}") as tell:
        from ..similarity import properties as measure
        from ..tables import load_table

        found = load_table(
            source, part=part, revision=revision, name=name, offset=offset, download=download, refresh=refresh
        )
        tell("comparing the rows")
        alike: Any = similarity
        measured = measure(found, similarity=alike, max_offset=max_offset, rows=rows).to_dict()
    if as_json:
        print_json({"source": found.source, "similarity": similarity, "max_offset": max_offset} | measured)
        return
    show(one_line(f"{similarity} similarity of the rows of {found.source}"), style="bold")
    show(_with_bars({name.replace("_", " "): measured[name] for name in MEANINGS}, full=1.0))
    show("", facts({name.replace("_", " "): meaning for name, meaning in MEANINGS.items()}))


def _with_bars(numbers: dict[str, Any], full: float | None = None) -> Table:
    """Lay out numbers with a bar for each, the longest for the largest or for ``full``."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    longest = full or max(numbers.values()) or 1.0
    for name, value in numbers.items():
        bar = Bar(longest, 0, value or 0.0, width=BAR)
        grid.add_row(name, "undefined" if value is None else f"{value:.3g}", bar)
    return grid
