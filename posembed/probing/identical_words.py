"""What attention does with positions alone: one word, repeated (Wang et al. 2021, On Position Embeddings in BERT)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..checks import check_whole
from ..errors import ProbeInputError, shown
from ..inference import evaluating
from ..seeds import checked_seed
from .attention_maps import attention_maps, with_weights
from .hidden_states import check_length, vocabulary_of


def identical_word_attention(
    model: nn.Module,
    *,
    length: int,
    words: int | Sequence[int] | Int[Tensor, " words"] = 32,
    layer: int = 0,
    heads: Literal["mean"] | None = "mean",
    seed: int = 0,
) -> Float[Tensor, "*heads seq seq"]:
    """Average a layer's attention over texts that are one word, repeated: only positions can tell its tokens apart.

    Identical-word probing is Wang et al.'s (2021, On Position Embeddings in BERT). In the first layer nothing but the
    word and the positions takes part, and the mean over words leaves the positions. Give the map to
    `posembed.properties_of_matrix`. A model that knows no positions gives all keys that it sees the same weight.

    The model runs in eval mode without gradients and is put back as it was; one that keeps no attention weights
    computes them by its eager attention meanwhile.

    Args:
        model: a model of transformers with one stack of layers, or posembed's `Transformer` or `LanguageModel`.
        length: how often the word stands there; nothing else does, no [CLS] and no [SEP].
        words: how many different words to draw from the vocabulary, without the special ones that the model's
            configuration names, or the ids of some words.
        layer: which layer, from 0.
        heads: "mean" over the heads, or None for each of them.
        seed: of the draw.

    Returns:
        Row i holds how query i attends; every row sums to one. In float32, on the CPU.

    Raises:
        ProbeInputError: a length the model has no positions for, words that it does not know or that pad, fewer words
            than asked for, a layer it does not have, a model with two stacks, without word ids or attention weights.
        ProbeInputError: attention weights are NaN, do not sum to one, or have no column for each token (Longformer).

    Example:
        >>> from posembed import Transformer, TransformerConfig
        >>> from posembed.probing import identical_word_attention
        >>> from posembed.similarity import properties_of_matrix
        >>> model = Transformer(TransformerConfig(vocab_size=50, scheme="alibi"))
        >>> print(properties_of_matrix(identical_word_attention(model, length=16, words=4)).monotonicity)
        1.0
    """
    for name, value, least in (("length", length, 1), ("layer", layer, 0)):
        check_whole(name, value, ProbeInputError, least=least)
    if heads not in ("mean", None):
        raise ProbeInputError(f"heads is {shown(heads)}; choose 'mean', or None for each head")
    chosen = _words(model, words, seed)
    check_length(model, length)
    total: Any = 0.0
    with evaluating(model), with_weights(model):
        if length > 1:
            # A window as wide as the text passes for a map of its keys; of a shorter text it does not.
            attention_maps(model, chosen[:1].expand(1, length - 1), layer)
        # One by one, because the maps of all layers are held.
        for word in chosen:
            total = total + attention_maps(model, word.expand(1, length), layer)[0].double().cpu()
    total = total.mean(dim=0) if heads == "mean" else total
    # What half precision has rounded off is given back.
    return (total / total.sum(dim=-1, keepdim=True)).float()


def _words(model: nn.Module, words: Any, seed: int) -> Int[Tensor, " words"]:
    n, special, padding = vocabulary_of(model)
    if isinstance(words, int) and not isinstance(words, bool):
        known = torch.tensor([word for word in range(n) if word not in special])
        if not 1 <= words <= len(known):
            raise ProbeInputError(f"words={words}, but the vocabulary has {len(known)} words to draw from")
        order = torch.randperm(len(known), generator=torch.Generator().manual_seed(checked_seed(seed)))
        return known[order[:words]]
    try:
        given = torch.as_tensor(words).cpu()
    except (TypeError, ValueError, RuntimeError):
        given = torch.empty(0)
    if given.ndim != 1 or not len(given) or given.dtype == torch.bool or given.is_floating_point():
        raise ProbeInputError(f"words is {shown(words)}; give how many to draw, or the ids of some")
    wrong = [word for word in given.tolist() if not 0 <= word < n or word == padding]
    if wrong:
        reason = "is its padding" if wrong[0] == padding else f"is not among its {n} words"
        raise ProbeInputError(f"word {wrong[0]} {reason}, so this model has no attention for it; choose another")
    return given.long()
