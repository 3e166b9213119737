"""The positions of the keys in a cache of transformers."""

from __future__ import annotations

from typing import Any

from jaxtyping import Int
from torch import Tensor
from transformers.cache_utils import DynamicLayer, StaticLayer

from ..errors import ModelInputError


def self_attention_cache(cache: Any) -> Any:
    """Return the part of a cache that belongs to self-attention; a decoder with cross-attention has two."""
    return getattr(cache, "self_attention_cache", cache)


def key_positions(
    cache: Any, positions: Int[Tensor, "batch seq"], n_layers: int, *, filled: bool = False
) -> Int[Tensor, "batch key"]:
    """Add the positions of new tokens to a cache and return those of all its keys.

    They are kept as one more layer of the cache, behind the model's: so they are reordered by beam search, repeated,
    cropped and copied with the keys.

    Args:
        cache: of self-attention.
        positions: of the new tokens.
        n_layers: the number of the model's layers.
        filled: whether the keys of these tokens are in the cache already.
    """
    if len(cache.layers) <= n_layers:
        _check_new(cache, filled)
        while len(cache.layers) < n_layers:  # a cache that makes its layers when they are first used
            cache.layers.append(cache.layer_class_to_replicate())
        first = cache.layers[0]
        cache.layers.append(StaticLayer(first.max_cache_len) if isinstance(first, StaticLayer) else DynamicLayer())
    states = positions[:, None, :, None]
    return cache.layers[n_layers].update(states, states)[0][:, 0, :, 0]


def _check_new(cache: Any, filled: bool) -> None:
    if not filled and cache.get_seq_length():
        raise ModelInputError(
            "the cache was filled without this scheme, so its keys' positions are not known; give a new one"
        )
    if cache.offloading:
        raise ModelInputError("an offloaded cache cannot keep positions; use another cache_implementation")
    if any(isinstance(layer, StaticLayer) and layer.is_sliding for layer in cache.layers):
        raise ModelInputError("a static cache with a sliding window moves its keys about; use a dynamic cache")
