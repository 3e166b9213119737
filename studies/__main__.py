"""Run a study: ``python -m studies NAME``; ``make study NAME=...`` does it in the project's environment."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from posembed.errors import RunError
from posembed.training.grid import Settings
from posembed.training.plans import run_plan, standing

from . import (
    beginning,
    causes,
    far_questions,
    ladder,
    ladder_large,
    length,
    length_doses,
    once_or_again,
    one_start,
    own_rates,
    past_length,
)
from .bundles import SHIPPED
from .search import results_in, run_searches
from .training.runs import train

RESULTS = Path(__file__).resolve().parent.parent / "results"


def _shipped(name: str) -> Callable[..., None]:
    """Run a study that ships; what is trained further is planned when what it goes on from is there."""

    def run(out: Path, **how: Any) -> None:
        # Only of these tasks something goes on from trained models.
        settings = Settings(out, **how, save_models=name == "tasks", train=partial(train, folder=out))
        planned = None
        # What is left in the end are trials that give no result: at their rates training diverges.
        while (plan := SHIPPED[name].plan(results_in(out))) != planned and standing(plan, out).left:
            if remark := run_plan(plan, settings)[1]:
                print(f"studies: in the trials, {remark}", file=sys.stderr)
            planned = plan

    return run


# Those whose rates are searched.
SEARCHED = {
    each.NAME: each
    for each in (
        beginning,
        causes,
        far_questions,
        ladder,
        ladder_large,
        once_or_again,
        one_start,
        own_rates,
        past_length,
    )
}
STUDIES: dict[str, Callable[..., None]] = {
    **{name: _shipped(name) for name in SHIPPED},
    **{name: partial(run_searches, each.arms) for name, each in SEARCHED.items()},
    length.NAME: length.run_study,
    length_doses.NAME: length_doses.run_study,
}


def main() -> None:
    """Run what is left of a study."""
    parser = argparse.ArgumentParser(prog="python -m studies", description=__doc__)
    parser.add_argument("name", choices=STUDIES)
    parser.add_argument("--out", type=Path, help="of the results; results/NAME by default")
    parser.add_argument("--workers", type=int, default=-1, help="runs at a time; -1 for one a core")
    parser.add_argument("--engine", default="joblib", help="serial, joblib (processes) or ray (a cluster)")
    asked = parser.parse_args()
    try:
        STUDIES[asked.name](asked.out or RESULTS / asked.name, n_workers=asked.workers, engine=asked.engine)
    except RunError as error:
        sys.exit(f"studies: {error}")


if __name__ == "__main__":
    main()
