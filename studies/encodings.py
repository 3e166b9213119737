"""The study of chapters 3 and 4: the same task with each scheme, at the trained length and past it.

What is compared was fixed before the runs:

1. learned, and learnable sinusoidal, against sinusoidal: the test loss at the trained length, as differences between
   runs with the same seed.
2. Each scheme against none, in the same way.
3. Past the trained length: the loss at positions 64 to 511 against that at positions 48 to 63 of the same run.
4. RoPE with each scaling against RoPE without, at positions 64 to 511 of the same model.

Five seeds each. The learning rate of each scheme is the one of four with the lowest validation loss in a run of its
own, with a seed that no reported run has; losses that are reported are on the test text.

Added on the way: the highest of the four rates, when the third had come out best for the first schemes. Left out for
time, before any of their compared results was seen: the same for masked models, and word vectors without the factor
sqrt(d_model).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from posembed.stats import Interval, difference
from posembed.training.config import SCALING_NAMES
from posembed.training.measure import GROUP, mean_between
from posembed.training.plans import Arm, Plan
from posembed.training.results import RunResult

from .training.settings import FIRST

NAME = "encodings"
ABSOLUTE = ("nopos", "sinusoidal", "learned", "learnable_sinusoidal")
RELATIVE = ("shaw", "t5", "alibi", "rope")
RATES = (1e-3, 3e-3, 1e-2, 3e-2)
TUNING_SEED, SEEDS = 0, (1, 2, 3, 4, 5)
TRAINED, TESTED = 64, 512


def arm(scheme: str) -> Arm:
    """The runs of a scheme, one for each seed, and those that choose their learning rate."""
    tested = replace(
        FIRST,
        scheme=scheme,
        length=TRAINED,
        steps=1500,
        test_length=TESTED,
        test_scalings=SCALING_NAMES if scheme == "rope" else (),
        preset="cpu",
    )
    runs = tuple(replace(tested, learning_rate=RATES[0], seed=seed) for seed in SEEDS)
    return Arm(scheme, runs, tuple(replace(tested, learning_rate=rate, seed=TUNING_SEED) for rate in RATES))


ARMS = tuple(arm(scheme) for scheme in (*ABSOLUTE, *RELATIVE))


def plan() -> Plan:
    """All arms."""
    return Plan(NAME, ARMS)


def contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """Compute all that was planned to be compared, in the order of the plan, in nats a character."""
    arms = {arm.name: arm.reported(runs) for arm in ARMS}
    loss = {name: [run.metrics["loss"] for run in its] for name, its in arms.items()}
    pairs = [(name, "sinusoidal") for name in ("learned", "learnable_sinusoidal")]
    pairs += [(name, "nopos") for name in loss if name != "nopos"]
    found = {f"{name} minus {other}": difference(loss[name], loss[other]) for name, other in pairs}
    for name, its in arms.items():
        found[f"{name}, past the trained length"] = past_the_trained_length(its)
    for scaling in SCALING_NAMES:
        found[f"rope, {scaling} minus unscaled"] = scaled_minus_unscaled(arms["rope"], scaling)
    return found


def past_the_trained_length(runs: Sequence[RunResult]) -> Interval:
    """The loss at positions that no training had, less that at the last ones that it had."""
    curves = [run.metrics["loss_by_position"] for run in runs]
    past = [mean_between(curve, TRAINED, TESTED) for curve in curves]
    return difference(past, [mean_between(curve, TRAINED - GROUP, TRAINED) for curve in curves])


def scaled_minus_unscaled(runs: Sequence[RunResult], scaling: str) -> Interval:
    """The loss at positions that no training had, with RoPE under a scaling less without one."""
    scaled = [mean_between(run.metrics["loss_by_position_scaled"][scaling], TRAINED, TESTED) for run in runs]
    return difference(scaled, [mean_between(run.metrics["loss_by_position"], TRAINED, TESTED) for run in runs])
