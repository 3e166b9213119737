"""For the length of a block: a model as it is used, not trained, and a number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .errors import RunError
from .public import Count, public

# What torch and transformers raise where a model is called with what does not fit.
CALLED_WRONGLY = (AssertionError, AttributeError, IndexError, RuntimeError, TypeError, ValueError)


@contextmanager
def eval_mode(model: nn.Module | None) -> Iterator[None]:
    """Eval mode and no gradients; afterwards every submodule is in the mode it had before.

    BigBird exchanges its attention for another kind, for good, where it is given a short text: that is undone.

    Args:
        model: None where a function has no model behind it.
    """
    modes = {module: module.training for module in model.modules()} if model is not None else {}
    kinds = {module: module.attention_type for module in modes if hasattr(module, "set_attention_type")}
    try:
        for module in modes:
            module.training = False
        with torch.no_grad():
            yield
    finally:
        for module, training in modes.items():
            module.training = training
        for module, kind in kinds.items():
            if module.attention_type != kind:
                exchange: Any = module.set_attention_type
                exchange(kind)


@contextmanager
def called_in_eval_mode() -> Iterator[None]:
    """The same of whatever modules a function calls inside the block, which nobody can name before."""
    changed: list[nn.Module] = []

    def quiet(module: nn.Module, args: Any) -> None:
        if module.training:
            module.training = False
            changed.append(module)

    hook = nn.modules.module.register_module_forward_pre_hook(quiet)
    try:
        with torch.no_grad():
            yield
    finally:
        hook.remove()
        for module in changed:
            module.training = True


@public(RunError)
@contextmanager
def torch_threads(n_threads: Count) -> Iterator[None]:
    """Let torch use so many threads inside the block.

    Args:
        n_threads: of each operation on the CPU.

    Raises:
        RunError: fewer than one.

    Example:
        >>> import torch
        >>> from posembed.training import torch_threads
        >>> with torch_threads(1):
        ...     torch.get_num_threads()
        1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def reads(tensor: Tensor, call: Callable[[], Any]) -> bool:
    """Whether the memory of a tensor, such as a model's position table, is looked into during a call."""
    with _Read() as read:
        call()
    return StorageWeakRef(tensor.untyped_storage()) in read.storages


class _Read(TorchDispatchMode):
    """Collects the memory, which views share, of all tensors that operations inside the block are given."""

    def __init__(self) -> None:
        super().__init__()
        self.storages: set[StorageWeakRef] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        self.storages |= {StorageWeakRef(tensor.untyped_storage()) for tensor in given}
        return func(*args, **(kwargs or {}))
