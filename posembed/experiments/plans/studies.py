"""How far a study is, and what is left of it to run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...errors import RunError
from ..config import RunConfig
from ..files.store import missing, results_of
from ..grids.engines import Settings
from ..grids.grid import Progress, check_grid, report, run_all
from ..result import RunResult
from .study import Study


@dataclass(frozen=True)
class Standing:
    """How far a study is.

    Attributes:
        n_runs: how many runs it has.
        left: those that have no result; where their learning rate is not chosen yet, with another one.

    Example:
        >>> from posembed.experiments.plans.presets import load_study
        >>> from posembed.experiments.plans.studies import standing
        >>> standing(load_study("nopos", "smoke"), "no-such-folder").n_done
        0
    """

    n_runs: int
    left: tuple[RunConfig, ...]

    @property
    def n_done(self) -> int:
        """How many have a result."""
        return self.n_runs - len(self.left)


def standing(study: Study, out: Path | str) -> Standing:
    """Say which runs of a study have no result yet; nothing is run.

    Raises:
        RunError: a stored result that is damaged.

    Example:
        >>> from posembed.experiments.plans.presets import load_study
        >>> from posembed.experiments.plans.studies import standing
        >>> standing(load_study("encodings"), "no-such-folder").n_done
        0
    """
    left = missing(study.tuning, out)
    untuned = {config.key for config in left}
    results = results_of(study.tuning, out)
    for part in study.parts:
        chosen = None if any(config.key in untuned for config in part.tuning) else part.chosen(results)
        left += list(part.runs) if chosen is None else missing(chosen, out)
    return Standing(study.n_runs, tuple(left))


def run_study(
    study: Study, engine: str, settings: Settings, progress: Progress | None = None
) -> tuple[dict[str, list[RunResult]], str]:
    """Run what is left of a study: all tuning runs, then all others with the rates that these have chosen.

    A learning rate at which training diverges is not chosen; the study goes on.

    Args:
        study: the plan.
        engine: as for `posembed.run_grid`.
        settings: of the engine.
        progress: called after each run with its config and its result, or None where it failed.

    Returns:
        The results of the reported runs by part, and a line about tuning runs that failed, empty where none did.

    Raises:
        RunError: as for `posembed.run_grid`.
        RunError: reported runs failed, or all tuning runs of a part; the others are stored.

    Example:
        >>> from pathlib import Path
        >>> from posembed.experiments.grids.engines import Settings
        >>> from posembed.experiments.plans.study import Study
        >>> from posembed.experiments.plans.studies import run_study
        >>> run_study(Study("none", "smoke", ()), "serial", Settings(Path("no-such-folder")))
        ({}, '')
    """
    check_grid([*study.tuning, *(config for part in study.parts for config in part.runs)], engine, settings)
    untuned = run_all(study.tuning, engine, settings, progress)
    results = results_of(study.tuning, settings.out)
    chosen = study.chosen(results)
    failed = run_all(chosen, engine, settings, progress)
    without = [part for part in study.parts if part.chosen(results) is None]
    if failed or without:
        waiting = sum(len(part.runs) for part in without)
        raise RunError(report([*untuned, *failed], study.n_runs, waiting))
    remark = report(untuned, len(study.tuning)) if untuned else ""
    return {part.name: results_of(part.chosen(results) or (), settings.out) for part in study.parts}, remark
