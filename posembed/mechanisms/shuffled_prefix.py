"""What a language model loses when the tokens before the last one are shuffled (Haviv et al. 2022)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..errors import ProbeInputError
from ..inference import eval_mode
from ..models import Transformer
from ..probing.hidden_states import BATCH_SIZE, checked_inputs, named, read_by, telling
from ..public import Seed, Whole, public
from ..seeds import torch_generator
from ..serialization import Record
from ..stats import BootstrapInterval, mean_interval

# Of each text, drawn anew; one that changes nothing may be among them.
N_SHUFFLES = 4
# What rounding may change in a logit, as a part of the largest one; the second where logits have half precision.
CAUSAL_TOLERANCE, CAUSAL_TOLERANCE_IN_HALVES = 1e-4, 0.03


@dataclass(frozen=True, repr=False)
class ShuffledPrefix(Record):
    """The loss of the last token, with the tokens before it in their order and shuffled. In nats.

    Attributes:
        intact: the mean loss over texts.
        shuffled: the mean over texts and shuffles.
        interval: of the difference, over texts.
        keep: how many tokens right before the last one stayed in their places.
        n_texts: how many.
        length: of a text, in tokens, with the one that is guessed.

    Example:
        >>> from posembed.mechanisms import ShuffledPrefix
        >>> from posembed.probing import BootstrapInterval
        >>> print(ShuffledPrefix(1.47, 4.18, BootstrapInterval(2.6, 2.8, 0.95, 8), 0, 64, 128))
        loss of the last of 128 tokens: 1.470, with those before it shuffled 4.180 (more by 2.60 to 2.80)
    """

    intact: float
    shuffled: float
    interval: BootstrapInterval
    keep: int
    n_texts: int
    length: int

    @property
    def difference(self) -> float:
        """How much larger the loss is after shuffling."""
        return self.shuffled - self.intact

    def __str__(self) -> str:
        kept = f" but for the last {self.keep}" if self.keep else ""
        return (
            f"loss of the last of {self.length} tokens: {self.intact:.3f}, with those before it shuffled{kept} "
            f"{self.shuffled:.3f} (more by {self.interval})"
        )


@public(ProbeInputError)
def shuffled_prefix(
    model: nn.Module | Callable[[Tensor], Any],
    ids: Int[Tensor, "texts length"],
    *,
    keep: Whole = 0,
    seed: Seed = 0,
) -> ShuffledPrefix:
    """Measure the loss of each text's last token, before and after shuffling the tokens that it is guessed from.

    Haviv et al. (2022) ask in this way whether a causal model without positions makes use of the order of its prefix:
    one that did not would lose nothing. Each text is shuffled four times. With some of the last tokens kept in their
    places, it says how far back the order matters.

    Args:
        model: a causal language model, posembed's or of transformers, or any function from ids "batch seq" to logits
            "batch seq vocab". A module is in eval mode meanwhile.
        ids: texts of one length; the last token of each is guessed from all others.
        keep: how many tokens right before the last one stay where they are; at least two must be left to shuffle.
        seed: of the shuffles and the interval.

    Returns:
        Both losses. The interval is of the difference, by a bootstrap of blocks of neighbouring texts.

    Raises:
        ProbeInputError: ids that are no texts of one length, nothing to shuffle, an option that cannot be meant, a
            model that is not causal or has no logits, or logits that do not fit the ids.

    Example:
        >>> import torch
        >>> from posembed.mechanisms import shuffled_prefix
        >>> def repeats_the_last_word(ids):
        ...     return 5.0 * torch.nn.functional.one_hot(ids, 10)
        >>> texts = torch.arange(10)[:, None].repeat(1, 6)
        >>> texts[:, :-2] = (texts[:, :-2] + 1) % 10  # the last word is the one before it, and not the others
        >>> shuffled_prefix(repeats_the_last_word, texts).difference > 1
        True
        >>> shuffled_prefix(repeats_the_last_word, texts, keep=1).difference
        0.0
    """
    if isinstance(model, Transformer):  # whose states have the shape of logits
        raise ProbeInputError("Transformer gives hidden states and no logits; give a LanguageModel")
    if isinstance(model, nn.Module) and read_by(model):
        checked_inputs(model, ids[:, :-1], at_least=1)
    if keep > ids.shape[1] - 3:
        raise ProbeInputError(f"keep is {keep}, which leaves less than two of {ids.shape[1]} tokens to shuffle")
    prefix, wanted = ids[:, :-1], ids[:, -1]
    random = torch_generator(seed, "shuffles")
    module = model if isinstance(model, nn.Module) else None
    with eval_mode(module):
        _check_causal(model, prefix[:BATCH_SIZE, :2])
        intact = _losses(model, prefix, wanted)
        shuffles = [_losses(model, _shuffled(prefix, keep, random), wanted) for _ in range(N_SHUFFLES)]
    shuffled = torch.stack(shuffles).mean(dim=0)
    return ShuffledPrefix(
        intact=float(intact.mean()),
        shuffled=float(shuffled.mean()),
        interval=mean_interval((shuffled - intact).numpy(), seed=seed),
        keep=keep,
        n_texts=len(ids),
        length=ids.shape[1],
    )


def _shuffled(prefix: Int[Tensor, "texts seq"], keep: int, random: torch.Generator) -> Int[Tensor, "texts seq"]:
    n_moved = prefix.shape[1] - keep
    order = torch.rand(len(prefix), n_moved, generator=random).argsort(dim=1).to(prefix.device)
    return torch.cat([prefix[:, :n_moved].gather(1, order), prefix[:, n_moved:]], dim=1)


def _losses(model: Any, prefix: Int[Tensor, "texts seq"], wanted: Int[Tensor, " texts"]) -> Float[Tensor, " texts"]:
    parts = []
    for some, words in zip(prefix.split(BATCH_SIZE), wanted.split(BATCH_SIZE), strict=True):
        logits = _logits(model, some)[:, -1].double().cpu()
        parts.append(F.cross_entropy(logits, words.long().cpu(), reduction="none"))
    return torch.cat(parts)


def _logits(model: Any, ids: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch seq vocab"]:
    parameter = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    with telling(model, f"texts of {ids.shape[1]} tokens"):
        output = model(ids if parameter is None else ids.to(parameter.device))
    logits = getattr(output, "logits", output)
    if not isinstance(logits, Tensor) or logits.ndim != 3 or logits.shape[:2] != ids.shape:
        raise ProbeInputError(f"{named(model)} gives no logits (batch, seq, vocab); give a model of language")
    return logits


def _check_causal(model: Any, ids: Int[Tensor, "batch 2"]) -> None:
    """What is said of the first token must not change when one is put after it."""
    before, after = _logits(model, ids[:, :1]), _logits(model, ids)[:, :1]
    tolerance = CAUSAL_TOLERANCE if before.dtype.itemsize > 2 else CAUSAL_TOLERANCE_IN_HALVES
    change = (after.double() - before.double()).abs().max()
    if change > tolerance * before.double().abs().max():
        raise ProbeInputError(f"{type(model).__name__} sees tokens on both sides; give a model that guesses the next")
