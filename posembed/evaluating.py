"""A model as it is used, not trained: for the length of a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluating(model: nn.Module | None) -> Iterator[None]:
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
