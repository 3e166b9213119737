"""Cache offset: each part begins at position 0, and its mask at key 0.

Symptom: the loss is right and generated text is babble, or loops; without
    the cache the same model writes well.
Hint: feed one text whole, then in parts, and compare; twice.
Property: a text in parts through a cache gives what it gives as a whole.
Report: ml-explore/mlx-lm#93; also keras-team/keras-hub#2977 and
    lucidrains/rotary-embedding-torch#11. The mask: pytorch/pytorch#108108,
    as a user saw it pytorch/pytorch#144858
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def numbers(*shape: int) -> Tensor:
    """Make numbers that look drawn at random and are the same everywhere."""
    return torch.arange(torch.Size(shape).numel()).square().sin().view(shape)


def frequencies(d: int, base: float = 10000.0) -> Tensor:
    """Return the angle by which each of d / 2 pairs turns in one step."""
    return base ** (-torch.arange(0, d, 2) / d)


def sinusoids(positions: Tensor, d_model: int) -> Tensor:
    """Make the sinusoidal row of each position."""
    angles = positions[..., None] * frequencies(d_model)
    return torch.cat([angles.sin(), angles.cos()], -1)


def broken(x: Tensor, cache: list) -> Tensor:
    """Attend from the new tokens x, (time, d_model); keep them in the cache."""
    positions = torch.arange(len(x))
    cache.append(x + sinusoids(positions, x.shape[1]))
    q, k = cache[-1], torch.cat(cache)
    return F.scaled_dot_product_attention(q, k, k, is_causal=True)


def mended(x: Tensor, cache: list) -> Tensor:
    """Attend from the new tokens x, (time, d_model); keep them in the cache."""
    positions = torch.arange(len(x)) + sum(map(len, cache))
    cache.append(x + sinusoids(positions, x.shape[1]))
    q, k = cache[-1], torch.cat(cache)
    seen = torch.ones(len(q), len(k)).tril(len(k) - len(q)) > 0
    return F.scaled_dot_product_attention(q, k, k, attn_mask=seen)


def check(candidate):
    """Assert that parts give the whole, and that the order of tokens counts."""
    off = float(picture(candidate).max())
    assert off < 1e-4, (
        f"outputs change by {off:.2f} when a text comes in parts: do positions "
        "start from 0 again, or is the mask aligned to the first key? Go on "
        "behind the tokens in the cache"
    )
    x = numbers(8, 16)
    swapped = candidate(x[[1, 0, 2, 3, 4, 5, 6, 7]], [])
    moved = (swapped - candidate(x, []))[-1].abs().max()
    assert moved > 1e-3, "swapped tokens change nothing: add positions"


def picture(candidate):
    """Show the error when 4, 1, 1 and 2 tokens come: row = token."""
    x, cache = numbers(8, 16), []
    parts = [candidate(part, cache) for part in x.split([4, 1, 1, 2])]
    return (torch.cat(parts) - candidate(x, [])).abs()
