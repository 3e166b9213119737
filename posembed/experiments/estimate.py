"""About how long runs will take: from stored runs like them, or from a few steps that are timed."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..evaluating import torch_threads
from .config import RunConfig
from .machine import check_device, machine_of, seeded
from .measure import TOKENS, TOKENS_BY_POSITION
from .results import RunResult
from .runs import load_data, make_model
from .training import Training

# Runs that differ in these alone take as long for each step.
FREE = ["seed", "learning_rate", "weight_decay", "warmup", "steps", "further_steps", "drops_positions", "preset"]
TIMED_STEPS = 3


class Estimate(NamedTuple):
    """How long some runs will take, one after the other, in seconds; and where that comes from, in words."""

    seconds: float
    source: str


def estimate(configs: Sequence[RunConfig], results: Iterable[RunResult] = ()) -> Estimate:
    """Say about how long runs will take on this machine, one after the other.

    Args:
        configs: the runs.
        results: stored ones; those of a machine with another name are left out.

    Returns:
        The estimate. Other work on the machine is in it only as far as it was there when its source was measured, and
        the time to start only where stored runs were.

    Raises:
        RunError: a device that is not there.
        CorpusError: a text that cannot be read or is too short.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.experiments.estimate import estimate
        >>> estimate([RunConfig(n_layers=1, d_model=8, n_heads=2, batch_size=2)]).source
        'from a few timed steps'
    """
    for config in configs:
        check_device(config)
    here = {machine_of(config) for config in configs}
    rates: dict[str, list[float]] = {}
    for result in results:
        if result.machine in here:
            rates.setdefault(_kind(result.config), []).append(result.wall_seconds / result.config.all_steps)
    n_stored = sum(_kind(config) in rates for config in configs)
    seconds = 0.0
    for config in configs:
        if (kind := _kind(config)) not in rates:
            rates[kind] = [time_a_step(config) * (1 + _measuring(config) / config.all_steps)]
        seconds += statistics.median(rates[kind]) * config.all_steps
    said = {"stored runs like them": n_stored, "a few timed steps": len(configs) - n_stored}
    return Estimate(seconds, "from " + " and ".join(name for name, count in said.items() if count))


def time_a_step(config: RunConfig) -> float:
    """Time a few training steps, after one that does not count; in seconds a step."""
    seconds: list[float] = []
    few = replace(config, steps=1 + TIMED_STEPS, further_steps=None, drops_positions=False)
    with torch_threads(config.threads), seeded(config):
        corpus = load_data(config)
        training = Training(make_model(few, corpus), few, corpus)
        training.run(lambda: seconds.append(training.seconds))
    return (seconds[-1] - seconds[0]) / TIMED_STEPS


def _measuring(config: RunConfig) -> float:
    """How many steps take as long as measuring the model does: forwards is a third of a step."""
    by_position = 0 if config.test_length is None else TOKENS_BY_POSITION * (1 + len(config.test_scalings))
    return (2 * TOKENS + by_position) / (3 * config.batch_size * config.length)


def _kind(config: RunConfig) -> str:
    return replace(config, **{name: getattr(RunConfig, name) for name in FREE}).key
