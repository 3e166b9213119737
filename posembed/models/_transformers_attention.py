"""The attention function that models of transformers call while a position scheme is in them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from ..encodings import PositionScheme
from ..encodings.positions import compute_dtype
from ..errors import ModelInputError
from .attention import attend

# The name of the functions below in transformers.
NAME = "posembed"
# Where an attention module has the scheme of its layer.
SCHEME = "_posembed_scheme"
# What some calls ask of attention and use_scheme has no place for.
UNSUPPORTED = ("softcap", "s_aux", "position_bias", "cache")


class Call(NamedTuple):
    """What one call of a model tells the attention of every layer.

    Attributes:
        positions: of the queries.
        key_positions: of all keys, those in the cache first.
        weights: whether the attention weights are asked for.
    """

    positions: Tensor
    key_positions: Tensor
    weights: bool


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    posembed_call: Call | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attend with the scheme of the module's layer, or without one where it has none, as in cross-attention."""
    _check(module, posembed_call, kwargs)
    scheme = getattr(module, SCHEME, None)
    if scheme is None or posembed_call is None:
        return _with_weights(query, key, value, attention_mask, None, scaling, dropout)
    query, scaling = _unscaled(query, scaling, module)
    at, keys_at = posembed_call.positions, posembed_call.key_positions[..., -key.shape[2] :]  # a window keeps the last
    # transformers fills its cache before it calls attention: keys are cached as they are and turned at each step anew.
    query, key = scheme.rotate(query, at), scheme.rotate_keys(key, keys_at)
    if posembed_call.weights or (attention_mask is not None and attention_mask.is_floating_point()):
        bias = _bias(scheme, query, key, at, keys_at, attention_mask)
        return _with_weights(query, key, value, attention_mask, bias, scaling, dropout)
    how: dict[str, Any] = {"attention_mask": attention_mask, "causal": False, "scale": scaling, "dropout": dropout}
    mixed = attend(query, key, value, scheme=scheme, positions=at, key_positions=keys_at, **how)
    return mixed.transpose(1, 2).contiguous(), None


def whole_mask(*args: Any, **kwargs: Any) -> Tensor | None:
    """Make the mask, causality included: True where a query may look, None only where it may look everywhere."""
    return sdpa_mask(*args, **{**kwargs, "allow_is_causal_skip": False})


def _with_weights(query, key, value, mask, bias, scaling, dropout) -> tuple[Tensor, Tensor]:
    """Attend with every weight in memory, which `attend` never has."""
    groups, dtype = query.shape[1] // key.shape[1], compute_dtype(query)
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    logits = (query @ key.mT).to(dtype) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if bias is not None:
        logits = logits + bias
    if mask is not None and mask.is_floating_point():
        logits = logits + mask
    elif mask is not None:
        # Not minus infinity: the weights of a query that sees nothing would become nan.
        logits = logits.masked_fill(~mask.bool(), torch.finfo(dtype).min)
    weights = F.dropout(logits.softmax(-1).to(value.dtype), dropout)
    return (weights @ value).transpose(1, 2).contiguous(), weights


def _bias(scheme: PositionScheme, query, key, positions, key_positions, mask) -> Tensor | None:
    if not scheme.reads_mask:
        return scheme.bias(query, key, positions, key_positions)
    if mask is None:
        visible = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool, device=query.device)
    else:
        visible = mask > torch.finfo(mask.dtype).min / 2 if mask.is_floating_point() else mask
    return scheme.bias(query, key, positions, key_positions, visible=visible)  # type: ignore[call-arg]


def _unscaled(query: Tensor, scaling: float | None, module: Any) -> tuple[Tensor, float | None]:
    """Return queries as they were projected, which is what schemes read; OPT scales its own before attention."""
    if scaling != 1.0 or getattr(module, "scaling", 1.0) == 1.0:
        return query, scaling
    return query / module.scaling, module.scaling


def _check(module: nn.Module, call: Call | None, kwargs: dict[str, Any]) -> None:
    for name in UNSUPPORTED:
        if kwargs.get(name) is not None:
            raise ModelInputError(f"{type(module).__name__} asks for {name}=, which use_scheme does not support")
    if hasattr(module, SCHEME) and call is None:
        raise ModelInputError("a layer was called by itself, without positions; call the whole model")


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, whole_mask)
