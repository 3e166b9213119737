"""What the attention of a layer adds to the hidden states."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from .._evaluating import evaluating
from ..errors import ProbeInputError
from ..probing._any_model import own_transformer
from ..probing._layers_states import BATCH_SIZE


def attention_outputs(
    model: nn.Module, ids: Int[Tensor, "texts length"], layer: int
) -> Float[Tensor, "texts length d_model"]:
    """Run a model of posembed's own in eval mode and catch what the attention of a layer gives, in float64.

    Args:
        model: `Transformer` or `LanguageModel`.
        ids: texts that have been checked.
        layer: which, from 0.

    Raises:
        ProbeInputError: a model of another kind, or a layer that it does not have.
        ProbeInputError: an output is NaN or infinite.
    """
    n = n_layers(model)
    if not isinstance(layer, int) or isinstance(layer, bool) or not 0 <= layer < n:
        raise ProbeInputError(f"layer is {layer!r}, but {type(model).__name__} has layers 0 to {n - 1}")
    own: Any = own_transformer(model)
    caught: list[Tensor] = []
    hook = own.layers[layer].attention.register_forward_hook(lambda *given: caught.append(given[-1].double().cpu()))
    try:
        with evaluating(own):
            for some in ids.split(BATCH_SIZE):
                own(some.to(own.words.weight.device))
    finally:
        hook.remove()
    outputs = torch.cat(caught)
    if not bool(outputs.isfinite().all()):
        raise ProbeInputError(f"attention outputs of layer {layer} are NaN or infinite; look at the model's weights")
    return outputs


def n_layers(model: nn.Module) -> int:
    """How many layers a model of posembed's own has; any other kind is refused."""
    own = own_transformer(model)
    if own is None:
        raise ProbeInputError(f"{type(model).__name__} is not posembed's own; give a Transformer or a LanguageModel")
    return len(own.layers)
