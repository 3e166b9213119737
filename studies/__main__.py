"""Run a study: ``python -m studies NAME``; ``make study NAME=...`` does it in the project's environment."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from posembed.errors import RunError

from . import causes, ladder, once_or_again, one_start
from .arms import results_in, run_arms

RESULTS = Path(__file__).resolve().parent.parent / "results"


def _one_start(out: Path, n_workers: int) -> None:
    run_arms(one_start.ARMS, out, n_workers=n_workers)


def _ladder(out: Path, n_workers: int) -> None:
    run_arms(ladder.arms(), out, n_workers=n_workers)
    # Those whose rate is carried up.
    run_arms(ladder.arms(results_in(out)), out, n_workers=n_workers)


def _causes(out: Path, n_workers: int) -> None:
    run_arms(causes.ARMS, out, n_workers=n_workers)


def _once_or_again(out: Path, n_workers: int) -> None:
    run_arms(once_or_again.ARMS, out, n_workers=n_workers, save_models=True)


STUDIES = {
    one_start.NAME: _one_start,
    ladder.NAME: _ladder,
    causes.NAME: _causes,
    once_or_again.NAME: _once_or_again,
}


def main() -> None:
    """Run what is left of a study."""
    parser = argparse.ArgumentParser(prog="python -m studies", description=__doc__)
    parser.add_argument("name", choices=STUDIES)
    parser.add_argument("--out", type=Path, help="of the results; results/NAME by default")
    parser.add_argument("--workers", type=int, default=-1, help="runs at a time; -1 for one a core")
    asked = parser.parse_args()
    try:
        STUDIES[asked.name](asked.out or RESULTS / asked.name, asked.workers)
    except RunError as error:
        sys.exit(f"studies: {error}")


if __name__ == "__main__":
    main()
