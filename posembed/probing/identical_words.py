"""What attention does with positions alone: one word, repeated (Wang et al. 2021, On Position Embeddings in BERT)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from .._evaluating import evaluating
from ..errors import NonFiniteError, PositionTableError, ProbeInputError
from ..models import LanguageModel, Transformer, attend
from ..tables import find_position_rows
from ._random import checked_seed

# Attention functions of transformers that compute the same as "eager" and keep no weights.
WITHOUT_WEIGHTS = frozenset({"sdpa", "flash_attention_2", "flash_attention_3", "flex_attention"})
# A row of weights in half precision sums to one within this.
SUM_TOLERANCE = 0.02


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
        NonFiniteError: attention weights are NaN, or do not sum to one.

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
    _check_length(model, length)
    total: Any = 0.0
    with evaluating(model), _with_weights(model):
        for some in chosen.split(batch_size):
            maps = _maps(model, some[:, None].expand(-1, length), layer)
            of_words = maps.mean(dim=1, dtype=torch.float64) if heads == "mean" else maps
            total = total + of_words.sum(dim=0, dtype=torch.float64).cpu()
    # What half precision has rounded off is given back.
    return (total / total.sum(dim=-1, keepdim=True)).float()


# The words.


def _words(model: nn.Module, words: Any, excluded: set[int], seed: int) -> Int[Tensor, " words"]:
    n, special, padding = _vocabulary(model)
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


def _vocabulary(model: nn.Module) -> tuple[int, set[int], int | None]:
    """How many words there are, which of them are special, and which one pads."""
    own = _own(model)
    if own is not None:
        return own.config.vocab_size, set(), None
    module: Any = model
    reads = getattr(module, "main_input_name", None)
    if reads != "input_ids":
        reason = f"reads {reads}" if reads else "is no model of transformers or of posembed"
        raise ProbeInputError(f"{type(model).__name__} {reason}, and has no words to repeat; give a model of text")
    parts = {name.rpartition(".")[2] for name, _ in module.named_modules()}
    if getattr(module.config, "is_encoder_decoder", False) and {"encoder", "decoder"} <= parts:
        raise ProbeInputError(f"{type(model).__name__} has two stacks of layers; give one, such as model.get_encoder()")
    settings = module.config.get_text_config().to_dict()
    named = [ids for name, ids in settings.items() if name.endswith("_token_id") and ids is not None]
    special = {each for ids in named for each in (ids if isinstance(ids, list) else [ids])}
    return _n_words(module), special, settings.get("pad_token_id")


def _n_words(model: Any) -> int:
    try:
        return model.get_input_embeddings().weight.shape[0]
    except (AttributeError, NotImplementedError):
        kind = type(model).__name__
        raise ProbeInputError(f"{kind} has no word vectors of its own; give the part of it that reads text") from None


def _check_length(model: nn.Module, length: int) -> None:
    try:
        found = find_position_rows(model)
    except PositionTableError:  # without a table there is no last position
        return
    if length > len(found.rows):
        raise ProbeInputError(f"length is {length}, but {found.name} has {len(found.rows)} positions")


# The maps of one batch, "batch heads seq seq".


def _maps(model: nn.Module, ids: Int[Tensor, "batch seq"], layer: int) -> Float[Tensor, "batch heads seq seq"]:
    own = _own(model)
    maps = _of_transformers(model, ids, layer) if own is None else _of_own(own, ids, layer)
    # Some kernels turn what is NaN into zeros.
    if not bool(((maps.sum(dim=-1) - 1).abs() <= SUM_TOLERANCE).all()):
        raise NonFiniteError(
            f"attention weights of layer {layer} are NaN or do not sum to one; look at the model's weights and format"
        )
    return maps


def _own(model: nn.Module) -> Transformer | None:
    model = model.transformer if isinstance(model, LanguageModel) else model
    return model if isinstance(model, Transformer) else None


def _of_own(model: Transformer, ids: Int[Tensor, "batch seq"], layer: int) -> Float[Tensor, "batch heads seq seq"]:
    """Attend to values that are the rows of the identity: what comes out are the weights."""
    layers: Any = model.layers
    _check_layer(model, layer, len(layers))
    ids = ids.to(model.words.weight.device)
    positions = torch.arange(ids.shape[1], device=ids.device)
    x = model.embed(ids, positions)
    for before in layers[:layer]:
        x = before(x, positions)
    attention, scheme = layers[layer].attention, layers[layer].attention.position_scheme
    x = layers[layer].attention_norm(x) if layers[layer].pre_norm else x
    q, k = (each(x).unflatten(-1, (-1, attention.d_head)).transpose(1, 2) for each in (attention.query, attention.key))
    q, k = scheme.rotate(q, positions), scheme.rotate_keys(k, positions)
    # In slices as wide as a head, which every way to attend can take.
    width, length = attention.d_head, len(positions)
    identity = torch.eye(length, -(-length // width) * width, dtype=x.dtype, device=x.device)
    with_values = partial(
        attend, q, k, scheme=scheme, causal=attention.causal, scale=attention.logit_scale, positions=positions
    )
    slices = [
        with_values(part.expand(*k.shape[:2], -1, -1), key_positions=positions) for part in identity.split(width, dim=1)
    ]
    return torch.cat(slices, dim=-1)[..., :length]


class _ReachedError(Exception):
    """The layer has been reached, and nothing behind it needs to run."""


def _of_transformers(model: Any, ids: Int[Tensor, "batch seq"], layer: int) -> Float[Tensor, "batch heads seq seq"]:
    """Catch the weights where the layer's attention returns them, and stop there."""
    ids, seen, last = ids.to(model.device), 0, None

    def look(module: nn.Module, given: Any, output: Any) -> None:
        nonlocal seen, last
        for part in output if isinstance(output, tuple | list) else ():
            # Attention may be a module inside a module, and both return the same weights.
            if part is not last and _are_weights(part, ids):
                seen, last = seen + 1, part
                if seen > layer:
                    raise _ReachedError

    hooks = [module.register_forward_hook(look) for module in model.modules()]
    try:
        output = model(input_ids=ids, output_attentions=True)
    except _ReachedError:
        assert last is not None
        return last
    finally:
        for hook in hooks:
            hook.remove()
    # XLNet brings its weights into this shape at the very end.
    attentions = () if seen else getattr(output, "attentions", None) or ()
    _check_layer(model, layer, seen or len(attentions))
    return attentions[layer]


def _are_weights(part: Any, ids: Tensor) -> bool:
    batch, length = ids.shape
    if not isinstance(part, Tensor) or part.ndim != 4 or (part.shape[0], *part.shape[2:]) != (batch, length, length):
        return False
    # NaN is refused later, where it can be named.
    return bool(((part >= 0) | part.isnan()).all()) and not bool(((part.sum(-1) - 1).abs() > SUM_TOLERANCE).any())


def _check_layer(model: nn.Module, layer: int, n_layers: int) -> None:
    if not n_layers:
        raise ProbeInputError(
            f"{type(model).__name__} gives no attention weights, with attn_implementation='eager' either"
        )
    if layer >= n_layers:
        raise ProbeInputError(f"layer is {layer}, but {type(model).__name__} has layers 0 to {n_layers - 1}")


# The model, as it is needed and as it was.


@contextmanager
def _with_weights(model: Any) -> Iterator[None]:
    """Let a model of transformers compute its weights, if it has an attention function that keeps none.

    A function that somebody registered under a name of their own stays: it may compute something else.
    """
    before = None if _own(model) is not None else model.config._attn_implementation
    if before not in WITHOUT_WEIGHTS or not model._can_set_attn_implementation():
        yield
        return
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def _check_whole(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ProbeInputError(f"{name} is {value!r}; it must be a whole number of at least {least}")
