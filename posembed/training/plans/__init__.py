"""Studies: parts, whose runs share a learning rate, and the runs that choose it; how far one is; running the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...checks import check_each
from ...errors import RunError
from ..config import RunConfig
from ..grid import Progress, Settings, report, run_all
from ..results import RunResult, missing, results_of

__all__ = ["Part", "Standing", "Study", "run_study", "standing"]


@dataclass(frozen=True)
class Part:
    """Runs that share a learning rate.

    Attributes:
        name: for people.
        runs: with the learning rate that is given; with tuning runs, with any.
        tuning: runs alike but for their learning rates and seeds; the lowest mean validation loss gives the rate, among
            those at which every seed has a result.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.training.plans import Part
        >>> Part("nopos", (RunConfig(seed=1),)).chosen([])[0].seed
        1
    """

    name: str
    runs: tuple[RunConfig, ...]
    tuning: tuple[RunConfig, ...] = ()

    def chosen(self, results: Iterable[RunResult]) -> tuple[RunConfig, ...] | None:
        """The runs with the rate that the tuning runs choose; None while none of them has a result."""
        if not self.tuning:
            return self.runs
        results = check_each("runs", results, RunResult, "a list of results, as load_runs returns", RunError)
        losses = {result.config.key: result.metrics["validation_loss"] for result in results}
        by_rate: dict[float, list[float]] = {}
        for config in self.tuning:
            by_rate.setdefault(config.learning_rate, []).append(losses.get(config.key, math.inf))
        best = min(by_rate, key=lambda rate: sum(by_rate[rate]))
        if sum(by_rate[best]) == math.inf:
            return None
        return tuple(replace(run, learning_rate=best) for run in self.runs)

    def reported(self, results: Sequence[RunResult]) -> list[RunResult]:
        """The results of the runs with the rate that was chosen, in their order.

        Raises:
            RunError: not all runs are there.
        """
        chosen, by_key = self.chosen(results) or (), {result.config.key: result for result in results}
        if not chosen or any(config.key not in by_key for config in (*self.tuning, *chosen)):
            raise RunError(f"the part {self.name!r} is not complete; run its study, with posembed grid")
        return [by_key[config.key] for config in chosen]


@dataclass(frozen=True)
class Study:
    """Runs that belong together.

    Attributes:
        name: of the study.
        preset: its size.
        parts: the runs.
        save_tables: whether the trained position tables are what it is for.

    Example:
        >>> from posembed.training.plans.presets import load_study
        >>> load_study("nopos", "smoke").parts[0].name
        'causal, nopos'
    """

    name: str
    preset: str
    parts: tuple[Part, ...]
    save_tables: bool = False

    @property
    def tuning(self) -> list[RunConfig]:
        """All tuning runs, each once."""
        return list({config.key: config for part in self.parts for config in part.tuning}.values())

    @property
    def n_runs(self) -> int:
        """How many runs it has with those of the tuning."""
        return len(self.tuning) + sum(len(part.runs) for part in self.parts)

    def with_changes(self, **changes: Any) -> Study:
        """The study with other settings in all of its runs: another text, another device."""
        parts = [
            Part(part.name, *(tuple(replace(each, **changes) for each in runs) for runs in (part.runs, part.tuning)))
            for part in self.parts
        ]
        return replace(self, parts=tuple(parts))


@dataclass(frozen=True)
class Standing:
    """How far a study is.

    Attributes:
        n_runs: how many runs it has, each counted once: with the learning rate that is chosen one may be a run of the
            tuning.
        left: those that have no result; where their learning rate is not chosen yet, with another one.
    """

    n_runs: int
    left: tuple[RunConfig, ...]

    @property
    def n_done(self) -> int:
        """How many have a result."""
        return self.n_runs - len(self.left)


def standing(study: Study, out: Path | str) -> Standing:
    """Say which runs of a study have no result yet; nothing is run.

    Args:
        study: the plan.
        out: the folder of its results.

    Raises:
        RunError: a stored result that is damaged.

    Example:
        >>> from posembed.training.plans import standing
        >>> from posembed.training.plans.presets import load_study
        >>> standing(load_study("encodings"), "no-such-folder").n_done
        0
    """
    left = missing(study.tuning, out)
    untuned = {config.key for config in left}
    results, known, n_waiting = results_of(study.tuning, out), {config.key for config in study.tuning}, 0
    for part in study.parts:
        chosen = None if any(config.key in untuned for config in part.tuning) else part.chosen(results)
        left += list(part.runs) if chosen is None else missing(chosen, out)
        known |= {config.key for config in chosen or ()}
        n_waiting += len(part.runs) if chosen is None else 0
    return Standing(len(known) + n_waiting, tuple(left))


def run_study(
    study: Study, settings: Settings, progress: Progress | None = None
) -> tuple[dict[str, list[RunResult]], str]:
    """Run what is left of a study: all tuning runs, then all others with the rates that these have chosen.

    A learning rate at which training diverges is not chosen; the study goes on.

    Args:
        study: the plan.
        settings: the folder, the engine and what is kept.
        progress: called after each run with its config and its result, or None where it failed.

    Returns:
        The results of the reported runs by part, and a line about tuning runs that failed, empty where none did.

    Raises:
        RunError: as for `posembed.run_grid`.
        RunError: reported runs failed, or all tuning runs of a part; the others are stored.

    Example:
        >>> from pathlib import Path
        >>> from posembed.training.grid import Settings
        >>> from posembed.training.plans import Study, run_study
        >>> run_study(Study("none", "smoke", ()), Settings(Path("no-such-folder"), "serial"))
        ({}, '')
    """
    settings = replace(settings, save_tables=study.save_tables)
    settings.check([*study.tuning, *(config for part in study.parts for config in part.runs)])
    untuned = run_all(study.tuning, settings, progress)
    results = results_of(study.tuning, settings.out)
    chosen = {part.name: part.chosen(results) for part in study.parts}
    failed = run_all([config for runs in chosen.values() for config in runs or ()], settings, progress)
    n_waiting = sum(len(part.runs) for part in study.parts if chosen[part.name] is None)
    if failed or n_waiting:
        raise RunError(report([*untuned, *failed], study.n_runs, n_waiting))
    remark = report(untuned, len(study.tuning)) if untuned else ""
    return {name: results_of(runs or (), settings.out) for name, runs in chosen.items()}, remark
