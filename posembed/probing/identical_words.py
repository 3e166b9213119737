"""What attention does with positions alone: one word, repeated (Wang et al. 2021, On Position Embeddings in BERT)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..errors import ProbeInputError
from ..inference import eval_mode
from ..public import Count, Seed, Whole, public
from .attention_maps import attention_maps, with_weights
from .hidden_states import vocabulary_of


@public(ProbeInputError)
def identical_word_attention(
    model: nn.Module,
    *,
    length: Count,
    words: Count | Sequence[int] | Int[Tensor, " words"] = 32,
    layer: Whole = 0,
    heads: Literal["mean"] | None = "mean",
    seed: Seed = 0,
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
    chosen = _words(model, words, seed)
    total: Any = 0.0
    with eval_mode(model), with_weights(model):
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
    if not isinstance(words, int | np.integer):
        if padding in torch.as_tensor(words).tolist():
            raise ProbeInputError(f"word {padding} is padding, so this model has no attention for it; choose another")
        return torch.as_tensor(words).long().cpu()
    known = torch.tensor([word for word in range(n) if word not in special])
    if words > len(known):
        raise ProbeInputError(f"words={words}, but the vocabulary has {len(known)} words to draw from")
    return known[torch.randperm(len(known), generator=torch.Generator().manual_seed(seed))[:words]]
