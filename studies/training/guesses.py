"""Causal models that are trained to guess a share of the tokens, as many as a masked one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from posembed.data import Characters, masked
from posembed.models import LanguageModel
from posembed.training import Causal
from posembed.training.objectives import device_of


@dataclass(frozen=True)
class SomeGuessed(Causal):
    """In training a share of the tokens is guessed, drawn anew for each piece; measured are all."""

    share: float

    def loss(self, model: LanguageModel, ids: Tensor, generator: torch.Generator) -> Tensor:
        guessed = masked(ids[:, 1:], self.share, Characters.mask_id, generator)[1]
        ids, guessed = ids.to(device_of(model)), guessed.to(device_of(model))
        return F.cross_entropy(model(ids[:, :-1])[guessed], ids[:, 1:][guessed])
