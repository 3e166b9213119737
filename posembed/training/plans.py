"""Plans of studies: arms, whose runs share a learning rate, and the trials that choose it; how far one is; the rest.

How long the rest takes is estimated from a few steps that are timed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import RunError
from ..inference import torch_threads
from .config import RunConfig
from .grid import Progress, Settings, report, run_all
from .machine import check_device, seeded
from .measure import TOKENS, TOKENS_BY_POSITION
from .results import RunResult, missing, results_of
from .runs import prepared

# Runs that differ in these alone take as long for each step.
FREE = ("seed", "learning_rate", "weight_decay", "warmup", "steps", "preset")
TIMED_STEPS = 3


@dataclass(frozen=True)
class Arm:
    """Runs that share a learning rate.

    Attributes:
        name: for people.
        runs: with the learning rate that is given; with trials, with any.
        trials: runs alike but for their learning rates and seeds; the lowest mean validation loss gives the rate, among
            those at which every seed has a result.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.training.plans import Arm
        >>> Arm("nopos", (RunConfig(seed=1),)).chosen([])[0].seed
        1
    """

    name: str
    runs: tuple[RunConfig, ...]
    trials: tuple[RunConfig, ...] = ()

    def chosen(self, results: Iterable[RunResult]) -> tuple[RunConfig, ...] | None:
        """The runs with the rate that the trials choose; None while none of them has a result."""
        if not self.trials:
            return self.runs
        losses = {result.config.key: result.metrics["validation_loss"] for result in results}
        by_rate: dict[float, list[float]] = {}
        for config in self.trials:
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
        if not chosen or any(config.key not in by_key for config in (*self.trials, *chosen)):
            raise RunError(f"the arm {self.name!r} is not complete; run its study, with make study")
        return [by_key[config.key] for config in chosen]


@dataclass(frozen=True)
class Plan:
    """What a study runs.

    Attributes:
        name: of the study.
        arms: the runs.
        save_tables: whether the trained position tables are what it is for.
        preset: its size.

    Example:
        >>> from posembed.stored import load_plan
        >>> load_plan("nopos").arms[0].name
        'causal, nopos'
    """

    name: str
    arms: tuple[Arm, ...]
    save_tables: bool = False
    preset: str = "cpu"

    @property
    def trials(self) -> list[RunConfig]:
        """All trials, each once."""
        return list({config.key: config for arm in self.arms for config in arm.trials}.values())

    @property
    def n_runs(self) -> int:
        """How many runs it has with its trials."""
        return len(self.trials) + sum(len(arm.runs) for arm in self.arms)

    def with_changes(self, **changes: Any) -> Plan:
        """The plan with other settings in all of its runs: another text, another device."""
        arms = [
            Arm(arm.name, *(tuple(replace(each, **changes) for each in runs) for runs in (arm.runs, arm.trials)))
            for arm in self.arms
        ]
        return replace(self, arms=tuple(arms))


@dataclass(frozen=True)
class Standing:
    """How far a study is.

    Attributes:
        n_runs: how many runs it has, each counted once: with the learning rate that is chosen one may be a trial.
        left: those that have no result; where their learning rate is not chosen yet, with another one.
    """

    n_runs: int
    left: tuple[RunConfig, ...]

    @property
    def n_done(self) -> int:
        """How many have a result."""
        return self.n_runs - len(self.left)


def standing(plan: Plan, out: Path | str) -> Standing:
    """Say which runs of a plan have no result yet; nothing is run.

    Args:
        plan: of the study.
        out: the folder of its results.

    Raises:
        RunError: a stored result that is damaged.

    Example:
        >>> from posembed.stored import load_plan
        >>> from posembed.training.plans import standing
        >>> standing(load_plan("encodings"), "no-such-folder").n_done
        0
    """
    left = missing(plan.trials, out)
    untried = {config.key for config in left}
    results, known, n_waiting = results_of(plan.trials, out), {config.key for config in plan.trials}, 0
    for arm in plan.arms:
        chosen = None if any(config.key in untried for config in arm.trials) else arm.chosen(results)
        left += list(arm.runs) if chosen is None else missing(chosen, out)
        known |= {config.key for config in chosen or ()}
        n_waiting += len(arm.runs) if chosen is None else 0
    return Standing(len(known) + n_waiting, tuple(left))


def estimate(configs: Iterable[RunConfig]) -> float:
    """Say about how many seconds runs will take on this machine, one after the other.

    Of each kind of run a few steps are timed; a token that is measured takes about a third of one that is trained on.

    Args:
        configs: the runs.

    Raises:
        RunError: a device that is not there.
        CorpusError: a text that cannot be read or is too short.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.training.plans import estimate
        >>> estimate([RunConfig(n_layers=1, d_model=8, n_heads=2, batch_size=2)]) > 0
        True
    """
    step_of: dict[str, float] = {}
    seconds = 0.0
    for config in configs:
        kind = replace(config, **{name: getattr(RunConfig, name) for name in FREE}).key
        if kind not in step_of:
            step_of[kind] = time_a_step(config)
        by_position = 0 if config.test_length is None else 1 + len(config.test_scalings)
        measured = (2 * TOKENS + by_position * TOKENS_BY_POSITION) / (config.batch_size * config.length)
        seconds += step_of[kind] * (config.steps + measured / 3)
    return seconds


def time_a_step(config: RunConfig) -> float:
    """The seconds of a training step, the mean of a few after one that does not count."""
    check_device(config)
    few, ends = replace(config, steps=1 + TIMED_STEPS), list[float]()
    with torch_threads(config.threads), seeded(config):
        training = prepared(few)[-1]
        training.run(lambda: ends.append(training.seconds))
    return (ends[-1] - ends[0]) / TIMED_STEPS


def run_plan(
    plan: Plan, settings: Settings, progress: Progress | None = None
) -> tuple[dict[str, list[RunResult]], str]:
    """Run what is left of a study: all trials, then all others with the rates that these have chosen.

    A learning rate at which training diverges is not chosen; the study goes on.

    Args:
        plan: of the study.
        settings: the folder, the engine and what is kept.
        progress: called after each run with its config and its result, or None where it failed.

    Returns:
        The results of the reported runs by arm, and a line about trials that failed, empty where none did.

    Raises:
        RunError: as for `posembed.run_grid`.
        RunError: reported runs failed, or all trials of an arm; the others are stored.

    Example:
        >>> from pathlib import Path
        >>> from posembed.training.grid import Settings
        >>> from posembed.training.plans import Plan, run_plan
        >>> run_plan(Plan("none", ()), Settings(Path("no-such-folder"), "serial"))
        ({}, '')
    """
    settings = replace(settings, save_tables=plan.save_tables)
    settings.check([*plan.trials, *(config for arm in plan.arms for config in arm.runs)])
    untried = run_all(plan.trials, settings, progress)
    results = results_of(plan.trials, settings.out)
    chosen = {arm.name: arm.chosen(results) for arm in plan.arms}
    failed = run_all([config for runs in chosen.values() for config in runs or ()], settings, progress)
    n_waiting = sum(len(arm.runs) for arm in plan.arms if chosen[arm.name] is None)
    if failed or n_waiting:
        raise RunError(report([*untried, *failed], plan.n_runs, n_waiting))
    remark = report(untried, len(plan.trials)) if untried else ""
    return {name: results_of(runs or (), settings.out) for name, runs in chosen.items()}, remark


def miniature(plan: Plan) -> Plan:
    """A plan in minutes: two small layers, an eighth of each length, one seed, two learning rates."""
    arms = [
        Arm(arm.name, (_tiny(arm.runs[0]),), tuple(_tiny(config) for config in arm.trials[1:3])) for arm in plan.arms
    ]
    return replace(plan, preset="smoke", arms=tuple(arms))


def _tiny(config: RunConfig) -> RunConfig:
    changes: dict[str, Any] = {"n_layers": 2, "d_model": 16, "n_heads": 2, "batch_size": 8, "steps": 20, "warmup": 5}
    changes |= {"length": config.length // 8, "test_length": config.test_length and config.test_length // 8}
    if config.layers_with_positions is not None:
        changes["layers_with_positions"] = (0,)
    if config.device != "cpu":
        changes |= {"device": "cpu", "data": RunConfig.data, "text_hash": None}
    return replace(config, **changes, preset="smoke")
