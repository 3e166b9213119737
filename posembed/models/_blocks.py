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
        flipped: whether the queries of a block run backwards, last query first.
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
    if torch.is_grad_enabled():
        blocks = [
            checkpoint(_block, *part, use_reentrant=False) if bias.wants_gradient else _block(*part)
            for part in _parts(q, k, v, bias, mask, scale, dropout)
        ]
        return blocks[0] if len(blocks) == 1 else torch.cat(blocks, 2)
    # Heads behind the sequence in memory, as they are joined next.
    out = q.new_empty(q.shape[0], q.shape[2], q.shape[1], v.shape[3]).transpose(1, 2)
    for part in _parts(q, k, v, bias, mask, scale, dropout):
        start, stop = part[5:7]
        out[:, :, start:stop] = _block(*part)
    return out


def _parts(q, k, v, bias, mask, scale, dropout):
    """Yield the arguments of each block."""
    for start in range(0, mask.n_queries, ROWS):
        stop = min(start + ROWS, mask.n_queries)
        n_keys = mask.n_visible_keys(stop)
        yield q[:, :, start:stop], k[:, :, :n_keys], v[:, :, :n_keys], bias, mask, start, stop, scale, dropout


def _block(q, k, v, bias: Bias, mask: AttentionMask, start: int, stop: int, scale, dropout) -> Tensor:
    added = bias.block(start, stop)
    seen = mask.block(start, stop, causal=not bias.causal)
    if bias.flipped:
        q = q.flip(2)
        seen = seen if seen is None or seen.shape[-2] == 1 else seen.flip(-2)
    if added is not None and seen is not None:
        added = added.masked_fill(~seen, -torch.inf)
    total = seen if added is None else added
    grouped = q.shape[1] != k.shape[1]
    out = F.scaled_dot_product_attention(q, k, v, total, dropout_p=dropout, scale=scale, enable_gqa=grouped)
    return out.flip(2) if bias.flipped else out
