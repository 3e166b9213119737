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
from dataclasses import dataclass

from ..stats import Interval, difference
from .config import SCALING_NAMES, RunConfig
from .measure import GROUP, mean_between
from .plans import Part
from .results import RunResult

ABSOLUTE = ("nopos", "sinusoidal", "learned", "learnable_sinusoidal")
RELATIVE = ("shaw", "t5", "alibi", "rope")
RATES = (1e-3, 3e-3, 1e-2, 3e-2)
TUNING_SEED, SEEDS = 0, (1, 2, 3, 4, 5)
TRAINED, TESTED = 64, 512


@dataclass(frozen=True)
class Arm:
    """One model of the study, whose learning rate is chosen for itself.

    Example:
        >>> from posembed.training.encodings import Arm
        >>> Arm("rope").config(1e-3, 1).test_length
        512
    """

    scheme: str

    def config(self, rate: float, seed: int) -> RunConfig:
        """The run with a learning rate and a seed."""
        return RunConfig(
            scheme=self.scheme,
            length=TRAINED,
            steps=1500,
            learning_rate=rate,
            seed=seed,
            test_length=TESTED,
            test_scalings=SCALING_NAMES if self.scheme == "rope" else (),
            preset="cpu",
        )

    @property
    def part(self) -> Part:
        """The runs, one for each seed, and those that choose their learning rate."""
        runs = tuple(self.config(RATES[0], seed) for seed in SEEDS)
        return Part(self.scheme, runs, tuple(self.config(rate, TUNING_SEED) for rate in RATES))


ARMS = tuple(Arm(scheme) for scheme in (*ABSOLUTE, *RELATIVE))


def reported(arm: Arm, runs: Sequence[RunResult]) -> list[RunResult]:
    """An arm's runs with the learning rate that was chosen for it, one for each seed, in order.

    Args:
        arm: of `ARMS`.
        runs: of the study, those that chose the rate among them.

    Raises:
        RunError: not all runs are there.

    Example:
        >>> from posembed.training import load_runs
        >>> from posembed.training.encodings import Arm, reported
        >>> [run.config.seed for run in reported(Arm("rope"), load_runs("encodings"))]
        [1, 2, 3, 4, 5]
    """
    return arm.part.reported(runs)


def contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """Compute all that was planned to be compared, in the order of the plan, in nats a character.

    Args:
        runs: of the study, those that chose the rates among them.

    Raises:
        RunError: not all runs are there.

    Example:
        >>> from posembed.training import load_runs
        >>> from posembed.training.encodings import contrasts
        >>> found = contrasts(load_runs("encodings"))
        >>> len(found)
        21
        >>> print(found["rope minus nopos"])
        -0.472 (-0.554 to -0.389, 5 seeds)
    """
    parts = {arm.scheme: reported(arm, runs) for arm in ARMS}
    loss = {name: [run.metrics["loss"] for run in part] for name, part in parts.items()}
    pairs = [(name, "sinusoidal") for name in ("learned", "learnable_sinusoidal")]
    pairs += [(name, "nopos") for name in loss if name != "nopos"]
    found = {f"{name} minus {other}": difference(loss[name], loss[other]) for name, other in pairs}
    for name, part in parts.items():
        curves = [run.metrics["loss_by_position"] for run in part]
        before = [mean_between(curve, TRAINED - GROUP, TRAINED) for curve in curves]
        past = [mean_between(curve, TRAINED, TESTED) for curve in curves]
        found[f"{name}, past the trained length"] = difference(past, before)
    rope = [mean_between(run.metrics["loss_by_position"], TRAINED, TESTED) for run in parts["rope"]]
    for scaling in SCALING_NAMES:
        by_run = [run.metrics["loss_by_position_scaled"][scaling] for run in parts["rope"]]
        scaled = [mean_between(curve, TRAINED, TESTED) for curve in by_run]
        found[f"rope, {scaling} minus unscaled"] = difference(scaled, rope)
    return found
