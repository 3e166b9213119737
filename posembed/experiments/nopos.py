"""The study of chapters 10 to 12: language models with and without positions, causal and masked.

What is compared was fixed before the runs:

1. Causal, 4 layers, width 64, length 64: none against learned, sinusoidal, ALiBi and RoPE. These are runs of the study
   of chapters 3 and 4 (`posembed.experiments.encodings`) and are not repeated.
2. Causal, 6 layers, width 128, length 128, 2500 steps: none, learned and ALiBi, three seeds. Is the difference between
   none and learned smaller than in 1? None and learned at lengths 32 and 256 as well, three seeds.

A difference is between the test losses of runs with the same seed. The learning rate of each scheme is the one of four
with the lowest validation loss in a run of its own, with a seed that no reported run has: in part 2 one of 600 steps at
length 128. The other lengths take the rate chosen there.

Masked models are still to be planned. A first try, with 4 layers, width 64, length 64, a masking rate of 15 % and 2500
steps of 32 pieces, compared nothing: at all four rates the model with learned positions was still where the model
without them is, at the loss of guessing by frequency. With 64 pieces a step it left that level after about 2500 steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .config import RunConfig
from .train import RunResult

RATES = (1e-3, 3e-3, 1e-2, 3e-2)
TUNING_SEED, TUNING_STEPS, TUNED_LENGTH = 0, 600, 128
SEEDS, STEPS = (1, 2, 3), 2500


@dataclass(frozen=True)
class Arm:
    """One model of part 2.

    Attributes:
        scheme: its positions.
        length: of its pieces.

    Example:
        >>> from posembed.experiments.nopos import Arm
        >>> Arm("nopos", length=32).config(1e-3, 1).length
        32
    """

    scheme: str
    length: int = TUNED_LENGTH

    def config(self, rate: float, seed: int, steps: int = STEPS) -> RunConfig:
        """The run with a learning rate and a seed."""
        return RunConfig(
            scheme=self.scheme,
            length=self.length,
            n_layers=6,
            d_model=128,
            steps=steps,
            learning_rate=rate,
            seed=seed,
            preset="cpu",
        )

    def tuning(self) -> list[RunConfig]:
        """The runs that choose the learning rate."""
        return [Arm(self.scheme).config(rate, TUNING_SEED, TUNING_STEPS) for rate in RATES]


ARMS = tuple(Arm(scheme) for scheme in ("nopos", "learned", "alibi"))
LENGTHS = tuple(Arm(scheme, length) for length in (32, 256) for scheme in ("nopos", "learned"))


def best_rate(arm: Arm, results: Iterable[RunResult]) -> float:
    """The learning rate with the lowest validation loss among an arm's tuning runs.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.experiments import RunResult
        >>> from posembed.experiments.nopos import Arm, best_rate
        >>> arm = Arm("nopos")
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
