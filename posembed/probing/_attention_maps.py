"""The attention weights of one layer of any model, posembed's or of transformers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..errors import ProbeInputError
from ..models import Transformer, attend
from ._any_model import own_transformer

# Attention functions of transformers that compute the same as "eager" and keep no weights.
WITHOUT_WEIGHTS = frozenset({"sdpa", "flash_attention_2", "flash_attention_3", "flex_attention"})
# A row of weights in half precision sums to one within this.
SUM_TOLERANCE = 0.02


def attention_maps(model: nn.Module, ids: Int[Tensor, "batch seq"], layer: int) -> Float[Tensor, "batch heads seq seq"]:
    own = own_transformer(model)
    maps = _of_transformers(model, ids, layer) if own is None else _of_own(own, ids, layer)
    # Some kernels turn what is NaN into zeros.
    if not bool(((maps.sum(dim=-1) - 1).abs() <= SUM_TOLERANCE).all()):
        raise ProbeInputError(
            f"attention weights of layer {layer} are NaN or do not sum to one; look at the model's weights and format"
        )
    return maps


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


@contextmanager
def with_weights(model: Any) -> Iterator[None]:
    """Let a model of transformers compute its weights, if it has an attention function that keeps none.

    A function that somebody registered under a name of their own stays: it may compute something else.
    """
    before = None if own_transformer(model) is not None else model.config._attn_implementation
    if before not in WITHOUT_WEIGHTS or not model._can_set_attn_implementation():
        yield
        return
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)
