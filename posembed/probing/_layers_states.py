"""Hidden states of a model of text, layer by layer: one of transformers, or posembed's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from .._evaluating import evaluating
from ..errors import ProbeInputError
from ._any_model import check_length, own_transformer, vocabulary_of

BATCH_SIZE = 32


def checked_texts(model: nn.Module, ids: Any, *, at_least: int) -> Int[Tensor, "texts length"]:
    """Refuse ids that are no texts of one length, or that the model has no words or positions for.

    Args:
        model: a model of transformers, or posembed's own.
        ids: the texts.
        at_least: how many texts are needed.
    """
    n_words, _, padding = vocabulary_of(model)
    check_ids(ids, texts=at_least, tokens=2)
    most = int(ids.max())
    if most >= n_words:
        raise ProbeInputError(f"id {most} is not among the model's {n_words} words")
    if padding is not None and bool((ids == padding).any()):
        raise ProbeInputError(f"a text holds id {padding}, which pads; give texts of one length, without padding")
    check_length(model, ids.shape[1])
    return ids.long().cpu()


def check_ids(ids: Any, *, texts: int, tokens: int) -> None:
    """Refuse what is no tensor of ids with so many texts and tokens at least."""
    if not isinstance(ids, Tensor) or ids.ndim != 2 or ids.dtype == torch.bool or ids.is_floating_point():
        given = f"{ids.dtype} of {tuple(ids.shape)}" if isinstance(ids, Tensor) else type(ids).__name__
        raise ProbeInputError(f"ids are {given}; they must be integers of shape (texts, length)")
    if len(ids) < texts or ids.shape[1] < tokens:
        raise ProbeInputError(
            f"{len(ids)} texts of {ids.shape[1]} tokens are too few; give at least {texts} of at least {tokens}"
        )
    if int(ids.min()) < 0:
        raise ProbeInputError(f"ids hold {int(ids.min())}; they must not be negative")


def hidden_states(
    model: nn.Module, ids: Int[Tensor, "texts length"], layers: Sequence[int] | None = None
) -> dict[int, Float[Tensor, "texts length d_model"]]:
    """Run a model in eval mode without gradients and keep the states of some layers, in float32 on the CPU.

    Args:
        model: as in `checked_texts`, which the ids have passed.
        ids: the texts.
        layers: which: 0 is what enters the first layer, n what leaves the n-th. All by default.

    Raises:
        ProbeInputError: a layer that the model does not have, or a model that hands out no states.
        ProbeInputError: a state is NaN or infinite.
    """
    kept: dict[int, list[Tensor]] = {}
    with evaluating(model):
        for some in ids.split(BATCH_SIZE):
            states = _states(model, some)
            for layer in _chosen(model, layers, len(states)):
                kept.setdefault(layer, []).append(_finite(states[layer], layer).float().cpu())
    return {layer: torch.cat(parts) for layer, parts in kept.items()}


def _states(model: nn.Module, ids: Int[Tensor, "batch length"]) -> Sequence[Float[Tensor, "batch length d_model"]]:
    ids, own = ids.to(next(model.parameters()).device), own_transformer(model)
    if own is not None:
        return own.hidden_states(ids)
    # Without its head, whose logits would be the largest tensor of all.
    states = getattr(getattr(model, "base_model", model)(input_ids=ids, output_hidden_states=True), "hidden_states", ())
    if not states:
        raise ProbeInputError(f"{type(model).__name__} hands out no hidden states; give a model with layers")
    return states


def _chosen(model: nn.Module, layers: Sequence[int] | None, n_states: int) -> Sequence[int]:
    if layers is None:
        return range(n_states)
    listed = layers if isinstance(layers, Sequence) else ()
    wrong = [each for each in listed if not isinstance(each, int) or isinstance(each, bool) or not 0 <= each < n_states]
    if wrong or not listed or len(set(listed)) < len(listed):
        raise ProbeInputError(
            f"layers={layers!r}, but {type(model).__name__} has layers 0 (embeddings) to {n_states - 1}; "
            "list some, each once"
        )
    return sorted(listed)


def _finite(states: Tensor, layer: int) -> Tensor:
    if not bool(states.isfinite().all()):
        raise ProbeInputError(f"hidden states of layer {layer} are NaN or infinite; look at the model's weights")
    return states
