"""Attention through FlexAttention: on a GPU the bias is computed inside the kernel and never stored."""

from __future__ import annotations

import functools

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from ..encodings.interface import ScoreMod
from .masks import AttentionMask


def flex_attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    hook: ScoreMod,
    positions: Tensor,
    key_positions: Tensor,
    mask: AttentionMask,
    scale: float | None,
    *,
    compiled: bool = True,
) -> Tensor:
    """Attend with a bias given as a hook of positions. Not compiled it is slow and stores everything: for tests."""
    attention = _compiled() if compiled else flex_attention
    return attention(
        q,
        k,
        v,
        score_mod=_of_indices(hook, positions, key_positions),
        block_mask=_block_mask(mask, q, k),
        scale=scale,
        enable_gqa=q.shape[1] != k.shape[1],
    )


# Each hook is a program of its own. Past the compiler's eight it would go on uncompiled, with whole matrices.
PROGRAMS = 128


@functools.cache
def _compiled():
    return torch._dynamo.config.patch(recompile_limit=PROGRAMS)(torch.compile(flex_attention))


def _of_indices(hook: ScoreMod, positions: Tensor, key_positions: Tensor) -> ScoreMod:
    """FlexAttention tells indices; the hook wants positions."""

    def at(values: Tensor, batch: Tensor, index: Tensor) -> Tensor:
        return values[index] if values.ndim == 1 else values[batch if values.shape[0] > 1 else 0, index]

    def score_mod(score, batch, head, query, key):
        return hook(score, batch, head, at(positions, batch, query), at(key_positions, batch, key))

    return score_mod


def _block_mask(mask: AttentionMask, q: Tensor, k: Tensor) -> BlockMask:
    if mask.given is None:
        return _unpadded(mask.n_queries, mask.n_keys, mask.causal, q.device)
    ahead, given, causal = mask.n_keys - mask.n_queries, mask.given, mask.causal

    def sees(batch, head, query, key):
        n_batch, n_heads, n_rows, _ = given.shape
        row = query if n_rows > 1 else 0
        allowed = given[batch if n_batch > 1 else 0, head if n_heads > 1 else 0, row, key]
        return allowed & (key <= query + ahead) if causal else allowed

    return create_block_mask(sees, given.shape[0], given.shape[1], q.shape[2], k.shape[2], device=q.device)


# Making one takes longer than attending, and every layer of every step asks for the same. It is made also where all is
# seen: PyTorch 2.11 fails in a process that calls its kernel with a mask and then without.
@functools.lru_cache(maxsize=8)
def _unpadded(n_queries: int, n_keys: int, causal: bool, device: torch.device) -> BlockMask:
    last = n_keys - n_queries if causal else n_keys
    # One that is made in inference mode could not be kept for a gradient later.
    with torch.inference_mode(False):
        return create_block_mask(
            lambda batch, head, query, key: key <= query + last, None, None, n_queries, n_keys, device=device
        )
