"""The study of chapter 7: do short training texts, or reading from left to right, shape a position table?

Two explanations are offered for what probes find in published tables. BERT's rows beyond 400 are read badly because
nine tenths of its training steps had texts of 128 tokens; GPT-2's rows are read well because it is trained from left to
right. Both name a cause, and neither was varied. Here each is: models of our own, alike in all else.

What is compared was fixed before the runs, in a ridge probe with five folds over positions 0 to 126:

1. Short texts, the tail: the mean absolute error at positions 32 to 126, short minus long; masked models, and causal
   ones.
2. Short texts, the head: the same at positions 0 to 31. The explanation is about the tail and predicts nothing here.
3. Direction: the error over all positions, masked minus causal, both with long texts.
4. Direction with as many guesses: the same, masked minus causal that is trained on 15 % of the characters. A causal
   model guesses every character and a masked one 15 %, so in 3 the causal one also has six times as many guesses.

Long: all pieces have 128 characters. Short: 32 in the first nine tenths of the steps, 128 in the rest; the ratios are
BERT's. Position 127 is left out everywhere: the last character of a piece is only guessed by a causal model, never
read, so the row is never trained.

Five seeds each; differences are between runs with the same seed, hence the same initial weights. One learning rate for
all. The rate, the number of layers and of steps come from runs of masked models with long texts and seed 0, which no
reported run has: with 2 layers and a rate of 3e-3 such a model leaves the loss of guessing by frequency after 2700
steps. No table of theirs was looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float
from torch import Tensor

from ..probing import probe_table
from ..stats import Interval, difference
from .config import RunConfig
from .results import RunResult, load_runs
from .weights import load_tables

STUDY = "trained-tables"

TRAINED, SHORT = 128, 32
# Position 127 is left out, see above.
READ = TRAINED - 1
MASKING_RATE = 0.15
STEPS, RATE, N_LAYERS = 5000, 3e-3, 2
SEEDS = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Arm:
    """One way to train a position table.

    Attributes:
        objective: "causal" or "masked".
        short: whether nine tenths of the steps have short texts.
        few_guesses: whether a causal model is trained on as many characters as a masked one.

    Example:
        >>> from posembed.training.trained_tables import Arm
        >>> Arm("causal", few_guesses=True).config(1).guessed_share
        0.15
    """

    objective: Literal["causal", "masked"]
    short: bool = False
    few_guesses: bool = False

    def config(self, seed: int) -> RunConfig:
        """The run with a seed."""
        return RunConfig(
            scheme="learned",
            objective=self.objective,
            masking_rate=MASKING_RATE if self.objective == "masked" else None,
            guessed_share=MASKING_RATE if self.few_guesses else None,
            length=TRAINED,
            short_length=SHORT if self.short else None,
            short_share=0.9 if self.short else None,
            n_layers=N_LAYERS,
            # Words and positions of one size at the start, as in BERT and GPT-2.
            scale_embeddings=False,
            steps=STEPS,
            learning_rate=RATE,
            seed=seed,
            preset="cpu",
        )


MASKED_LONG, MASKED_SHORT = Arm("masked"), Arm("masked", short=True)
CAUSAL_LONG, CAUSAL_SHORT = Arm("causal"), Arm("causal", short=True)
CAUSAL_FEW = Arm("causal", few_guesses=True)
ARMS = {
    "masked, long": MASKED_LONG,
    "masked, short": MASKED_SHORT,
    "causal, long": CAUSAL_LONG,
    "causal, short": CAUSAL_SHORT,
    "causal, long, few guesses": CAUSAL_FEW,
}


def trained(arm: Arm) -> list[Float[Tensor, "n_positions d_model"]]:
    """An arm's tables, one for each seed, in order.

    Example:
        >>> from posembed.training.trained_tables import CAUSAL_LONG, trained
        >>> len(trained(CAUSAL_LONG)), trained(CAUSAL_LONG)[0].shape
        (5, torch.Size([128, 64]))
    """
    tables = load_tables(STUDY)
    return [tables[arm.config(seed).key] for seed in SEEDS]


def reported(arm: Arm) -> list[RunResult]:
    """An arm's runs, one for each seed, in order.

    Example:
        >>> from posembed.training.trained_tables import CAUSAL_LONG, reported
        >>> [run.config.seed for run in reported(CAUSAL_LONG)]
        [1, 2, 3, 4, 5]
    """
    by_key = {run.config.key: run for run in load_runs(STUDY)}
    return [by_key[arm.config(seed).key] for seed in SEEDS]


def errors(arm: Arm) -> Float[np.ndarray, "seeds positions"]:
    """How far off a ridge probe with five folds reads each position, for each seed of an arm, in positions.

    Example:
        >>> from posembed.training.trained_tables import CAUSAL_LONG, errors
        >>> errors(CAUSAL_LONG).shape
        (5, 127)
    """
    results = [probe_table(table, probe="ridge", split="folds", rows=READ) for table in trained(arm)]
    return np.stack([np.abs(result.predictions - result.positions) for result in results])


def contrasts(found: Mapping[str, Float[np.ndarray, "seeds positions"]]) -> dict[str, Interval]:
    """The planned contrasts, of what `errors` gives for each arm of `ARMS`, in positions.

    Example:
        >>> import numpy as np
        >>> from posembed.training.trained_tables import ARMS, contrasts
        >>> none = {name: np.zeros((5, 127)) for name in ARMS}
        >>> len(contrasts(none))
        6
    """
    head = {name: each[:, :SHORT].mean(axis=1).tolist() for name, each in found.items()}
    tail = {name: each[:, SHORT:].mean(axis=1).tolist() for name, each in found.items()}
    whole = {name: each.mean(axis=1).tolist() for name, each in found.items()}
    return {
        **{
            f"{objective}, {part}: short minus long": difference(by[f"{objective}, short"], by[f"{objective}, long"])
            for part, by in (("tail", tail), ("head", head))
            for objective in ("masked", "causal")
        },
        "masked minus causal": difference(whole["masked, long"], whole["causal, long"]),
        "masked minus causal, as many guesses": difference(whole["masked, long"], whole["causal, long, few guesses"]),
    }
