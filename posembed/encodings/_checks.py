"""What every scheme checks of its sizes and of positions."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ..errors import EncodingInputError


def check_whole(name: str, value: Any, *, least: int = 1) -> int:
    """Return the value, or raise EncodingInputError unless it is a whole number of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise EncodingInputError(f"{name} is {value!r}; it must be a whole number of at least {least}")
    return value


def check_positive(name: str, value: Any) -> float:
    """Return the value, or raise EncodingInputError unless it is a positive, finite number."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
        raise EncodingInputError(f"{name} is {value!r}; it must be a positive number")
    return float(value)


def check_positions(positions: Any, x: Tensor, *, n_axes: int | None = None, name: str = "positions") -> None:
    """Raise EncodingInputError unless there is one integer position (or `n_axes` of them) for each of x's tokens."""
    if not isinstance(positions, Tensor):
        raise EncodingInputError(f"{name} are a {type(positions).__name__}; give a tensor, such as torch.arange(seq)")
    if positions.is_floating_point() or positions.is_complex() or positions.dtype == torch.bool:
        raise EncodingInputError(f"{name} are {positions.dtype}; they must be integers, such as torch.arange(seq)")
    if n_axes is not None and (positions.ndim == 0 or positions.shape[-1] != n_axes):
        raise EncodingInputError(
            f"{name} have shape {tuple(positions.shape)}; the last axis must be {n_axes}, one for each coordinate"
        )
    shape = tuple(positions.shape[:-1] if n_axes is not None else positions.shape)
    seq = x.shape[-2]
    allowed = {(seq,)} | ({(x.shape[0], seq), (1, seq)} if x.ndim > 2 else set())
    if shape not in allowed:
        raise EncodingInputError(
            f"{name} have shape {shape}, and the tokens {tuple(x.shape)}; positions must be "
            + " or ".join(str(list(each)) for each in sorted(allowed, key=len))
        )
