"""Attention on the CPU, a block of queries at a time."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .masks import AttentionMask

# Queries in a block.
ROWS = 256


class Bias:
    """What is added to the logits of a block of queries; by itself nothing.

    Attributes:
        flipped: whether the keys run backwards, last key first.
        wants_gradient: whether a block's bias must be made again for the gradient.
        causal: whether the bias is minus infinity for keys ahead.
    """

    flipped = False
    wants_gradient = False
    causal = False

    def block(self, start: int, stop: int) -> Tensor | None:
        """Return the bias of the queries from start to stop and the keys that they may see."""
        return None


def attend_in_blocks(
    q: Tensor, k: Tensor, v: Tensor, bias: Bias, mask: AttentionMask, scale: float | None, dropout: float
) -> Tensor:
    """Attend, with the keys ahead of a block left out where the model is causal."""
    if bias.flipped:
        k, v = k.flip(2), v.flip(2)
    blocks = []
    for start in range(0, mask.n_queries, ROWS):
        stop = min(start + ROWS, mask.n_queries)
        n_keys = mask.n_visible_keys(stop)
        keys = slice(mask.n_keys - n_keys, None) if bias.flipped else slice(n_keys)
        part = (q[:, :, start:stop], k[:, :, keys], v[:, :, keys], bias, mask, start, stop, scale, dropout)
        blocks.append(checkpoint(_block, *part, use_reentrant=False) if bias.wants_gradient else _block(*part))
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks, 2)


def _block(q, k, v, bias: Bias, mask: AttentionMask, start: int, stop: int, scale, dropout) -> Tensor:
    added = bias.block(start, stop)
    seen = mask.block(start, stop, causal=not bias.causal)
    if seen is not None and bias.flipped:
        seen = seen.flip(-1)
    if added is not None and seen is not None:
        added = added.masked_fill(~seen, -torch.inf)
    total = seen if added is None else added
    grouped = q.shape[1] != k.shape[1]
    return F.scaled_dot_product_attention(q, k, v, total, dropout_p=dropout, scale=scale, enable_gqa=grouped)
