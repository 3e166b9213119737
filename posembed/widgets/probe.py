"""Figure 6: what a probe reads off each table, against the true position, beside what knows nothing of the table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import FigureInputError
from ..probing import constant_guess, split_rows
from ..public import public
from ..stored import SplitScore, TableStudy
from .base import InteractiveFigure, html_table, rounded

PROBE = "ols"
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


class ProbeFigure(InteractiveFigure):
    """See predicted against true positions of each table, for a split and a control of the reader's choice.

    Beside the points stand the test error with its interval, the constant guess, permuted labels and random tables, on
    one scale; where the split is none, the figure says that there is no test.

    Args:
        studies: by name; what they say of least squares is shown.
        table: the name of the one that is shown first; None: the first.

    Raises:
        FigureInputError: no studies, or what is none.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.stored import study_table
        >>> from posembed.widgets import ProbeFigure
        >>> figure = ProbeFigure({"sinusoidal": study_table(sinusoidal(64, 16))})
        >>> score = figure.tables[0]["scores"]["half"]
        >>> score["guess"], score["fitted"], score["constant"]
        (15.5, [0, 31], 32.0)
    """

    module = "probe.js"
    height = (1064, 609)

    @public(FigureInputError)
    def __init__(self, studies: Mapping[str, TableStudy], *, table: str | None = None) -> None:
        if not studies:
            raise FigureInputError(
                "there is no table to show; give some by name, such as {'gpt2': study_table('gpt2')}"
            )
        table = next(iter(studies)) if table is None else table
        short = _short(studies)
        tables = [_panel(name, study) | {"short": short[name]} for name, study in studies.items()]
        super().__init__(
            tables=tables,
            splits=_choices(SPLITS),
            controls=_choices(CONTROLS),
            probe="least squares",
            table=table,
            split="even-odd",
            control="table",
            # Away from the middle, where the exact line and the constant guess cross.
            position=3 * studies[table].n_positions // 8,
        )

    def fallback_html(self) -> str:
        """Show the test error of each table and split, beside what knows nothing of the table."""
        return html_table(
            f"{self.probe} from the rows of each table to their positions. Errors in positions, with 95 % intervals:",
            ["table", "split", "test error", "constant guess", "permuted labels", "random table"],
            [
                [table["name"], split["name"], *_in_words(table["scores"][split["key"]])]
                for table in self.tables
                for split in self.splits
            ],
        )


def _panel(name: str, study: TableStudy) -> dict[str, Any]:
    """What the module needs of a study."""
    scores = {score.split: score for score in study.scores if score.probe == PROBE}
    return {
        "name": name,
        "about": _about(study),
        "n_positions": study.n_positions,
        "scores": {split: _score(study, scores[split]) for split in SPLITS},
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
    untrained, which = study.untrained_rows, ""
    if len(untrained) == 1:
        which = f", of which row {untrained[0]} looks untrained"
    elif untrained:
        which = f", of which {len(untrained)} between {untrained[0]} and {untrained[-1]} look untrained"
    return f"{study.source}, {origin}: {study.n_positions} rows of {study.d_model} numbers{which} ({when})."


def _score(study: TableStudy, score: SplitScore) -> dict[str, Any]:
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
    positions = [position for position, _ in score.points["table"]]
    predicted = {control: [value for _, value in points] for control, points in score.points.items()}
    its = {"held_out": score.held_out, "positions": positions, "predicted": predicted}
    return {key: rounded(value, DECIMALS) for key, value in errors.items()} | its | _rows(study, score.split)


def _rows(study: TableStudy, split: Any) -> dict[str, Any]:
    """How many rows are tested, where the constant guess lies, and the stretch that was fitted where there is one."""
    positions = np.arange(*study.rows)
    parts = split_rows(positions, split)
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
