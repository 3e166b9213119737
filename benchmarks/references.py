"""The same works in float64, by their formulas: what every answer is compared with."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def sinusoids(n_positions: int, d_model: int, layout: str = "interleaved", base: float = 10000.0) -> Tensor:
    """The table of sines and cosines, "n_positions d_model"; even widths."""
    n_pairs = d_model // 2
    steps = n_pairs - 1 if layout == "tensor2tensor" else n_pairs
    frequencies = base ** (-torch.arange(n_pairs, dtype=torch.float64) / steps)
    angles = torch.arange(n_positions, dtype=torch.float64)[:, None] * frequencies
    if layout == "interleaved":
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)
    return torch.cat([angles.sin(), angles.cos()], -1)


def rotated(x: Tensor, positions: Tensor, layout: str = "half", base: float = 10000.0) -> Tensor:
    """RoPE: the pairs of x, "... seq d_head", turned by the angles of their positions."""
    x, width = x.double(), x.shape[-1]
    frequencies = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = positions.double()[:, None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    if layout == "half":
        first, second = x.chunk(2, -1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)
    first, second = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([first * cos - second * sin, second * cos + first * sin], -1).flatten(-2)


def offsets(n_queries: int, n_keys: int | None = None) -> Tensor:
    """Key position minus query position, "query key"; the queries are the last of the keys."""
    n_keys = n_queries if n_keys is None else n_keys
    return torch.arange(n_keys) - torch.arange(n_keys - n_queries, n_keys)[:, None]


def alibi_slopes(n_heads: int) -> Tensor:
    """The slopes of a power of two of heads, "heads"."""
    return 2.0 ** (-8.0 * torch.arange(1, n_heads + 1, dtype=torch.float64) / n_heads)


def alibi(n_heads: int, at: Tensor) -> Tensor:
    """ALiBi's bias of offsets of any shape, "heads ..."."""
    return -alibi_slopes(n_heads).view(-1, *[1] * at.ndim) * at.abs()


def t5_buckets(at: Tensor, causal: bool, n_buckets: int = 32, max_distance: int = 128) -> Tensor:
    """T5's bucket of each offset."""
    side = n_buckets if causal else n_buckets // 2
    distances = (-at).clamp(min=0) if causal else at.abs()
    exact = side // 2
    # Distances that begin a bucket give a whole number, up to rounding.
    share = torch.log(distances.clamp(min=1).double() / exact) / math.log(max_distance / exact)
    wide = (exact + (share * (side - exact) + 1e-9).long()).clamp(max=side - 1)
    buckets = torch.where(distances < exact, distances, wide)
    return buckets if causal else buckets + side * (at > 0)


def t5(weight: Tensor, at: Tensor, causal: bool) -> Tensor:
    """T5's bias of offsets of any shape, "heads ..."; weight is "buckets heads"."""
    return weight[t5_buckets(at, causal)].movedim(-1, 0)


def shaw(q: Tensor, rows: Tensor, at: Tensor) -> Tensor:
    """Shaw's bias, "batch heads query key"; rows are those of the offsets -clip to clip, "2*clip+1 d_head"."""
    clip = len(rows) // 2
    by_offset = q @ rows.T / math.sqrt(q.shape[-1])
    return by_offset.gather(-1, (at.clamp(-clip, clip) + clip).expand(*by_offset.shape[:2], -1, -1))


def bias(scheme: str, q: Tensor, table: Tensor | None, causal: bool, n_keys: int) -> Tensor | None:
    """What a scheme adds to the logits of queries that are the last of the keys, in the format of q; None: nothing."""
    at = offsets(q.shape[2], n_keys)
    if scheme == "alibi":
        return alibi(q.shape[1], at).to(q.dtype)
    if scheme == "t5":
        return t5(table, at, causal)
    return shaw(q, table, at) if scheme == "shaw" else None


def attention(scheme: str, q: Tensor, k: Tensor, v: Tensor, table: Tensor | None, causal: bool) -> Tensor:
    """softmax(q k / sqrt(d_head) + bias) v; differentiable."""
    if scheme == "rope":
        positions = torch.arange(k.shape[2])
        q, k = rotated(q, positions[-q.shape[2] :]), rotated(k, positions)
    logits = q @ k.mT / math.sqrt(q.shape[-1])
    added = bias(scheme, q, table, causal, k.shape[2])
    if added is not None:
        logits = logits + added
    if causal:
        logits = logits.masked_fill(offsets(q.shape[2], k.shape[2]) > 0, -math.inf)
    return logits.softmax(-1) @ v
