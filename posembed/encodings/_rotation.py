"""Turning pairs of columns: the arithmetic of rotary schemes, in either layout."""

from __future__ import annotations

import itertools

import torch
from jaxtyping import Float
from torch import Tensor

from ._angles import is_transformed

# From here on a head's columns outgrow a processor's nearest caches, and heads are turned one at a time.
LARGE = 2**14


def rotate_pairs(
    x: Float[Tensor, "*batch seq d_head"],
    cos: Float[Tensor, "*#batch seq pairs"],
    sin: Float[Tensor, "*#batch seq pairs"],
    layout: str,
) -> Float[Tensor, "*batch seq d_head"]:
    """Turn the pairs of the first columns of x; the columns after them stay as they are.

    Args:
        x: queries or keys, of any floating-point format.
        cos: of the angles, in the format to compute in.
        sin: of the angles.
        layout: "half" or "interleaved".

    Returns:
        A tensor of x's format, rounded once.
    """
    width = 2 * cos.shape[-1]
    if width < x.shape[-1]:
        return torch.cat([rotate_pairs(x[..., :width], cos, sin, layout), x[..., width:]], -1)
    wide = x.to(cos.dtype)
    if layout == "interleaved":
        return _interleaved(wide, cos, sin).to(x.dtype)
    if torch.compiler.is_compiling() or wide.device.type != "cpu" or is_transformed(wide, cos):
        return _half(wide, cos, sin).to(x.dtype)
    return _HalfRotation.apply(wide, cos, sin).to(x.dtype)


def _interleaved(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """In memory a pair of neighbours is a complex number, and a rotation is one product."""
    if torch.compiler.is_compiling():  # compilers leave complex numbers alone
        even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack([even * cos - odd * sin, odd * cos + even * sin], -1).flatten(-2)
    x = x.contiguous()
    if x.storage_offset() % 2:  # complex numbers begin at even places
        x = x.clone()
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * torch.complex(cos, sin)).flatten(-2)


def _half(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class _HalfRotation(torch.autograd.Function):
    """The same as `_half` in three passes over memory instead of seven, forward and backward."""

    @staticmethod
    def forward(x, cos, sin):
        return _half_in_place(x, cos, sin)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx, gradient):
        cos, sin = ctx.saved_tensors
        # A rotation is undone by the opposite one, and that is its transpose.
        return _HalfRotation.apply(gradient, cos, -sin), None, None


def _half_in_place(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    both = torch.cat([cos, cos], -1)
    if cos.ndim > 2 or x.shape[-2] * x.shape[-1] < LARGE:
        _turn(x, out, both, cos, sin)
        return out
    for head in itertools.product(*map(range, x.shape[:-2])):
        _turn(x[head], out[head], both, cos, sin)
    return out


def _turn(x: Tensor, out: Tensor, both: Tensor, cos: Tensor, sin: Tensor) -> None:
    """Write the turned x into out."""
    torch.mul(x, both, out=out)
    (first, second), (turned_first, turned_second) = x.chunk(2, -1), out.chunk(2, -1)
    turned_first.addcmul_(second, sin, value=-1)
    turned_second.addcmul_(first, sin)
