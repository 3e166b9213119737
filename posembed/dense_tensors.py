"""Tensors as numbers of NumPy."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Real
from torch import Tensor


def float64_array(tensor: Real[Tensor, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """The numbers of an ordinary tensor on the CPU, apart from its gradient; a sign that torch put off is applied.

    Example:
        >>> import torch
        >>> from posembed.dense_tensors import float64_array
        >>> float64_array(torch.tensor([1 + 2j]).conj().imag)
        array([-2.])
    """
    return tensor.detach().cpu().double().resolve_neg().numpy()
