"""Half-precision angles: positions are rounded before they are used.

Symptom: in bfloat16 the model is a little worse than in float32, and the
    longer the text the more: from position 256 on neighbours become one.
Hint: look for neighbouring rows that are equal; print 257 in bfloat16.
Property: neighbouring rows differ, and a row in half precision is within .01
    of the exact row.
Report: EleutherAI/gpt-neox#1003; its effect on training:
    huggingface/transformers#29285
"""

import torch
from torch import Tensor


def frequencies(d: int, base: float = 10000.0) -> Tensor:
    """Return the angle by which each of d / 2 pairs turns in one step."""
    return base ** (-torch.arange(0, d, 2) / d)


def broken(positions: Tensor, d_head: int, dtype: torch.dtype) -> Tensor:
    """Make cosines and sines for RoPE in dtype, (positions, d_head)."""
    angles = positions.to(dtype)[:, None] * frequencies(d_head).to(dtype)
    return torch.cat([angles.cos(), angles.sin()], -1).to(dtype)


def mended(positions: Tensor, d_head: int, dtype: torch.dtype) -> Tensor:
    """Make cosines and sines for RoPE in dtype, (positions, d_head)."""
    angles = positions.float()[:, None] * frequencies(d_head)
    return torch.cat([angles.cos(), angles.sin()], -1).to(dtype)


def check(candidate):
    """Assert that 4096 rows in two formats differ and are nearly exact."""
    angles = 1e4 ** (-torch.arange(16).double() / 16)
    angles = torch.arange(4096)[:, None] * angles
    exact = torch.cat([angles.cos(), angles.sin()], -1)
    for dtype in (torch.bfloat16, torch.float16):
        rows = candidate(torch.arange(4096), 32, dtype).double()
        same = (rows[1:] == rows[:-1]).all(1)
        p = int(same.int().argmax())
        why = f"rows {p} and {p + 1} are identical: are positions or angles in"
        assert not same.any(), f"{why} {dtype}? Round cosine and sine instead"
        off = float((rows - exact).abs().max())
        why = f"rows in {dtype} are off by {off:.2f}: are frequencies or angles"
        assert off < 0.01, f"{why} rounded? Round cosine and sine instead"


def picture(candidate):
    """Show rows in bfloat16: row = position 1000 to 1063, column = column."""
    return candidate(torch.arange(1000, 1064), 32, torch.bfloat16).float()
