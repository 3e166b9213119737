"""[CLS], the token that BERT's texts begin with and that stands for the whole text: where it stands."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.functional import pad

from posembed.models import LanguageModel
from posembed.training import Masked
from posembed.training.objectives import device_of, each_loss

from .subwords import Subwords


@dataclass(frozen=True)
class MaskedBehindCLS(Masked):
    """Guess hidden tokens behind [CLS], which is never asked for.

    Attributes:
        rate: the share of hidden tokens.
        moved: whether the position of [CLS] is drawn for each piece.
    """

    moved: bool = False

    def loss(self, model: LanguageModel, ids: Tensor, generator: torch.Generator) -> Tensor:
        seen, ids, hidden, positions = self._behind(ids, generator)
        device = device_of(model)
        states = model.transformer(seen.to(device), None if positions is None else positions.to(device))
        return F.cross_entropy(model.logits(states[hidden.to(device)]), ids[hidden].to(device))

    def losses(self, model: LanguageModel, ids: Tensor, generator: torch.Generator) -> Tensor:
        seen, ids, hidden, positions = self._behind(ids, generator)
        device = device_of(model)
        logits = model(seen.to(device), None if positions is None else positions.to(device))
        return each_loss(logits, ids, hidden)

    def _behind(self, ids: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """What the model reads, what it should say, where it is asked, and the positions."""
        seen, hidden = self.hide(ids, generator)
        seen, ids = (pad(each, (1, 0), value=Subwords.cls_id) for each in (seen, ids))
        hidden = pad(hidden, (1, 0), value=False)
        positions = cls_positions(torch.ones_like(hidden), generator) if self.moved else None
        return seen, ids, hidden, positions


def cls_positions(tokens: Bool[Tensor, "texts seq"], generator: torch.Generator) -> Int[Tensor, "texts seq"]:
    """The positions of texts whose [CLS] is moved.

    Args:
        tokens: where there is a token and no padding; the first one is [CLS].
        generator: of the places, each as likely as any other of the text. The other tokens keep their order.
    """
    place = (torch.rand(len(tokens), 1, generator=generator, dtype=torch.float64) * tokens.sum(1, keepdim=True)).long()
    words = torch.arange(tokens.shape[1] - 1).expand(len(tokens), -1)
    return torch.cat([place, words + (words >= place)], dim=1)
