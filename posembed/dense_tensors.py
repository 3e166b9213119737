"""Tensors that hold their numbers one by one, and those that do not."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Real
from torch import Tensor

# Formats of storage, in which torch computes next to nothing.
_STORED_ONLY = ("float8", "float4", "qint", "quint", "bits")


def why_not_ordinary(tensor: Tensor) -> str | None:
    """What keeps a tensor from being computed with as it is; None for an ordinary one.

    Args:
        tensor: of any kind.

    Example:
        >>> import torch
        >>> from posembed.dense_tensors import why_not_ordinary
        >>> why_not_ordinary(torch.zeros(2).to_sparse()), why_not_ordinary(torch.zeros(2))
        ('sparse or nested', None)
    """
    if tensor.is_meta:
        return "on the meta device, which holds no numbers"
    if tensor.is_nested or tensor.layout != torch.strided:
        return "sparse or nested"
    format = str(tensor.dtype).removeprefix("torch.")
    return f"of {format}" if format.startswith(_STORED_ONLY) else None


def float64_array(tensor: Real[Tensor, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """The numbers of an ordinary tensor on the CPU, apart from its gradient; a sign that torch put off is applied.

    Example:
        >>> import torch
        >>> from posembed.dense_tensors import float64_array
        >>> float64_array(torch.tensor([1 + 2j]).conj().imag)
        array([-2.])
    """
    return tensor.detach().cpu().double().resolve_neg().numpy()
