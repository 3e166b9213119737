"""What a model is trained to guess: the next token, or the hidden ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ..data import Characters, masked
from ..models import LanguageModel
from .config import RunConfig


@runtime_checkable
class Objective(Protocol):
    """What is guessed in pieces of a text, which are "pieces length"; losses are in nats."""

    def loss(
        self, model: LanguageModel, ids: Int[Tensor, "pieces length"], generator: torch.Generator
    ) -> Float[Tensor, ""]:
        """The mean loss of what is guessed, for a step of training; the generator chooses it."""

    def losses(
        self, model: LanguageModel, ids: Int[Tensor, "pieces length"], generator: torch.Generator
    ) -> Float[Tensor, "pieces length"]:
        """The loss of each token, NaN where none was guessed."""


@dataclass(frozen=True)
class Causal:
    """Guess each token from those before it; the first one is given.

    Example:
        >>> import torch
        >>> from posembed import TransformerConfig
        >>> from posembed.models import LanguageModel
        >>> from posembed.training import Causal
        >>> model, text = LanguageModel(TransformerConfig(9)), torch.tensor([[1, 2, 3]])
        >>> Causal().losses(model, text, torch.Generator()).isnan()
        tensor([[ True, False, False]])
    """

    def loss(
        self, model: LanguageModel, ids: Int[Tensor, "pieces length"], generator: torch.Generator
    ) -> Float[Tensor, ""]:
        """The mean over all tokens but the first of each piece."""
        ids = ids.to(device_of(model))
        return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())

    def losses(
        self, model: LanguageModel, ids: Int[Tensor, "pieces length"], generator: torch.Generator
    ) -> Float[Tensor, "pieces length"]:
        """The loss of each token, NaN for the first."""
        logits = F.pad(model(ids[:, :-1].to(device_of(model))), (0, 0, 1, 0))
        return each_loss(logits, ids, torch.arange(ids.shape[1]) > 0)


@dataclass(frozen=True)
class Masked:
    """Hide some tokens and guess them from the others, on both sides (Devlin et al. 2019).

    Attributes:
        rate: the share of hidden tokens (see `posembed.data.masked`).
    """

    rate: float

    def loss(
        self, model: LanguageModel, ids: Int[Tensor, "pieces length"], generator: torch.Generator
    ) -> Float[Tensor, ""]:
        """The mean over the hidden tokens."""
        seen, hidden, ids = (each.to(device_of(model)) for each in (*self.hide(ids, generator), ids))
        # Logits of the hidden tokens alone: the others are not asked for.
        return F.cross_entropy(model.logits(model.transformer(seen)[hidden]), ids[hidden])

    def losses(
        self, model: LanguageModel, ids: Int[Tensor, "pieces length"], generator: torch.Generator
    ) -> Float[Tensor, "pieces length"]:
        """The loss of each hidden token, NaN for the others."""
        seen, hidden = self.hide(ids, generator)
        return each_loss(model(seen.to(device_of(model))), ids, hidden)

    def hide(
        self, ids: Int[Tensor, "pieces length"], generator: torch.Generator
    ) -> tuple[Int[Tensor, "pieces length"], Bool[Tensor, "pieces length"]]:
        """What the model sees, and where a token is hidden; on the CPU, as the ids are."""
        return masked(ids, self.rate, Characters.mask_id, generator)


def each_loss(
    logits: Float[Tensor, "pieces length vocab"],
    ids: Int[Tensor, "pieces length"],
    guessed: Bool[Tensor, "*pieces length"],
) -> Float[Tensor, "pieces length"]:
    """The loss of each token, on the CPU; NaN where it was not guessed, infinity where an answer is no number."""
    losses = F.cross_entropy(logits.mT.float(), ids.to(logits.device), reduction="none").cpu()
    return losses.nan_to_num(nan=torch.inf, posinf=torch.inf).masked_fill(~guessed, torch.nan)


def device_of(model: nn.Module) -> torch.device:
    """Where a model is; random numbers are drawn on the CPU, so that they are the same everywhere."""
    return next(model.parameters()).device


OBJECTIVES: dict[str, Callable[[RunConfig], Objective]] = {
    "causal": lambda config: Causal(),
    "masked": lambda config: Masked(config.masking_rate or 0.0),
}
