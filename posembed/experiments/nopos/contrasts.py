"""What was to be compared, computed from the runs; the letters are those of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import torch

from ...data import load_corpus
from ...encodings import schemes
from ...errors import RunError
from ...stats import Interval, difference
from ..result import RunResult
from ..training.measure import GROUP
from .plan import DROPPED, FEW_SEEDS, OTHER_LENGTHS, OTHER_RATES, PARTS, SCHEMES, SMALL

PART_NAMES = {part.name: part for parts in PARTS.values() for part in parts}
THREE_LAYERS = "causal, rope in three layers of four"


def reported(name: str, runs: Sequence[RunResult]) -> list[RunResult]:
    """The runs of a part with the learning rate that was chosen for it, one for each seed, in order.

    Args:
        name: of the part.
        runs: of the study, those that chose the rate among them.

    Raises:
        RunError: no such part, or one whose runs are not all there.

    Example:
        >>> from posembed.experiments.nopos import reported
        >>> reported("causal, rope", [])
        Traceback (most recent call last):
        posembed.errors.RunError: the part 'causal, rope' is not complete; run posembed grid nopos
    """
    if name not in PART_NAMES:
        raise RunError(f"there is no part {name!r}; there are: {'; '.join(PART_NAMES)}")
    part, by_key = PART_NAMES[name], {run.config.key: run for run in runs}
    chosen = part.chosen(runs) or ()
    if any(config.key not in by_key for config in (*part.tuning, *chosen)):
        raise RunError(f"the part {name!r} is not complete; run posembed grid nopos")
    return [by_key[config.key] for config in chosen]


def contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """Compute every planned contrast; losses in nats a character, errors of probes in positions.

    Raises:
        RunError: a part that is not complete.

    Example:
        >>> from posembed.experiments.nopos import contrasts
        >>> contrasts([])
        Traceback (most recent call last):
        posembed.errors.RunError: the part 'causal, nopos' is not complete; run posembed grid nopos
    """
    parts = {name: reported(name, runs) for name in PART_NAMES}
    return {**_schemes(parts), **_masked(parts), **_longer(parts), **_further(parts), **_layers(parts)}


def frequency_loss() -> float:
    """The mean loss of guessing each character of the test text by its frequency in the training text, in nats.

    It is the cross-entropy that a masked model can reach without knowing where any other character stands or which
    ones there are.

    Example:
        >>> from posembed.experiments.nopos import frequency_loss
        >>> 2.9 < frequency_loss() < 3.1
        True
    """
    return _frequency_loss(SMALL.data)


@cache
def _frequency_loss(data: str) -> float:
    corpus = load_corpus(data)
    counts = torch.bincount(corpus.train, minlength=len(corpus.vocabulary)).double()
    # A character that the training text lacks would cost infinitely much.
    chances = (counts + 1) / (counts + 1).sum()
    return float(-chances.log()[corpus.test].mean())


def loss_past(run: RunResult, first: int = 64, end: int = 256) -> float:
    """The mean loss of a run at positions from ``first`` to before ``end``, both multiples of 16.

    Raises:
        RunError: the run was not tested there.

    Example:
        >>> from posembed import RunConfig, RunResult
        >>> from posembed.experiments.nopos import loss_past
        >>> loss_past(RunResult(RunConfig(), {"loss_by_position": [2.0] * 4 + [3.0] * 12}, {}, "", 1.0))
        3.0
    """
    groups = run.metrics.get("loss_by_position", [])[first // GROUP : end // GROUP]
    if first % GROUP or end % GROUP or len(groups) < (end - first) // GROUP:
        raise RunError(
            f"the run {run.config.key} has no loss at positions {first} to {end - 1} in groups of {GROUP}; "
            "choose others"
        )
    return float(np.mean(groups))


def rise_past(runs: Sequence[RunResult]) -> Interval:
    """By how much the loss past the trained length is above that at the end of it, in nats; one number for each run.

    The mean at positions 64 to 255 minus the mean at 48 to 63; 0 where a model does not notice the end.

    Raises:
        RunError: a run that was not tested there, or fewer than two runs.

    Example:
        >>> from posembed import RunConfig, RunResult
        >>> from posembed.experiments.nopos import rise_past
        >>> metrics = [{"loss_by_position": [2.0] * 4 + [past] * 12} for past in (2.9, 3.1)]
        >>> round(rise_past([RunResult(RunConfig(), each, {}, "", 1.0) for each in metrics]).mean, 6)
        1.0
    """
    return difference([loss_past(run) for run in runs], [loss_past(run, 48, 64) for run in runs])


def lowest_error(run: RunResult, inspection: str = "layers") -> float:
    """The lowest error of the probe over all layers that attend, in positions.

    Raises:
        RunError: the layers of the run were not probed.

    Example:
        >>> from posembed import RunConfig, RunResult
        >>> from posembed.experiments.nopos import lowest_error
        >>> lowest_error(RunResult(RunConfig(), {"layers": {"mae": [0.1, 3.0, 2.0]}}, {}, "", 1.0))
        2.0
    """
    if inspection not in run.metrics:
        raise RunError(f"the run {run.config.key} has no inspection {inspection!r}; choose one that has")
    return min(run.metrics[inspection]["mae"][1:])


Parts = dict[str, list[RunResult]]


def _losses(runs: Sequence[RunResult]) -> list[float]:
    return [run.metrics["loss"] for run in runs]


def _schemes(parts: Parts) -> dict[str, Interval]:
    """A and b."""
    found = {
        f"causal: {scheme} minus nopos": _loss(parts, f"causal, {scheme}", "causal, nopos") for scheme in SCHEMES[1:]
    }
    for scheme in ("learned", "alibi"):
        found[f"larger: {scheme} minus nopos"] = _loss(parts, f"larger, {scheme}", "larger, nopos")
    for length in OTHER_LENGTHS:
        names = [f"larger, {scheme}, length {length}" for scheme in ("learned", "nopos")]
        found[f"larger, length {length}: learned minus nopos"] = _loss(parts, *names)
    return found


def _loss(parts: Parts, one: str, other: str) -> Interval:
    return difference(_losses(parts[one]), _losses(parts[other]))


def _masked(parts: Parts) -> dict[str, Interval]:
    """C."""
    nopos = _losses(parts["masked, nopos"])
    found = {"masked: nopos minus frequency": difference(nopos, [frequency_loss()] * len(nopos))}
    found["masked: learned minus nopos"] = _loss(parts, "masked, learned", "masked, nopos")
    for rate in OTHER_RATES:
        names = [f"masked, {scheme}, {rate:.0%} hidden" for scheme in ("learned", "nopos")]
        found[f"masked, {rate:.0%} hidden: learned minus nopos"] = _loss(parts, *names)
    return found


def _longer(parts: Parts) -> dict[str, Interval]:
    """D and e."""
    found = {f"past the trained length: {scheme}": rise_past(parts[f"causal, {scheme}"]) for scheme in schemes()}
    few = {**parts, "causal, rope": parts["causal, rope"][: len(FEW_SEEDS)]}
    return found | _both("rope in three layers of four minus rope", few, THREE_LAYERS, "causal, rope")


def _further(parts: Parts) -> dict[str, Interval]:
    """F."""
    found: dict[str, Interval] = {}
    for scheme in DROPPED:
        without = f"causal, {scheme}, further without"
        found |= _both(f"{scheme}, further: without minus with", parts, without, f"causal, {scheme}, further")
        found |= _both(f"{scheme}, further without, minus nopos", parts, without, "causal, nopos, further")
    return found


def _both(name: str, parts: Parts, one: str, other: str) -> dict[str, Interval]:
    """A difference at the trained length, and past it."""
    past = difference([loss_past(run) for run in parts[one]], [loss_past(run) for run in parts[other]])
    return {name: _loss(parts, one, other), f"{name}, past the trained length": past}


def _layers(parts: Parts) -> dict[str, Interval]:
    """G and h."""
    found: dict[str, Interval] = {}
    for size in ("causal", "larger"):
        nopos, learned = parts[f"{size}, nopos"], parts[f"{size}, learned"]
        errors = [lowest_error(run) for run in nopos]
        untrained = [lowest_error(run, "untrained") for run in nopos]
        found[f"{size}, probe: nopos, trained minus untrained"] = difference(errors, untrained)
        found[f"{size}, probe: nopos minus learned"] = difference(errors, [lowest_error(run) for run in learned])
        found[f"{size}, shuffled prefix: nopos minus learned"] = difference(_lost(nopos), _lost(learned))
    masked = parts["masked, nopos"]
    middle = [run.metrics["layers"]["middle_guess"] for run in masked]
    found["masked, probe: nopos minus the middle"] = difference([lowest_error(run) for run in masked], middle)
    return found


def _lost(runs: Sequence[RunResult]) -> list[float]:
    return [run.metrics["prefix"]["shuffled"] - run.metrics["prefix"]["intact"] for run in runs]
