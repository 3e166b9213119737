"""Arms of a study whose learning rate is searched past the edge of those tried first."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from posembed.errors import RunError
from posembed.training import RunConfig, RunResult, missing, read_results, run_grid
from posembed.training.plans import Arm

from .training.runs import train

# From the results that there are to the searches of a study.
Searches = Callable[[Sequence["RunResult"]], Sequence["Search"]]


@dataclass(frozen=True)
class Search:
    """Runs alike but for their seeds, at the learning rate that runs with other seeds choose for them.

    The rate is that with the lowest mean validation loss. Where it is the lowest or the highest of those tried, the
    next one is tried too, until it is neither: a rate at the edge says only where to look next.

    Attributes:
        name: short, the same in the whole book.
        run: the settings; its seed is a placeholder, and its rate too where there is a trial.
        seeds: of the reported runs.
        trial: the settings of the runs that choose the rate; None where a rule gives it.
        trial_seeds: of those runs, which no reported run has.
        rates: those tried first, rising by one factor.
    """

    name: str
    run: RunConfig
    seeds: tuple[int, ...]
    trial: RunConfig | None = None
    trial_seeds: tuple[int, ...] = ()
    rates: tuple[float, ...] = ()

    def trials_at(self, rate: float) -> list[RunConfig]:
        """The trials of one rate."""
        return [] if self.trial is None else [replace(self.trial, learning_rate=rate, seed=s) for s in self.trial_seeds]

    def losses(self, results: Iterable[RunResult]) -> dict[float, float]:
        """By rate the mean over the trials, in rising order of rates; infinite where one has no result."""
        by_key = {result.config.key: result for result in results}
        rates = {*self.rates, *(result.config.learning_rate for result in by_key.values())}
        found = {}
        for rate in sorted(rates):
            its = [by_key.get(config.key) for config in self.trials_at(rate)]
            if rate in self.rates or any(its):
                found[rate] = fmean(each.metrics["validation_loss"] if each else math.inf for each in its)
        return found

    def next_trials(self, results: Sequence[RunResult], failed: Collection[str] = ()) -> list[RunConfig]:
        """The trials that are to be run next; none where the rate is known.

        Args:
            results: those there are.
            failed: keys of trials that gave no result, such as those that diverged.
        """
        if self.trial is None:
            return []
        done = {result.config.key for result in results} | set(failed)
        losses = self.losses(results)
        best, ratio = min(losses, key=losses.__getitem__), self.rates[1] / self.rates[0]
        wanted = list(losses)
        if all(config.key in done for rate in losses for config in self.trials_at(rate)):
            wanted = [_short(best * ratio)] if best == max(losses) else []
            wanted += [_short(best / ratio)] if best == min(losses) else []
        return [config for rate in wanted for config in self.trials_at(rate) if config.key not in done]

    def rate(self, results: Sequence[RunResult]) -> float:
        """The rate of the reported runs."""
        if self.trial is None:
            return self.run.learning_rate
        losses = self.losses(results)
        return min(losses, key=losses.__getitem__)

    def runs(self, results: Sequence[RunResult]) -> list[RunConfig]:
        """The reported runs, once the trials are there."""
        return [replace(self.run, seed=seed, learning_rate=self.rate(results)) for seed in self.seeds]

    def reported(self, results: Sequence[RunResult]) -> list[RunResult]:
        """The results of the reported runs, in the order of the seeds.

        Raises:
            RunError: some are not there.
        """
        by_key = {result.config.key: result for result in results}
        runs = self.runs(results)
        if any(run.key not in by_key for run in runs):
            raise RunError(f"the arm {self.name!r} is not complete; run its study, with make study")
        return [by_key[run.key] for run in runs]

    def arm(self, results: Sequence[RunResult]) -> Arm:
        """The arm that was found: the reported runs, and the trials that have a result."""
        done = {result.config.key for result in results}
        trials = [config for rate in self.losses(results) for config in self.trials_at(rate) if config.key in done]
        return Arm(self.name, tuple(self.runs(results)), tuple(trials))


def _short(rate: float) -> float:
    """Two digits, so that 0.01 times 3 is 0.03 in each run's file."""
    return float(f"{rate:.2g}")


def run_searches(searches: Searches, out: Path, *, save_models: bool = False, **how: Any) -> None:
    """Run what is left: trials until each arm has its rate, then the reported runs; then what follows from these.

    Args:
        searches: of the study, from the results that there are.
        out: the folder of its results; what has one there is not run again.
        save_models: whether the weights of the reported runs are kept.
        how: the engine and more, as for `posembed.run_grid`.

    Raises:
        RunError: reported runs failed; a trial that diverges only loses its rate.
    """
    known = 0
    while len(found := searches(results_in(out))) > known:
        known = len(found)
        _run(found, out, save_models, **how)


def _run(searches: Sequence[Search], out: Path, save_models: bool, **how: Any) -> None:
    failed, how = set[str](), {**how, "out": out, "train": partial(train, folder=out)}
    while left := {run.key: run for each in searches for run in each.next_trials(results_in(out), failed)}:
        try:
            run_grid([*left.values()], **how)
        except RunError as error:
            print(f"studies: in the trials, {error}", file=sys.stderr)
        failed |= {run.key for run in missing(left.values(), out)}
    results = results_in(out)
    runs = {run.key: run for each in searches for run in each.runs(results)}
    run_grid([*runs.values()], **how, save_models=save_models)


def results_in(out: Path) -> list[RunResult]:
    """The results of a folder; none while it is not there."""
    return read_results(out) if out.is_dir() else []
