"""Angles of positions, exact in float64 whatever the model's format, and the pairs of columns that turn by them."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Integer
from torch import Tensor


def frequencies(width: int, base: float) -> Float[Tensor, " pairs"]:
    """Return base^(-2i / width) in float64 for each pair of columns; an odd width has half a pair more."""
    # On the CPU also inside `with torch.device("meta")`: they follow from two numbers, and no weights replace them.
    return torch.exp(-math.log(base) * torch.arange(0, width, 2, dtype=torch.float64, device="cpu") / width)


def angles(
    positions: Integer[Tensor, "*shape #pairs"], frequencies: Float[Tensor, " pairs"]
) -> Float[Tensor, "*shape pairs"]:
    """Return position times frequency in float64, on the device of the positions, or on the CPU where it has none.

    Positions end in one for all pairs, or in one for each.

    In float32 a position of a million leaves an angle only four digits, in bfloat16 neighbouring positions fall
    together from 256 on.
    """
    exact = torch.device("cpu") if positions.device.type == "mps" else positions.device
    return positions.to(exact).double() * frequencies.to(exact).double()


def cos_sin(
    positions: Integer[Tensor, "*shape #pairs"], frequencies: Float[Tensor, " pairs"], dtype: torch.dtype
) -> tuple[Float[Tensor, "*shape pairs"], Float[Tensor, "*shape pairs"]]:
    """Return cosine and sine of position times frequency, in `dtype`, on the device of `positions`."""
    at = angles(positions, frequencies)
    return at.cos().to(dtype).to(positions.device), at.sin().to(dtype).to(positions.device)


def arrange(
    sines: Float[Tensor, "*batch pairs"], cosines: Float[Tensor, "*batch pairs"], d_model: int, layout: str
) -> Float[Tensor, "*batch d_model"]:
    """Put sines and cosines into the columns of a layout; of an odd width the last cosine is left out."""
    if layout == "interleaved":
        return torch.stack([sines, cosines], -1).flatten(-2)[..., :d_model]
    both = torch.cat([sines, cosines], -1)
    return both[..., :d_model] if both.shape[-1] >= d_model else F.pad(both, (0, 1))


def rotate_pairs(
    x: Float[Tensor, "*batch seq d_head"],
    cos: Float[Tensor, "*#batch seq pairs"],
    sin: Float[Tensor, "*#batch seq pairs"],
    layout: str,
) -> Float[Tensor, "*batch seq d_head"]:
    """Turn the pairs of the first columns of x, in the format of cos and sin; the columns after them stay as they are.

    Args:
        x: queries or keys, of any floating-point format, which the result has too.
        cos: of the angles.
        sin: of the angles.
        layout: "half" (column i and the one half the width on) or "interleaved" (neighbours).
    """
    width = 2 * cos.shape[-1]
    turning = x[..., :width].to(cos.dtype)
    if layout == "half":
        first, second = turning.chunk(2, -1)
        across = torch.cat([-second, first], -1)
        turned = torch.addcmul(turning * torch.cat([cos, cos], -1), across, torch.cat([sin, sin], -1))
    else:  # in memory a pair of neighbours is a complex number, and a rotation is one product
        pairs = torch.view_as_complex(turning.clone(memory_format=torch.contiguous_format).unflatten(-1, (-1, 2)))
        turned = torch.view_as_real(pairs * torch.complex(cos, sin)).flatten(-2)
    return torch.cat([turned.to(x.dtype), x[..., width:]], -1) if width < x.shape[-1] else turned.to(x.dtype)
