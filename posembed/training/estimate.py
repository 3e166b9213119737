"""About how long runs will take: from stored runs like them, or from a few steps and some measuring that are timed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..inference import torch_threads
from .config import RunConfig
from .loop import Training
from .machine import check_device, machine_of, seeded
from .measure import TOKENS, TOKENS_BY_POSITION, text_losses
from .objectives import OBJECTIVES, drawn_from
from .results import RunResult
from .runs import load_text, make_model

# Runs that differ in these alone take as long for each step.
FREE = ["seed", "learning_rate", "weight_decay", "warmup", "steps", "preset"]
TIMED_STEPS = 3
# Tokens that are measured to see how long that takes.
TIMED_TOKENS = 2**13


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
        The estimate. Other work on the machine is in it only as far as it was there when its source was measured; the
        time to start only where stored runs were.

    Raises:
        RunError: a device that is not there.
        CorpusError: a text that cannot be read or is too short.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.training.estimate import estimate
        >>> estimate([RunConfig(n_layers=1, d_model=8, n_heads=2, batch_size=2)]).source
        'from timed steps'
    """
    for config in configs:
        check_device(config)
    here = {machine_of(config) for config in configs}
    stored: dict[str, list[float]] = {}
    for result in results:
        if result.machine in here:
            stored.setdefault(_kind(result.config), []).append(result.wall_seconds / result.config.steps)
    timed: dict[str, tuple[float, float]] = {}
    seconds, sources = 0.0, []
    for config in configs:
        kind = _kind(config)
        if kind in stored:
            seconds += statistics.median(stored[kind]) * config.steps
            sources.append("stored runs like them")
            continue
        if kind not in timed:
            timed[kind] = time_a_run(config)
        step, measuring = timed[kind]
        seconds += step * config.steps + measuring
        sources.append("timed steps")
    return Estimate(seconds, "from " + " and ".join(dict.fromkeys(sources)))


def time_a_run(config: RunConfig) -> tuple[float, float]:
    """Time a few training steps, after one that does not count, and a part of the measuring.

    Returns:
        Seconds a step, and seconds that all measuring takes.
    """
    ends: list[float] = []
    few = replace(config, steps=1 + TIMED_STEPS)
    with torch_threads(config.threads), seeded(config):
        corpus, objective = load_text(config), OBJECTIVES[config.objective](config)
        model = make_model(few, corpus)
        training = Training(model, drawn_from(corpus.train, model, objective, few), few)
        training.run(lambda: ends.append(training.seconds))
        model.eval()
        measuring, parts = 0.0, [(config.length, 2 * TOKENS)]
        if config.test_length is not None:
            parts.append((config.test_length, (1 + len(config.test_scalings)) * TOKENS_BY_POSITION))
        for length, n_tokens in parts:
            began, n_timed = time.perf_counter(), max(TIMED_TOKENS, 2 * length)
            list(text_losses(model, corpus.test, objective, length, n_timed))
            measuring += (time.perf_counter() - began) * n_tokens / n_timed
    return (ends[-1] - ends[0]) / TIMED_STEPS, measuring


def _kind(config: RunConfig) -> str:
    return replace(config, **{name: getattr(RunConfig, name) for name in FREE}).key
