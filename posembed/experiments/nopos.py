"""The study of chapters 10 to 12: language models with and without positions, causal and masked.

What is compared was fixed before the runs:

1. Causal, 4 layers, width 64, length 64: none against learned, sinusoidal, ALiBi and RoPE. These are runs of the study
   of chapters 3 and 4 (`posembed.experiments.encodings`) and are not repeated.
2. Masked, the same size, 2500 steps: the same at a masking rate of 15 %, five seeds; none and learned at 5, 40 and 60 %
   as well, three seeds. Is the cost of having no positions higher than in 1, and does it grow with the rate?
3. Causal, 6 layers, width 128, length 128, 2500 steps: none, learned and ALiBi, three seeds. Is the difference between
   none and learned smaller than in 1? None and learned at lengths 32 and 256 as well, three seeds.

A difference is between the test losses of runs with the same seed. The learning rate of each scheme is the one of four
with the lowest validation loss in a run of its own, with a seed that no reported run has: in part 2 a whole run at a
masking rate of 15 %, in part 3 one of 600 steps at length 128. The other masking rates and lengths take the rate chosen
there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .config import RunConfig
from .train import RunResult

RATES = (1e-3, 3e-3, 1e-2, 3e-2)
TUNING_SEED, TUNING_STEPS = 0, 600
STEPS = 2500


@dataclass(frozen=True)
class Arm:
    """One model of the study.

    Attributes:
        scheme: its positions.
        masking_rate: the share of hidden characters of a masked model; None for a causal one.
        length: of its pieces.
        seeds: one run each.

    Example:
        >>> from posembed.experiments.nopos import Arm
        >>> Arm("nopos", masking_rate=0.4).config(1e-3, 1).objective
        'masked'
    """

    scheme: str
    masking_rate: float | None = None
    length: int = 64
    seeds: tuple[int, ...] = (1, 2, 3)

    def config(self, rate: float, seed: int, steps: int = STEPS) -> RunConfig:
        """The run with a learning rate and a seed."""
        masked = self.masking_rate is not None
        return RunConfig(
            scheme=self.scheme,
            objective="masked" if masked else "causal",
            masking_rate=self.masking_rate,
            length=self.length,
            n_layers=4 if masked else 6,
            d_model=64 if masked else 128,
            steps=steps,
            learning_rate=rate,
            seed=seed,
            preset="cpu",
        )

    def tuning(self) -> list[RunConfig]:
        """The runs that choose the learning rate: those of the arm with the usual masking rate or length."""
        if self.masking_rate is not None:
            return [Arm(self.scheme, masking_rate=0.15).config(rate, TUNING_SEED) for rate in RATES]
        return [Arm(self.scheme, length=128).config(rate, TUNING_SEED, TUNING_STEPS) for rate in RATES]


MASKED = tuple(
    Arm(scheme, masking_rate=0.15, seeds=(1, 2, 3, 4, 5))
    for scheme in ("nopos", "learned", "sinusoidal", "alibi", "rope")
)
MASKING_RATES = tuple(Arm(scheme, masking_rate=rate) for rate in (0.05, 0.4, 0.6) for scheme in ("nopos", "learned"))
LARGE = tuple(Arm(scheme, length=128) for scheme in ("nopos", "learned", "alibi"))
LENGTHS = tuple(Arm(scheme, length=length) for length in (32, 256) for scheme in ("nopos", "learned"))
ARMS = (*MASKED, *LARGE, *MASKING_RATES, *LENGTHS)


def best_rate(arm: Arm, results: Iterable[RunResult]) -> float:
    """The learning rate with the lowest validation loss among an arm's tuning runs.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.experiments import RunResult
        >>> from posembed.experiments.nopos import Arm, best_rate
        >>> arm = Arm("nopos", masking_rate=0.4)
        >>> losses = (3.0, 2.0, 2.5, 4.0)
        >>> runs = [
        ...     RunResult(config, {"validation_loss": loss}, {}, "", 0.0)
        ...     for config, loss in zip(arm.tuning(), losses, strict=True)
        ... ]
        >>> best_rate(arm, runs)
        0.003
    """
    losses = {result.config.key: result.metrics["validation_loss"] for result in results}
    return min(arm.tuning(), key=lambda config: losses[config.key]).learning_rate
