"""About how long runs will take: from stored runs like them, or from a few steps that are timed."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch

from ...data import Characters, Corpus
from ...errors import RunError
from ..config import RunConfig
from ..result import RunResult
from ..training.loop import Training
from ..training.machine import check_device, machine_of, seeded, torch_threads
from ..training.measure import TOKENS, TOKENS_BY_POSITION
from ..training.speed import PEAKS, flops_per_token
from ..training.train import make_model

# Runs that differ in these alone take as long for each step.
FREE = (
    "seed",
    "learning_rate",
    "weight_decay",
    "warmup",
    "betas",
    "largest_gradient",
    "lowest_rate",
    "steps",
    "further_steps",
    "drops_positions",
    "preset",
)
# What a step may cost that is tried here, in floating-point operations: some seconds.
LARGEST_STEP = {"cpu": 2e11, "cuda": 1e15, "mps": 1e13}
TIMED_STEPS = 3
# Byte pairs, where a config does not say how many.
VOCAB_SIZE = 4096
# What larger steps are counted with: a GPU that many have, and the share of its arithmetic that training uses.
ASSUMED_GPU, ASSUMED_SHARE = "A100", 0.4


@dataclass(frozen=True)
class Estimate:
    """How long some runs will take, one after the other.

    Attributes:
        seconds: all of them.
        stored: how many of them are like stored runs of such a machine.
        timed: for how many of them a few steps were timed.
        counted: how many have steps that are too large to be tried here; their time is that of their arithmetic.

    Example:
        >>> from posembed.experiments.grids.estimate import Estimate
        >>> Estimate(60.0, 3, 1, 0).source
        'from stored runs like them and a few timed steps'
    """

    seconds: float
    stored: int
    timed: int
    counted: int

    @property
    def source(self) -> str:
        """Where it comes from, in words."""
        said = {
            "stored runs like them": self.stored,
            "a few timed steps": self.timed,
            f"their arithmetic, at {ASSUMED_SHARE:.0%} of one {ASSUMED_GPU}'s": self.counted,
        }
        return "from " + " and ".join(name for name, count in said.items() if count)


def estimate(configs: Sequence[RunConfig], results: Iterable[RunResult] = ()) -> Estimate:
    """Say about how long runs will take on this machine, one after the other.

    Args:
        configs: the runs.
        results: stored ones; those of a machine with another name are left out.

    Returns:
        The estimate. Other work on the machine is in it only as far as it was there when its source was measured, and
        the time to start only where stored runs were.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.experiments.grids.estimate import estimate
        >>> estimate([RunConfig(n_layers=1, d_model=8, n_heads=2, batch_size=2)]).timed
        1
    """
    known: dict[str, list[float]] = {}
    for result in results:
        if _is_here(result.config) and result.machine == machine_of(result.config):
            known.setdefault(_kind(result.config), []).append(result.wall_seconds / result.config.all_steps)
    steps = {kind: ("stored", statistics.median(times)) for kind, times in known.items()}
    seconds, counts = 0.0, {"stored": 0, "timed": 0, "counted": 0}
    for config in configs:
        kind = _kind(config)
        if kind not in steps:
            steps[kind] = _step(config)
        source, one = steps[kind]
        n_steps = config.all_steps + (0 if source == "stored" else _steps_of_measuring(config))
        seconds, counts[source] = seconds + one * n_steps, counts[source] + 1
    return Estimate(seconds, **counts)


def time_a_step(config: RunConfig) -> float:
    """Time a few training steps on random characters, after one that does not count; in seconds a step.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.experiments.grids.estimate import time_a_step
        >>> time_a_step(RunConfig(n_layers=1, d_model=8, n_heads=2, batch_size=2)) > 0
        True
    """
    seconds: list[float] = []
    few = replace(config, steps=1 + TIMED_STEPS, further_steps=None, drops_positions=False)
    with torch_threads(config.threads), seeded(config):
        corpus = _random_text(config)
        training = Training(make_model(few, corpus), few, corpus)
        training.run(lambda: seconds.append(training.seconds))
    return (seconds[-1] - seconds[0]) / TIMED_STEPS


def _step(config: RunConfig) -> tuple[str, float]:
    tokens = config.batch_size * config.length
    flops = flops_per_token(config, len(_vocabulary(config))) * tokens
    if _is_here(config) and flops <= LARGEST_STEP[torch.device(config.device).type]:
        return "timed", time_a_step(config)
    return "counted", flops / (ASSUMED_SHARE * PEAKS[ASSUMED_GPU])


def _steps_of_measuring(config: RunConfig) -> float:
    """As many steps as it takes to measure the model: forwards is a third of a step."""
    measured = 2 * TOKENS
    if config.test_length is not None:
        measured += TOKENS_BY_POSITION * (1 + len(config.test_scalings))
    return measured / (3 * config.batch_size * config.length)


def _kind(config: RunConfig) -> str:
    return replace(config, **{name: getattr(RunConfig, name) for name in FREE}).key


def _is_here(config: RunConfig) -> bool:
    try:
        check_device(config)
    except RunError:
        return False
    return True


def _vocabulary(config: RunConfig) -> Characters:
    """As many tokens as the run's text has, about; which ones does not matter to the time."""
    n_tokens = 100 if config.tokens == "characters" else config.vocab_size or VOCAB_SIZE
    return Characters(map(chr, range(0x4E00, 0x4E00 + n_tokens - 2)))


def _random_text(config: RunConfig) -> Corpus:
    vocabulary = _vocabulary(config)
    text = torch.randint(2, len(vocabulary), (100 * config.length,))
    return Corpus("random", vocabulary, text, text, text)
