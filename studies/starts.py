"""What sets the gap between a model without positions and one with them: how it starts, or how large it is?

Chapters 3 and 4 and *No positions at all* train the same schemes, sizes, data and steps, and find gaps of a different
size between none and the learned table. Their models differ in how they start alone. This plan was written before any
of its runs, but for those of start B at the seeds 0 to 5, which are runs of the NoPos study.

Starts: the standard deviation of the weights (sqrt(2 layers) times smaller for the two matrices of a layer that feed
the sum) and of the table, and whether word vectors are scaled (then their entries start at 1 instead of that
deviation). With a width of 64:

- A, "small, scaled": 0.02, scaled; that of chapters 3 and 4.
- B, "large": 1 / sqrt(width), not scaled; that of *No positions at all*.
- C, "small": 0.02, not scaled.
- D, "large, scaled": 1 / sqrt(width), scaled.

Sizes, at start B, one thing at a time: "wider", width 128 in place of 64 with as many heads (its deviation follows the
width); "longer", 2500 steps in place of 1500.

Arms: none and learned in all of them, RoPE in A and B. The learning rate of each arm is that with the lowest mean
validation loss of three seeds that no reported run has, in runs of 500 steps; among four rates, and where the best is
the first or the last of them, the next one (a third or three times as high) is tried too, until it is not. Then five
seeds.

What is compared, in nats of the test loss (the gap is none minus learned, seed by seed):

a. The gap in each start and at each size.
b. The gap in A minus that in B; the effect of the deviation (B and D minus A and C, halved), that of scaling (A and D
   minus B and C, halved), and what the two do together (A and B minus C and D, halved).
c. The gap at each size minus that in B.
d. A minus B: the loss of none, of learned and of RoPE; and RoPE minus none in A and in B.
e. Models without positions: the lowest error of the probe over all layers, untrained and trained, and the exponent of
   the variance of the first layer's attention, untrained; A minus B of each.
f. Over the four starts: does the order of the untrained errors predict the order of the losses of none? Four points
   can suggest it, and no more.

Intervals are Student's over five seeds, of differences between runs with the same seed; beside them stands p after
Holm's correction for all contrasts of a to e.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from posembed.data import load_corpus
from posembed.mechanisms import attention_variance
from posembed.stats import Interval, difference, interval
from posembed.training.config import RunConfig
from posembed.training.plans import Arm, Plan
from posembed.training.results import RunResult
from posembed.training.runs import make_model

from .nopos import RATES, SEEDS, SMALL, inspections_of, run_of
from .nopos_contrasts import lowest_error

NAME = "starts"
TUNING_SEEDS, TUNING_STEPS = (0, 6, 7), 500
STARTS = {
    "small, scaled": replace(SMALL, weight_std=0.02, scale_embeddings=True),
    "large": SMALL,
    "small": replace(SMALL, weight_std=0.02),
    "large, scaled": replace(SMALL, scale_embeddings=True),
}
SIZES = {"wider": replace(SMALL, d_model=128, weight_std=128**-0.5), "longer": replace(SMALL, steps=2500)}
# By the rule of the plan, after an arm had chosen the first or the last rate.
FURTHER_RATES = {"large, learned": (0.1,), "longer, learned": (0.1,)}


def arm_of(place: str, scheme: str) -> Arm:
    """The runs of one arm and those that choose its learning rate.

    Args:
        place: of `STARTS` or `SIZES`.
        scheme: "nopos", "learned" or "rope".
    """
    name, base = f"{place}, {scheme}", (STARTS | SIZES)[place]
    rates = sorted({*RATES, *FURTHER_RATES.get(name, ())})
    return Arm(
        name,
        tuple(run_of(base, scheme, seed=seed, inspections=inspections_of(scheme)) for seed in SEEDS),
        tuple(_tuning_run(base, scheme, rate, seed) for rate in rates for seed in TUNING_SEEDS),
    )


def _tuning_run(base: RunConfig, scheme: str, rate: float, seed: int) -> RunConfig:
    return run_of(base, scheme, learning_rate=rate, seed=seed, steps=TUNING_STEPS, test_length=None)


ARMS = (
    *((place, scheme) for place in (*STARTS, *SIZES) for scheme in ("nopos", "learned")),
    ("small, scaled", "rope"),
    ("large", "rope"),
)


def plan() -> Plan:
    """All arms."""
    return Plan(NAME, tuple(arm_of(*arm) for arm in ARMS))


def reported(place: str, scheme: str, runs: Sequence[RunResult]) -> list[RunResult]:
    """An arm's runs with the learning rate that was chosen for it, one for each seed, in order.

    Args:
        place: of `STARTS` or `SIZES`.
        scheme: "nopos", "learned" or "rope".
        runs: of the study, those that chose the rate among them.

    Raises:
        RunError: not all runs are there.
    """
    return arm_of(place, scheme).reported(runs)


def contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """Compute all that was planned to be compared, a to e; losses in nats a character, errors of probes in positions.

    Raises:
        RunError: not all runs are there.
    """
    loss = {arm: [run.metrics["loss"] for run in reported(*arm, runs)] for arm in ARMS}
    gap = {
        place: [one - other for one, other in zip(loss[place, "nopos"], loss[place, "learned"], strict=True)]
        for place in (*STARTS, *SIZES)
    }
    a, b, c, d = (gap[start] for start in STARTS)
    found = {f"{place}: nopos minus learned": interval(of) for place, of in gap.items()}
    found["gap, small, scaled minus large"] = difference(a, b)
    found["gap, effect of the deviation"] = difference(_mean(b, d), _mean(a, c))
    found["gap, effect of scaling"] = difference(_mean(a, d), _mean(b, c))
    found["gap, both together"] = difference(_mean(a, b), _mean(c, d))
    found |= {f"gap, {size} minus large": difference(gap[size], b) for size in SIZES}
    first, second = "small, scaled", "large"
    for scheme in ("nopos", "learned", "rope"):
        found[f"{scheme}, {first} minus {second}"] = difference(loss[first, scheme], loss[second, scheme])
    for start in (first, second):
        found[f"{start}: rope minus nopos"] = difference(loss[start, "rope"], loss[start, "nopos"])
    for name, of in (("untrained", _errors("untrained")), ("trained", _errors("layers")), ("exponent", exponents)):
        found[f"{name}, {first} minus {second}"] = difference(of(first, runs), of(second, runs))
    return found


def _mean(ones: Sequence[float], others: Sequence[float]) -> list[float]:
    return [(one + other) / 2 for one, other in zip(ones, others, strict=True)]


def _errors(inspection: str) -> Callable[[str, Sequence[RunResult]], list[float]]:
    return lambda place, runs: [lowest_error(run, inspection) for run in reported(place, "nopos", runs)]


def exponents(place: str, runs: Sequence[RunResult]) -> list[float]:
    """By which power of the tokens seen the variance of the first layer's attention falls, before any training.

    Args:
        place: of `STARTS` or `SIZES`.
        runs: of the study; one number for each of the reported runs without positions, whose start is made again.

    Raises:
        RunError: not all runs are there.
    """
    corpus = load_corpus(SMALL.data)
    words = torch.randint(len(corpus.vocabulary), (256, SMALL.length), generator=torch.Generator().manual_seed(0))
    models = [make_model(run.config, corpus).eval() for run in reported(place, "nopos", runs)]
    return [attention_variance(model, words).slope for model in models]
