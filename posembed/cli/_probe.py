"""``posembed probe``: can a simple probe read the position from each row?"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _options as options
from . import _pictures as pictures
from ._output import print_json
from ._terminal import columns, facts, is_plain, one_line, progress, show

if TYPE_CHECKING:
    from ..probing import DescriptionLength, ProbeResult

BAR = 24
EXAMPLES = (
    "posembed probe gpt2",
    "posembed probe gpt2 --probe ols --split folds --rows 512",
    "posembed probe roberta-base --split half --json",
)


class Probe(StrEnum):
    """The probes, by the names that `posembed.probe_table` knows."""

    OLS, RIDGE, GD, MLP = "ols", "ridge", "gd", "mlp"


class Split(StrEnum):
    """The splits, likewise."""

    EVEN_ODD, ALL, FOLDS, HALF = "even-odd", "all", "folds", "half"


def probe(
    source: options.Source,
    kind: Annotated[
        Probe,
        typer.Option(
            "--probe",
            help="Least squares, ridge, 10,000 steps of gradient descent, or a two-layer network.",
            rich_help_panel=options.WHAT_DONE,
        ),
    ] = Probe.RIDGE,
    split: Annotated[
        Split,
        typer.Option(
            help="Train on even rows and test on odd ones; on all (no test); five folds; or first half to second.",
            rich_help_panel=options.WHAT_DONE,
        ),
    ] = Split.EVEN_ODD,
    rows: options.Rows = None,
    seed: options.Seed = 0,
    part: options.Part = None,
    revision: options.Revision = None,
    name: options.Name = None,
    offset: options.Offset = None,
    download: options.Download = False,
    refresh: options.Refresh = False,
    as_json: options.AsJson = False,
) -> None:
    """Read the position from each row by a simple probe, beside a constant guess and two controls."""
    with progress(f"reading the table of {source}", 2) as next_step:
        from ..probing import description_length, probe_table
        from ..tables import load_table

        found = load_table(
            source, part=part, revision=revision, name=name, offset=offset, download=download, refresh=refresh
        )
        next_step("probing the rows")
        result = probe_table(found, probe=kind.value, split=split.value, rows=rows, seed=seed)
        next_step("the description length")
        length = _length_or_none(lambda: description_length(found, rows=rows, seed=seed))
    if as_json:
        print_json(_as_json(result, length))
        return
    _show(result, length)


def _length_or_none(compute: Any) -> DescriptionLength | None:
    from ..errors import PosembedError

    try:
        return compute()
    except PosembedError:
        # Needs more rows than a probe does.
        return None


def _as_json(result: ProbeResult, length: DescriptionLength | None) -> dict[str, Any]:
    return result.to_dict() | {"description_length": None if length is None else length.to_dict()}


def _show(result: ProbeResult, length: DescriptionLength | None) -> None:
    from ..report import words

    low, high = words.ends(result)
    show(one_line(f"{words.PROBES[result.probe]} on {result.n_rows} rows of {result.source}"), style="bold")
    show(words.SPLITS[result.split], "")
    controls = result.baselines
    errors = {
        "this table": f"{words.number(result.test_mae)}  (95 % interval {words.number(low)} to {words.number(high)})",
        "constant guess": words.number(controls.constant),
        "permuted labels": words.number(controls.permuted_labels),
        "a random table": words.number(controls.random_table),
        "this table, rows trained on": words.number(result.train_mae),
    }
    show("mean absolute error, in positions", style="dim")
    show(facts(errors), "")
    _draw_regions(result)
    if length is not None:
        show("", facts({"description length": words.length_words(length)}))
    show("", words.verdict(result))
    for caveat in words.CAVEATS:
        show("", caveat, style="dim")


def _draw_regions(result: ProbeResult) -> None:
    from ..report import words

    largest = max((region.mae for region in result.by_region), default=0.0)
    lines = [
        (
            f"{region.start} to {region.stop - 1}",
            words.number(region.mae),
            pictures.bar(region.mae, largest, BAR, plain=is_plain()),
        )
        for region in result.by_region
    ]
    show("error by region of the table", style="dim")
    show(columns(lines))
