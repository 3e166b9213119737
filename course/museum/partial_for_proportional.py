"""Partial for proportional: a part of the head turns, and it is another part.

Symptom: short texts look right, for at position 0 nothing turns; the longer
    the text, the further the model drifts from the original.
Hint: which columns move? In a whole head column i turns with i + d / 2.
Property: what turns in a part of the head turns as it does in a whole head,
    and the rest stands still.
Report: NVIDIA-NeMo/Megatron-Bridge#4195, which had the speeds right; the
    confusion the other way round: pie-project/pie#602. A number of heads
    that does not tell the slopes of ALiBi: ml-explore/mlx#3071
"""

import torch
from torch import Tensor


def numbers(*shape: int) -> Tensor:
    """Make numbers that look drawn at random and are the same everywhere."""
    return torch.arange(torch.Size(shape).numel()).square().sin().view(shape)


def frequencies(d: int, base: float = 10000.0) -> Tensor:
    """Return the angle by which each of d / 2 pairs turns in one step."""
    return base ** (-torch.arange(0, d, 2) / d)


def turn(x: Tensor, angles: Tensor) -> Tensor:
    """Turn pair i of x, columns i and i + d / 2, by angles[..., i]."""
    (a, b), cosine, sine = x.chunk(2, -1), angles.cos(), angles.sin()
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1)


def broken(x: Tensor, part: float) -> Tensor:
    """Turn the fastest part of a head's pairs in x, (time, d_head)."""
    n = int(part * x.shape[1]) // 2
    angles = torch.arange(len(x))[:, None] * frequencies(x.shape[1])
    first, rest = x[:, : 2 * n], x[:, 2 * n :]
    return torch.cat([turn(first, angles[:, :n]), rest], 1)


def mended(x: Tensor, part: float) -> Tensor:
    """Turn the fastest part of a head's pairs in x, (time, d_head)."""
    n = int(part * x.shape[1]) // 2
    angles = torch.arange(len(x))[:, None] * frequencies(x.shape[1])
    angles[:, n:] = 0
    return turn(x, angles)


def check(candidate):
    """Assert that a part turns as in a whole head, and that no more turns."""
    x, pair = numbers(64, 32), torch.arange(32) % 16
    whole, some = candidate(x, 1.0), candidate(x, 0.25)
    off = float((some - torch.where(pair < 4, whole, x)).abs().max())
    assert off < 1e-4, (
        f"a quarter of a head is off by {off:.2f}: is it a head of its own, "
        "with pairs or speeds of its own? Take the fastest of the whole head's"
    )
    assert (whole - x).abs().max() > 1e-3, "nothing turns: turn by position"


def picture(candidate):
    """Show what a quarter of a head does to ones: row = position."""
    return candidate(torch.ones(32, 32), 0.25) - 1
