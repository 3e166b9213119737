"""Causal models whose texts begin with a mark, a token that no text holds, as many models' begin with BOS."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from posembed.data import Characters
from posembed.models import LanguageModel
from posembed.training import Causal
from posembed.training.objectives import device_of, each_loss


@dataclass(frozen=True)
class Marked(Causal):
    """Guess each token from the mark and those before it; the first one from the mark alone."""

    def loss(self, model: LanguageModel, ids: Tensor, generator: torch.Generator) -> Tensor:
        ids = ids.to(device_of(model))
        return F.cross_entropy(model(marked(ids)[:, :-1]).flatten(0, 1), ids.flatten())

    def losses(self, model: LanguageModel, ids: Tensor, generator: torch.Generator) -> Tensor:
        logits = model(marked(ids)[:, :-1].to(device_of(model)))
        return each_loss(logits, ids, torch.ones_like(ids, dtype=torch.bool))


def marked(ids: Tensor) -> Tensor:
    """Texts with the mark before each."""
    return F.pad(ids, (1, 0), value=Characters.mask_id)
