"""What attention does with positions alone: one word, repeated (Wang et al. 2021, On Position Embeddings in BERT)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from .._evaluating import evaluating
from ..errors import ProbeInputError
from ._any_model import check_length, vocabulary_of
from ._attention_maps import attention_maps, with_weights
from ._random import checked_seed


def identical_word_attention(
    model: nn.Module,
    *,
    length: int,
    words: int | Sequence[int] | Int[Tensor, " words"] = 32,
    layer: int = 0,
    heads: Literal["mean"] | None = "mean",
    exclude: Iterable[int] = (),
    seed: int = 0,
    batch_size: int = 8,
) -> Float[Tensor, "*heads seq seq"]:
    """Average a layer's attention over texts that are one word, repeated: only positions can tell its tokens apart.

    Identical-word probing is Wang et al.'s (2021, On Position Embeddings in BERT). In the first layer nothing but the
    word and the positions takes part, and the mean over words leaves the positions. Give the map to
    `posembed.properties_of_matrix`. A model that knows no positions gives all keys that it sees the same weight.

    The model runs in eval mode without gradients and is put back as it was; one that keeps no attention weights
    computes them by its eager attention meanwhile. No layer after the one asked for is run, and no more than a batch of
    its maps is held.

    Args:
        model: a model of transformers with one stack of layers, or posembed's `Transformer` or `LanguageModel`.
        length: how often the word stands there; nothing else does, no [CLS] and no [SEP].
        words: how many different words to draw from the vocabulary, without the special ones that the model's
            configuration names, or the ids of some words.
        layer: which layer, from 0.
        heads: "mean" over the heads, or None for each of them.
        exclude: ids that are not to be drawn either, a tokenizer's ``all_special_ids`` for example.
        seed: of the draw.
        batch_size: how many words to run at a time.

    Returns:
        Row i holds how query i attends; every row sums to one. In float32, on the CPU.

    Raises:
        ProbeInputError: a length the model has no positions for, words that it does not know or that pad, fewer words
            than asked for, a layer it does not have, a model with two stacks, without word ids or attention weights.
        ProbeInputError: attention weights are NaN, or do not sum to one.

    Example:
        >>> from posembed import Transformer, TransformerConfig
        >>> from posembed.probing import identical_word_attention
        >>> from posembed.similarity import properties_of_matrix
        >>> model = Transformer(TransformerConfig(vocab_size=50, scheme="alibi"))
        >>> print(properties_of_matrix(identical_word_attention(model, length=16, words=4)).monotonicity)
        1.0
    """
    for name, value, least in (("length", length, 1), ("layer", layer, 0), ("batch_size", batch_size, 1)):
        _check_whole(name, value, least)
    if heads not in ("mean", None):
        raise ProbeInputError(f"heads is {heads!r}; choose 'mean', or None for each head")
    chosen = _words(model, words, set(exclude), seed)
    check_length(model, length)
    total: Any = 0.0
    with evaluating(model), with_weights(model):
        for some in chosen.split(batch_size):
            maps = attention_maps(model, some[:, None].expand(-1, length), layer)
            of_words = maps.mean(dim=1, dtype=torch.float64) if heads == "mean" else maps
            total = total + of_words.sum(dim=0, dtype=torch.float64).cpu()
    # What half precision has rounded off is given back.
    return (total / total.sum(dim=-1, keepdim=True)).float()


# The words.


def _words(model: nn.Module, words: Any, excluded: set[int], seed: int) -> Int[Tensor, " words"]:
    n, special, padding = vocabulary_of(model)
    if isinstance(words, int) and not isinstance(words, bool):
        known = torch.tensor([word for word in range(n) if word not in special | excluded])
        if not 1 <= words <= len(known):
            raise ProbeInputError(f"words={words}, but the vocabulary has {len(known)} words to draw from")
        order = torch.randperm(len(known), generator=torch.Generator().manual_seed(checked_seed(seed)))
        return known[order[:words]]
    given = _as_ids(words)
    wrong = [word for word in given.tolist() if not 0 <= word < n or word == padding]
    if wrong:
        reason = "is its padding" if wrong[0] == padding else f"is not among its {n} words"
        raise ProbeInputError(f"word {wrong[0]} {reason}, so this model has no attention for it; choose another")
    return given


def _as_ids(words: Any) -> Int[Tensor, " words"]:
    try:
        ids = torch.as_tensor(words).cpu()
    except (TypeError, ValueError, RuntimeError):
        ids = torch.empty(0)
    if ids.ndim != 1 or not len(ids) or ids.dtype in (torch.bool,) or ids.is_floating_point() or ids.is_complex():
        raise ProbeInputError(f"words is {words!r}; give how many to draw, or the ids of some")
    return ids.long()


def _check_whole(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ProbeInputError(f"{name} is {value!r}; it must be a whole number of at least {least}")
