"""A model once more in a wider format, where its rounding and a small effect cannot be told apart."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class ComputedIn(TorchDispatchMode):
    """Collects the floating-point formats in which anything is computed inside the block, and which memory is read.

    Single numbers do not count, nor does what is made of the module's own numbers or of none, such as a mask of ones:
    it is the same in every order, and so is its rounding.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.formats: set[torch.dtype] = set()
        self.read: set[StorageWeakRef] = set()
        self._constant = storages((*module.parameters(), *module.buffers()))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        given = storages((args, kwargs))
        self.read |= given
        # What torch.tensor makes of Python's numbers comes as the argument of lift_fresh, out of nowhere.
        if given <= self._constant or func is torch.ops.aten.lift_fresh.default:
            self._constant |= storages(out)
            return out
        # An operation in place may write the input into what was constant.
        self._constant -= storages(out)
        self.formats |= {leaf.dtype for leaf in _tensors(out) if leaf.ndim and leaf.is_floating_point()}
        return out


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def storages(tree: Any) -> set[StorageWeakRef]:
    """The memory of all tensors in it, which views share; what is freed is never taken for what comes after it."""
    return {StorageWeakRef(tensor.untyped_storage()) for tensor in _tensors(tree)}


def reads(module: nn.Module, tensor: Tensor, call: Callable[[], Any]) -> bool:
    """Whether a tensor of a module is looked into while it is called."""
    with ComputedIn(module) as computed:
        call()
    return bool(storages(tensor) & computed.read)


# Numbers of a module that is copied: 2 GiB in float64.
LARGEST_COPY = 2**28


def in_format(fn: Any, module: nn.Module, dtype: torch.dtype) -> Any:
    """A copy of the module, or of its bound method, in a format; None where it takes too much memory or cannot be."""
    if sum(tensor.numel() for tensor in (*module.parameters(), *module.buffers())) > LARGEST_COPY:
        return None
    try:
        wide, owner = copy.deepcopy((fn, module))
        owner.to(dtype)
    except (RuntimeError, MemoryError, TypeError, ValueError, AttributeError, NotImplementedError):
        return None
    return wide


def widened(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The same numbers in a wider format, of whole numbers the tensor itself."""
    return x.to(dtype) if x.is_floating_point() else x
