"""The loss of a causal model past the trained length: as it is, with the last tokens alone, and block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from posembed.data import Corpus, windows_in_order
from posembed.models import LanguageModel
from posembed.training import RunConfig
from posembed.training.measure import GROUP

LENGTH, TEXTS = 256, 256
# Between the tokens that are guessed, for each of which the last ones are read anew.
STEP = 4


@torch.no_grad()
def inspect_far(model: LanguageModel, config: RunConfig, corpus: Corpus) -> dict[str, list[float]]:
    """Measure the same guesses in three ways, ready for JSON: a number for each 16 positions from 0, in nats.

    Returns:
        ``as it is``: reading all tokens before. ``last``: those before 64 the same, and further on reading the last 63
        alone, which is what the model read at most in its training. ``blocks``: reading the tokens of the same block of
        32 and of the one before, after the blockwise causal attention of Sun et al. (2023).
    """
    model.eval()
    texts = windows_in_order(corpus.test, LENGTH, TEXTS).long()
    guessed = torch.arange(STEP, LENGTH, STEP)
    block = torch.arange(LENGTH - 1) // (config.length // 2)
    mask = (block[:, None] - block <= 1).expand(1, -1, -1)
    whole = _losses(model, texts, guessed, None)
    last = torch.stack([_last(model, texts, int(place), config.length - 1) for place in guessed], 1)
    last = torch.where(guessed < config.length, whole, last)
    found = {"as it is": whole, "last": last, "blocks": _losses(model, texts, guessed, mask)}
    groups = guessed // GROUP
    return {
        name: [round(float(losses[:, groups == group].double().mean()), 5) for group in range(LENGTH // GROUP)]
        for name, losses in found.items()
    }


def _losses(
    model: LanguageModel, texts: Int[Tensor, "texts length"], guessed: Tensor, mask: Bool[Tensor, "1 q k"] | None
) -> Float[Tensor, "texts guessed"]:
    def of(some: Tensor) -> Tensor:
        return model(some[:, :-1], attention_mask=mask)[:, guessed - 1]

    return _in_batches(of, texts, texts[:, guessed])


def _last(model: LanguageModel, texts: Tensor, place: int, n: int) -> Float[Tensor, " texts"]:
    return _in_batches(lambda some: model(some)[:, -1:], texts[:, max(0, place - n) : place], texts[:, [place]])[:, 0]


def _in_batches(of: Callable[[Tensor], Tensor], texts: Tensor, wanted: Tensor) -> Tensor:
    found: list[Any] = []
    for some, its in zip(texts.split(64), wanted.split(64), strict=True):
        found.append(F.cross_entropy(of(some).mT, its, reduction="none"))
    return torch.cat(found)
