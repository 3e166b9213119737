"""Figure 6: what a probe reads off each table, against the true position, beside what knows nothing of the table."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import traitlets

from ..errors import FigureInputError
from .base import InteractiveFigure, html_table

if TYPE_CHECKING:
    from ..experiments import SplitScore, TableStudy
    from ..probing import Split

PROBES = {"ols": "least squares", "ridge": "ridge regression"}
SPLITS = {
    "even-odd": (
        "even rows, test on odd",
        "Fitted to even rows, tested on odd ones: each tested row stands next to rows that were seen.",
    ),
    "all": (
        "all rows, no test",
        "Fitted to all rows and scored on the same ones: a probe that learns labels by heart does well here too.",
    ),
    "folds": (
        "five folds",
        "Each random fifth of the rows is predicted by a probe fitted to the other four: most tested rows stand next "
        "to rows that were seen.",
    ),
    "half": (
        "first half, test on second",
        "Fitted to the first half, tested on the second: the probe must go on beyond the rows that it saw.",
    ),
}
CONTROLS = {
    "table": ("the table itself", "The points are the table's own rows."),
    "permuted labels": (
        "permuted labels",
        "The same rows, with positions dealt out at random. The points are of one run, the bar is the mean of several.",
    ),
    "random table": (
        "random table",
        "Rows of random numbers in place of the table's. The points are of one run, the bar is the mean of several.",
    ),
}
DECIMALS = 3
MOST_OF_A_STATE = 200_000


class ProbeFigure(InteractiveFigure):
    """See predicted against true positions of each table, for a split and a control of the reader's choice.

    Beside the points stand the test error with its interval, the constant guess, permuted labels and random tables, on
    one scale; where the split is none, the figure says that there is no test.

    Args:
        studies: by name, a `TableStudy` or what `posembed.load_table` takes, which is measured now. None: the studies
            that the package holds.
        probe: "ols" or "ridge".
        **traits: what is chosen at first: table (a name), split ("even-odd", "all", "folds" or "half"), control
            ("table", "permuted labels" or "random table") and position (of the row that is read out).

    Raises:
        FigureInputError: no studies, an unknown probe, one that a study lacks or that is not finite, points of other
            rows than the study's, a table, split, control or position that there is not, or more than fits on a page.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.widgets import ProbeFigure
        >>> figure = ProbeFigure({"sinusoidal": sinusoidal(64, 16)}, split="half")
        >>> score = figure.tables[0]["scores"]["half"]
        >>> score["guess"], score["fitted"], score["constant"]
        (15.5, [0, 31], 32.0)
    """

    module = "probe.js"

    tables: traitlets.List = traitlets.List().tag(sync=True, figure=True)
    splits: traitlets.List = traitlets.List().tag(sync=True, figure=True)
    controls: traitlets.List = traitlets.List().tag(sync=True, figure=True)
    probe = traitlets.Unicode().tag(sync=True, figure=True)
    table = traitlets.Unicode().tag(sync=True, figure=True)
    split = traitlets.Unicode("even-odd").tag(sync=True, figure=True)
    control = traitlets.Unicode("table").tag(sync=True, figure=True)
    position = traitlets.Int().tag(sync=True, figure=True)

    def __init__(self, studies: Mapping[str, Any] | None = None, *, probe: str = "ols", **traits: Any) -> None:
        if probe not in PROBES:
            raise FigureInputError(f"probe is {probe!r}; choose among {', '.join(PROBES)}")
        studied = _studied(studies)
        short = _short(studied)
        tables = [_panel(name, study, probe) | {"short": short[name]} for name, study in studied.items()]
        traits.setdefault("table", tables[0]["name"])
        _check_choices(tables, traits)
        chosen = next(each for each in tables if each["name"] == traits["table"])
        # Away from the middle, where the exact line and the constant guess cross.
        traits.setdefault("position", 3 * chosen["n_positions"] // 8)
        super().__init__(
            tables=tables, splits=_choices(SPLITS), controls=_choices(CONTROLS), probe=PROBES[probe], **traits
        )
        if not 0 <= self.position < chosen["n_positions"]:
            raise FigureInputError(
                f"position is {self.position}; the rows of {self.table} are 0 to {chosen['n_positions'] - 1}"
            )
        _check_size(self.state())

    def fallback_html(self) -> str:
        """Show the test error of each table and split, beside what knows nothing of the table."""
        return html_table(
            f"Interactive figure (needs JavaScript): {self.probe} from the rows of each table to their "
            "positions. Errors in positions, with 95 % intervals:",
            ["table", "split", "test error", "constant guess", "permuted labels", "random table"],
            [
                [table["name"], split["name"], *_in_words(table["scores"][split["key"]])]
                for table in self.tables
                for split in self.splits
            ],
        )


def _studied(studies: Any) -> dict[str, TableStudy]:
    """Measure what is not a study yet."""
    from ..experiments import TableStudy, stored_studies, study_table

    given = stored_studies() if studies is None else studies
    if not isinstance(given, Mapping) or not given or not all(isinstance(name, str) for name in given):
        raise FigureInputError("there is no table to show; give some by name, such as {'gpt2': study_table('gpt2')}")
    return {name: each if isinstance(each, TableStudy) else study_table(each) for name, each in given.items()}


def _panel(name: str, study: TableStudy, probe: str) -> dict[str, Any]:
    """What the module needs of a study."""
    scores = {score.split: score for score in study.scores if score.probe == probe}
    for split in SPLITS:
        if split not in scores:
            raise FigureInputError(
                f"{name} was not studied with the probe {probe} and the split {split}; study it with study_table"
            )
    return {
        "name": name,
        "about": _about(study),
        "n_positions": study.n_positions,
        "scores": {split: _score(name, study, scores[split]) for split in SPLITS},
    }


def _short(names: Iterable[str]) -> dict[str, str]:
    """Names without their owners on the hub, where those tell enough."""
    short = {name: name.partition("/")[2] if name.count("/") == 1 else name for name in names}
    return {name: each if list(short.values()).count(each) == 1 else name for name, each in short.items()}


def _about(study: TableStudy) -> str:
    """Which checkpoint this is, where it comes from, and when it was measured."""
    is_commit = re.fullmatch(r"[0-9a-f]{40}", study.revision)
    origin = f"revision {study.revision[:10]}" if is_commit else study.revision
    when = f"stored: measured {study.measured}" if study.stored else f"measured now, {study.measured}"
    rows = f"{study.n_positions} rows of {study.d_model} numbers{_untrained(study.untrained_rows)}"
    return f"{study.source}, {origin}: {rows} ({when})."


def _untrained(rows: tuple[int, ...]) -> str:
    if not rows:
        return ""
    if len(rows) == 1:
        return f", of which row {rows[0]} looks untrained"
    return f", of which {len(rows)} between {rows[0]} and {rows[-1]} look untrained"


def _score(name: str, study: TableStudy, score: SplitScore) -> dict[str, Any]:
    """The errors of a split, and the points of each control over the same positions."""
    errors = {
        "error": score.test_mae,
        "low": score.low,
        "high": score.high,
        "train": score.train_mae,
        "constant": score.constant,
        "permuted labels": score.permuted_labels,
        "random table": score.random_table,
    }
    positions, predicted = _points(score)
    numbers = [*errors.values(), *(each for row in predicted.values() for each in row)]
    # Where a stored number was not finite, there is None.
    if not all(each is not None and math.isfinite(each) for each in numbers):
        raise FigureInputError(
            f"the probe {score.probe} of {name} with the split {score.split} is not finite; leave it out"
        )
    if predicted.keys() != CONTROLS.keys() or not positions:
        raise FigureInputError(
            f"the points of {name} with the split {score.split} are not of the same rows for the table, permuted "
            "labels and a random table; study it again with study_table"
        )
    rounded = {key: round(value, DECIMALS) for key, value in errors.items()}
    its = {"held_out": score.held_out, "positions": positions, "predicted": predicted}
    return rounded | its | _rows(study, score.split)


def _points(score: SplitScore) -> tuple[list[int], dict[str, list[float]]]:
    """The positions, and the predictions of each control that has points at exactly these."""
    positions = [position for position, _ in score.points.get("table", ())]
    return positions, {
        control: [predicted for _, predicted in points]
        for control, points in score.points.items()
        if [position for position, _ in points] == positions
    }


def _rows(study: TableStudy, split: str) -> dict[str, Any]:
    """How many rows are tested, where the constant guess lies, and the stretch that was fitted where there is one."""
    import numpy as np

    from ..probing import constant_guess, split_rows

    positions = np.arange(*study.rows)
    parts = split_rows(positions, cast("Split", split))
    # Five folds have a guess each, a few positions apart: one line for all stands at their mean.
    guess = float(np.mean([constant_guess(positions[part.train]) for part in parts]))
    fitted = [int(positions[index]) for index in parts[0].train[[0, -1]]] if split == "half" else []
    return {"guess": round(guess, 1), "fitted": fitted, "n_tested": sum(len(part.test) for part in parts)}


def _choices(named: Mapping[str, tuple[str, str]]) -> list[dict[str, str]]:
    # A list, because the state's mappings are sorted.
    return [{"key": key, "name": name, "says": says} for key, (name, says) in named.items()]


def _in_words(score: dict[str, Any]) -> list[str]:
    own = f"{score['error']:.2f} ({score['low']:.2f} to {score['high']:.2f})"
    if not score["held_out"]:
        own = f"no test; {score['error']:.2f} on the rows it was fitted to"
    return [own, *(f"{score[key]:.2f}" for key in ("constant", "permuted labels", "random table"))]


def _check_choices(tables: list[dict[str, Any]], traits: dict[str, Any]) -> None:
    names = [table["name"] for table in tables]
    for trait, known in (("table", names), ("split", list(SPLITS)), ("control", list(CONTROLS))):
        if trait in traits and traits[trait] not in known:
            raise FigureInputError(f"{trait} is {traits[trait]!r}; choose among {', '.join(known)}")


def _check_size(state: dict[str, Any]) -> None:
    n_characters = len(json.dumps(state))
    if n_characters >= MOST_OF_A_STATE:
        raise FigureInputError(
            f"the numbers of this figure take {n_characters} characters, and a page has room for {MOST_OF_A_STATE}; "
            "show fewer tables"
        )
