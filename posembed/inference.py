"""For the length of a block: a model as it is used, not trained, and a number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from .errors import RunError
from .public import Count, public

# What torch and transformers raise where a model is called with what does not fit.
CALLED_WRONGLY = (AssertionError, AttributeError, IndexError, RuntimeError, TypeError, ValueError)


@contextmanager
def eval_mode(model: nn.Module | None) -> Iterator[None]:
    """Eval mode and no gradients; afterwards every submodule is in the mode it had before.

    Args:
        model: None where a function has no model behind it.
    """
    modes = {module: module.training for module in model.modules()} if model is not None else {}
    try:
        for module in modes:
            module.training = False
        with torch.no_grad():
            yield
    finally:
        for module, training in modes.items():
            module.training = training


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
