"""The attention weights of one layer of any model, and of texts in which little but positions tells tokens apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, cast

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..errors import ProbeInputError
from ..inference import eval_mode
from ..models import Transformer, TransformerLayer, attend
from ..public import Count, Seed, Whole, public
from .hidden_states import check_one_stack, checked_inputs, named, own_transformer, telling, vocabulary_of

# Attention functions of transformers that compute the same as "eager" and keep no weights.
WITHOUT_WEIGHTS = frozenset({"sdpa", "flash_attention_2", "flash_attention_3", "flex_attention"})
# A row of weights in half precision sums to one within this.
SUM_TOLERANCE = 0.02


def attention_maps(model: nn.Module, ids: Int[Tensor, "batch seq"], layer: int) -> Float[Tensor, "batch heads seq seq"]:
    """How each head of a layer attends. Row i of a map holds the weights of query i; every row sums to one."""
    own: Any = own_transformer(model)
    maps = _of_transformers(model, ids) if own is None else own.layers
    if layer >= len(maps):
        raise ProbeInputError(f"layer is {layer}, but {named(model)} gives attention weights of {len(maps)} layers")
    found = maps[layer] if own is None else own_attention(own, ids, layer)
    if found.ndim != 4 or found.shape[-2:] != 2 * ids.shape[1:]:
        raise ProbeInputError(
            f"{named(model)} hands out attention weights of {tuple(found.shape)} for {ids.shape[1]} tokens, with no "
            "column for each: those of a window or of a summary, which are no map of keys"
        )
    # Some kernels turn what is NaN into zeros; with attention sinks a part goes to no token.
    sums = found.sum(dim=-1)
    if not bool(((sums - 1).abs() <= SUM_TOLERANCE).all()):
        raise ProbeInputError(
            f"attention weights of layer {layer} sum to {float(sums.min()):.2f} to {float(sums.max()):.2f} and not to "
            "one, which makes no map; look at the model's weights, and whether it has attention sinks"
        )
    return found


def _of_transformers(model: Any, ids: Int[Tensor, "batch seq"]) -> list[Tensor]:
    body = getattr(model, "base_model", model)
    with telling(model, f"{ids.shape[1]} tokens"):
        output = body(input_ids=ids.to(model.device), output_attentions=True)
    return [each for each in getattr(output, "attentions", None) or () if each is not None]


def attention_input(
    model: Transformer, ids: Int[Tensor, "batch seq"], layer: int, positions: Int[Tensor, " seq"]
) -> Float[Tensor, "batch seq d_model"]:
    """What the attention of a layer is given."""
    its: Any = model.layers[layer]
    x = model.entering(layer, model.hidden_states(ids, positions)[layer], positions)
    return its.attention_norm(x) if its.pre_norm else x


def own_attention(
    model: Transformer, ids: Int[Tensor, "batch seq"], layer: int, positions: Int[Tensor, " seq"] | None = None
) -> Float[Tensor, "batch heads seq seq"]:
    """Attend to values that are the rows of the identity: what comes out are the weights."""
    ids, attention = ids.to(model.words.weight.device), cast(TransformerLayer, model.layers[layer]).attention
    positions = torch.arange(ids.shape[1], device=ids.device) if positions is None else positions
    x, scheme = attention_input(model, ids, layer, positions), attention.position_scheme
    q, k = (each(x).unflatten(-1, (-1, attention.d_head)).transpose(1, 2) for each in (attention.query, attention.key))
    q, k, gates = scheme.rotate(q, positions), scheme.rotate_keys(k, positions), scheme.gates(x)
    # In slices as wide as a head, which every way to attend can take.
    width, length = attention.d_head, len(positions)
    identity = torch.eye(length, -(-length // width) * width, dtype=x.dtype, device=x.device)
    values = (part.expand(*k.shape[:2], -1, -1) for part in identity.split(width, dim=1))
    how: dict[str, Any] = {"causal": attention.causal, "scale": attention.logit_scale, "gates": gates}
    slices = [attend(q, k, v, scheme=scheme, positions=positions, key_positions=positions, **how) for v in values]
    return torch.cat(slices, dim=-1)[..., :length]


@contextmanager
def with_weights(model: Any) -> Iterator[None]:
    """Let a model of transformers compute its weights, if it has an attention function that keeps none.

    A function that somebody registered under a name of their own stays: it may compute something else.
    """
    before = None if own_transformer(model) is not None else model.config._attn_implementation
    if before not in WITHOUT_WEIGHTS:
        yield
        return
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)


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
    check_one_stack(model)
    n, special, padding = vocabulary_of(model)
    if not isinstance(words, int | np.integer):
        if padding in torch.as_tensor(words).tolist():
            raise ProbeInputError(f"word {padding} is padding, so this model has no attention for it; choose another")
        return torch.as_tensor(words).long().cpu()
    known = torch.tensor([word for word in range(n) if word not in special])
    if words > len(known):
        raise ProbeInputError(f"words={words}, but the vocabulary has {len(known)} words to draw from")
    return known[torch.randperm(len(known), generator=torch.Generator().manual_seed(seed))[:words]]


@public(ProbeInputError)
def repeated_word_attention(model: nn.Module, *, bos: Whole, word: Whole, layer: Whole = 0) -> Float[Tensor, "heads 3"]:
    """Show how the last token of the text [bos, word, word] attends to the three.

    In the first layer of a model without positions both occurrences have the same key, so every head gives them equal
    weights, whatever its parameters: none can look at the token itself or at the one before it, as heads with RoPE can
    (Barbero et al. 2024). In deeper layers of a causal model the two differ, because the first layer has seen fewer
    tokens at one than at the other.

    Args:
        model: a model of transformers with one stack of layers, or posembed's `Transformer` or `LanguageModel`.
        bos: the word at the beginning.
        word: the one that stands there twice, another than `bos`.
        layer: which, from 0.

    Returns:
        For each head the weights of the three tokens; they sum to one. In float32, on the CPU.

    Raises:
        ProbeInputError: words or a layer that the model does not have, equal words, or a model without weights.
        ProbeInputError: attention weights are NaN, or do not sum to one.

    Example:
        >>> from posembed import Transformer, TransformerConfig
        >>> from posembed.mechanisms import repeated_word_attention
        >>> for scheme in ("nopos", "alibi"):
        ...     model = Transformer(TransformerConfig(9, scheme=scheme, n_layers=1))
        ...     _, first, second = repeated_word_attention(model, bos=0, word=5).T
        ...     print(scheme, bool((second - first).abs().max() < 1e-6))
        nopos True
        alibi False
    """
    if word == bos:
        raise ProbeInputError(f"bos and word are both {bos}; give two different words")
    ids = checked_inputs(model, torch.tensor([[bos, word, word]]), at_least=1)
    with eval_mode(model), with_weights(model):
        return attention_maps(model, ids, layer)[0, :, -1].float().cpu()
