"""Tensors that hold their numbers one by one, and those that do not."""

from __future__ import annotations

import torch
from torch import Tensor

# Formats of storage, in which torch computes next to nothing.
_STORED_ONLY = ("float8", "float4", "qint", "quint", "bits")


def why_not_ordinary(tensor: Tensor) -> str | None:
    """What keeps a tensor from being computed with as it is; None for an ordinary one.

    Args:
        tensor: of any kind.

    Example:
        >>> import torch
        >>> from posembed.ordinary import why_not_ordinary
        >>> why_not_ordinary(torch.zeros(2).to_sparse()), why_not_ordinary(torch.zeros(2))
        ('sparse or nested', None)
    """
    if tensor.is_meta:
        return "on the meta device, which holds no numbers"
    if tensor.is_nested or tensor.layout != torch.strided:
        return "sparse or nested"
    format = str(tensor.dtype).removeprefix("torch.")
    return f"of {format}" if format.startswith(_STORED_ONLY) else None
