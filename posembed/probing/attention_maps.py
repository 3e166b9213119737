"""The attention weights of one layer of any model, posembed's or of transformers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..errors import ProbeInputError
from ..models import Transformer, attend
from .hidden_states import named, own_transformer, telling

# Attention functions of transformers that compute the same as "eager" and keep no weights.
WITHOUT_WEIGHTS = frozenset({"sdpa", "flash_attention_2", "flash_attention_3", "flex_attention"})
# A row of weights in half precision sums to one within this.
SUM_TOLERANCE = 0.02


def attention_maps(model: nn.Module, ids: Int[Tensor, "batch seq"], layer: int) -> Float[Tensor, "batch heads seq seq"]:
    """How each head of a layer attends. Row i of a map holds the weights of query i; every row sums to one."""
    own: Any = own_transformer(model)
    maps = [] if own is not None else _of_transformers(model, ids)
    n_layers = len(maps) if own is None else len(own.layers)
    if layer >= n_layers:
        raise ProbeInputError(f"layer is {layer}, but {named(model)} gives attention weights of {n_layers} layers")
    found = maps[layer] if own is None else _of_own(own, ids, layer)
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


def _of_own(model: Transformer, ids: Int[Tensor, "batch seq"], layer: int) -> Float[Tensor, "batch heads seq seq"]:
    """Attend to values that are the rows of the identity: what comes out are the weights."""
    layers: Any = model.layers
    ids = ids.to(model.words.weight.device)
    positions = torch.arange(ids.shape[1], device=ids.device)
    x = model.embed(ids, positions)
    for index, before in enumerate(layers[:layer]):
        x = before(model.entering(index, x, positions), positions)
    x = model.entering(layer, x, positions)
    attention, scheme = layers[layer].attention, layers[layer].attention.position_scheme
    x = layers[layer].attention_norm(x) if layers[layer].pre_norm else x
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
