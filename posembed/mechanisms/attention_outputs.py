"""What the attention of a layer adds to the hidden states."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..errors import ProbeInputError
from ..inference import eval_mode
from ..probing.hidden_states import BATCH_SIZE, own_transformer


def attention_outputs(
    model: nn.Module, ids: Int[Tensor, "texts length"], layer: int
) -> Float[Tensor, "texts length d_model"]:
    """Run a model of posembed's own in eval mode and catch what the attention of a layer, from 0, gives, in float64."""
    own: Any = own_transformer(model)
    if own is None:
        raise ProbeInputError(f"{type(model).__name__} is not posembed's own; give a Transformer or a LanguageModel")
    if not 0 <= layer < len(own.layers):
        raise ProbeInputError(f"{type(model).__name__} has {len(own.layers)} layers, and no attention before or beyond")
    caught: list[Tensor] = []
    hook = own.layers[layer].attention.register_forward_hook(lambda *given: caught.append(given[-1].double().cpu()))
    try:
        with eval_mode(own):
            for some in ids.split(BATCH_SIZE):
                own(some.to(own.words.weight.device))
    finally:
        hook.remove()
    return torch.cat(caught)
