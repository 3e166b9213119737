"""How positions meet the tokens and each other."""

from __future__ import annotations

import torch
from jaxtyping import Integer
from torch import Tensor


def offsets_between(
    positions: Integer[Tensor, "*#batch query"], key_positions: Integer[Tensor, "*#batch key"]
) -> Integer[Tensor, "... query key"]:
    """Key position minus query position, for every pair."""
    # In int64: unsigned or short integers would wrap around.
    return key_positions.long()[..., None, :] - positions.long()[..., :, None]


def for_heads(values: Tensor, x: Tensor) -> Tensor:
    """Put axes for the heads between the batch of `values`, "batch seq ...", and its sequence, as in x."""
    if values.ndim > 2:
        return values.reshape(values.shape[0], *[1] * (x.ndim - 3), *values.shape[1:])
    return values


def compute_dtype(x: Tensor) -> torch.dtype:
    """The format to do a scheme's arithmetic in: float32, or float64 where x is that."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32
