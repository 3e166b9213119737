"""What the formula of the study of length says of each arm, and what came: ``python -m studies.length_said``.

It writes ``results/length/said.csv``: by arm, seed and length the rise that each predictor says from what is read of
the model at its trained length, and the rise that was seen, empty where the arm has not been asked. The file is
committed before the arms that are not fitted are asked, and again afterwards. While the formula has no coefficients it
prints those of the fitted arms instead, to be put into `studies.length_law`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from posembed import RunResult
from posembed.training.results import write_whole

from .length import NAME, arms
from .length_law import COEFFICIENTS, FITTED, TERMS, fit, predicted, rises
from .search import results_in
from .training.longer import LENGTHS

OUT = Path(__file__).resolve().parent.parent / "results" / NAME
FITTED_SEED = 1


def fitted(runs: Sequence[RunResult]) -> list[RunResult]:
    """The runs that the coefficients are fitted to, in the order of their arms, as far as they are there."""
    return [run for name in FITTED for run in runs if arm_of(run) == name and run.config.seed == FITTED_SEED]


def said(runs: Sequence[RunResult]) -> list[list[str]]:
    """The rows of the table, with a head."""
    rows = [["arm", "seed", "length", *TERMS, "seen"]]
    order = [each.name for each in arms()]
    for run in sorted(runs, key=lambda run: (order.index(arm_of(run)), run.config.seed)):
        by_predictor = [predicted(run, name) for name in TERMS]
        seen = rises(run) if "longer" in run.metrics else [None] * len(LENGTHS)
        for place, n in enumerate(LENGTHS):
            numbers = [each[place] for each in by_predictor] + [seen[place]]
            shown = ["" if each is None else f"{each:.3f}" for each in numbers]
            rows.append([arm_of(run), str(run.config.seed), str(n), *shown])
    return rows


def arm_of(run: RunResult) -> str:
    """The name of the arm that a run belongs to."""
    return next(each.name for each in arms() if replace(each.run, seed=run.config.seed) == run.config)


def main() -> None:
    """Write the table, or print what is to be put into the formula."""
    runs = results_in(OUT)
    if not COEFFICIENTS:
        there = fitted(runs)
        print(f"fitted arms that are there: {len(there)} of {len(FITTED)}")
        print(fit(there) if len(there) == len(FITTED) else "no coefficients before all are")
        return
    content = io.StringIO()
    csv.writer(content, lineterminator="\n").writerows(said(runs))
    write_whole(OUT / "said.csv", content.getvalue().encode())


if __name__ == "__main__":
    main()
