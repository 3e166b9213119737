"""A model once more in float64, where its rounding and a small effect cannot be told apart."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class ComputedIn(TorchDispatchMode):
    """Collects the floating-point formats in which anything is computed inside the block; single numbers apart."""

    def __init__(self) -> None:
        super().__init__()
        self.formats: set[torch.dtype] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.formats |= {
            leaf.dtype
            for leaf in tree_leaves(out)
            if isinstance(leaf, Tensor) and leaf.ndim and leaf.is_floating_point()
        }
        return out


# Numbers of a module that is copied: 2 GiB in float64.
LARGEST_COPY = 2**28


def in_float64(module: nn.Module) -> nn.Module | None:
    """A copy of the module in float64; None where that takes too much memory, or it cannot be copied."""
    if sum(tensor.numel() for tensor in (*module.parameters(), *module.buffers())) > LARGEST_COPY:
        return None
    try:
        return copy.deepcopy(module).double()
    except (RuntimeError, MemoryError, TypeError, ValueError, AttributeError, NotImplementedError):
        return None


def widened(x: Tensor) -> Tensor:
    """The same numbers in float64, of whole numbers the tensor itself."""
    return x.double() if x.is_floating_point() else x
