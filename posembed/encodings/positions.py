"""Positions: what they may be, and how they meet the tokens and each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Integer
from torch import Tensor

from ..errors import EncodingInputError, shown


def check_positions(
    positions: Any, x: Tensor, *, width: int | None = None, n_axes: int | None = None, name: str = "positions"
) -> None:
    """Raise EncodingInputError unless there is one integer position (or `n_axes` of them) for each of x's tokens.

    Args:
        positions: "seq" or "batch seq", with "axes" behind it where they have several.
        x: "... seq width", floating point: rounded to integers sines would be zeros.
        width: what x must have, if anything.
        n_axes: the number of coordinates of a position; None where it is one number.
        name: of the positions, in messages.
    """
    if not x.is_floating_point():
        raise EncodingInputError(f"the vectors are {x.dtype}; give floating-point ones, such as x.float()")
    if width is not None and x.shape[-1] != width:
        raise EncodingInputError(f"the vectors are {x.shape[-1]} wide, but this scheme was made for {width}")
    whole = isinstance(positions, Tensor) and not (positions.is_floating_point() or positions.is_complex())
    if not whole or positions.dtype == torch.bool:
        given = positions.dtype if isinstance(positions, Tensor) else f"a {type(positions).__name__}"
        raise EncodingInputError(f"{name} are {given}; give a tensor of integers, such as torch.arange(seq)")
    if n_axes is not None and (positions.ndim == 0 or positions.shape[-1] != n_axes):
        raise EncodingInputError(
            f"{name} have shape {tuple(positions.shape)}; the last axis must be {n_axes}, one for each coordinate"
        )
    shape = positions.shape if n_axes is None else positions.shape[:-1]
    seq = x.shape[-2]
    if shape != (seq,) and (x.ndim == 2 or shape not in ((x.shape[0], seq), (1, seq))):
        of_each = f" or [{x.shape[0]}, {seq}]" if x.ndim > 2 else ""
        raise EncodingInputError(
            f"{name} have shape {tuple(shape)}, and the tokens {tuple(x.shape)}; positions must be [{seq}]{of_each}"
        )


def check_pair(q: Tensor, k: Tensor, positions: Any, key_positions: Any, *, n_axes: int | None = None) -> None:
    """The same for queries and keys."""
    check_positions(positions, q, n_axes=n_axes)
    if key_positions is not positions or q.shape[-2] != k.shape[-2]:
        check_positions(key_positions, k, n_axes=n_axes, name="key_positions")


def known(positions: Tensor) -> bool:
    """Whether positions can be looked at: not in a compiler, on the meta device or in a transform of torch.func."""
    if torch.compiler.is_compiling() or positions.is_meta:
        return False
    return torch._C._functorch.peek_interpreter_stack() is None


def offsets_between(q: Tensor, k: Tensor, positions: Any, key_positions: Any) -> Integer[Tensor, "... query key"]:
    """Key position minus query position, for every pair; positions that do not fit q and k are refused."""
    check_pair(q, k, positions, key_positions)
    # In int64: unsigned or short integers would wrap around.
    return key_positions.long().unsqueeze(-2) - positions.long().unsqueeze(-1)


def for_heads(values: Tensor, x: Tensor) -> Tensor:
    """Put axes for the heads between the batch of `values`, "batch seq ...", and its sequence, as in x."""
    if values.ndim > 2:
        return values.reshape(values.shape[0], *[1] * (x.ndim - 3), *values.shape[1:])
    return values


def compute_dtype(x: Tensor) -> torch.dtype:
    """The format to do a scheme's arithmetic in: float32, or float64 where x is that."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def without_autocast(x: Tensor) -> torch.autocast:
    """Multiply matrices in the format they have; the meta device knows no autocast."""
    return torch.autocast("cpu" if x.is_meta else x.device.type, enabled=False)


def add_rows(x: Tensor, rows: Tensor) -> Tensor:
    """Add the rows of positions to embeddings: in float32 at least, and rounded once to the format of x."""
    dtype = compute_dtype(x)
    return (x.to(dtype) + for_heads(rows, x).to(dtype)).to(x.dtype)


def axis_widths(axes: int | Sequence[int], total: int, *, even: bool = False) -> tuple[int, ...]:
    """Return how many of the columns each axis gets: as given, or equal parts for a number of axes."""
    if isinstance(axes, int):
        if total % (axes * (2 if even else 1)):
            kind = "equal, even parts" if even else "equal parts"
            raise EncodingInputError(f"{axes} axes do not divide {total} columns into {kind}; give each axis its width")
        return (total // axes,) * axes
    if even and any(each % 2 for each in axes):
        raise EncodingInputError(f"axes are {tuple(axes)}; each axis needs an even number of columns")
    if sum(axes) != total:
        raise EncodingInputError(f"axes are {shown(axes)}, of {sum(axes)} columns together; they must have {total}")
    return tuple(axes)
