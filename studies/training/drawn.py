"""Positions that are drawn: each step's texts stand at some of more positions, in order (Ruoss et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from posembed.data import Corpus, windows_in_order
from posembed.models import LanguageModel
from posembed.training import Causal, RunConfig
from posembed.training.objectives import device_of

from .longer import TEXTS, last_loss

LENGTHS = (64, 128, 256)
DRAWS = 4


@dataclass(frozen=True)
class Drawn(Causal):
    """Guess each token from those before it, in training at positions drawn for each step.

    Attributes:
        n_positions: from so many they are drawn, without return.
    """

    n_positions: int

    def loss(self, model: LanguageModel, ids: Tensor, generator: torch.Generator) -> Tensor:
        ids = ids.to(device_of(model))
        positions = drawn(ids.shape[1] - 1, self.n_positions, generator).to(ids.device)
        return F.cross_entropy(model(ids[:, :-1], positions).flatten(0, 1), ids[:, 1:].flatten())


def drawn(n: int, n_positions: int, generator: torch.Generator) -> Int[Tensor, " n"]:
    """Different positions, rising."""
    return torch.randperm(n_positions, generator=generator)[:n].sort().values


@torch.no_grad()
def inspect_drawn(model: LanguageModel, config: RunConfig, corpus: Corpus, n_positions: int) -> dict[str, Any]:
    """Measure the losses of the last 16 characters, the same ones as in `inspect_longer`, in nats.

    Returns:
        By length, ``as they stand``, and at positions ``drawn``, the mean of four draws; ready for JSON.
    """
    texts, generator = windows_in_order(corpus.test, 512, TEXTS).long(), torch.Generator().manual_seed(config.seed)

    def loss(n: int, positions: Tensor) -> float:
        return last_loss(model, (texts[:, -n:], positions, None))

    def mean(n: int) -> float:
        # The last position belongs to what is guessed, and is not read.
        at = [F.pad(drawn(n - 1, n_positions, generator), (0, 1)) for _ in range(DRAWS)]
        return round(sum(loss(n, each) for each in at) / DRAWS, 5)

    return {
        "as they stand": {str(n): loss(n, torch.arange(n)) for n in LENGTHS},
        "drawn": {str(n): mean(n) for n in LENGTHS},
    }
