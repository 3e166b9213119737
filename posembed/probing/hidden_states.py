"""Texts for any model of text, posembed's or of transformers, and hidden states of any model, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..errors import PositionTableError, ProbeInputError
from ..evaluating import evaluating
from ..models import LanguageModel, Transformer
from ..tables import find_position_rows

BATCH_SIZE = 32


def own_transformer(model: nn.Module) -> Transformer | None:
    """The `Transformer` in a model of posembed's own; None for any other."""
    model = model.transformer if isinstance(model, LanguageModel) else model
    return model if isinstance(model, Transformer) else None


def vocabulary_of(model: nn.Module) -> tuple[int, set[int], int | None]:
    """How many words there are, which of them are special, and which one pads."""
    own = own_transformer(model)
    if own is not None:
        return own.config.vocab_size, set(), None
    module: Any = model
    reads = getattr(module, "main_input_name", None)
    if reads != "input_ids":
        reason = f"reads {reads}" if reads else "is no model of transformers or of posembed"
        raise ProbeInputError(f"{type(model).__name__} {reason}, and has no words to repeat; give a model of text")
    parts = {name.rpartition(".")[2] for name, _ in module.named_modules()}
    if module.config.is_encoder_decoder and {"encoder", "decoder"} <= parts:
        raise ProbeInputError(f"{type(model).__name__} has two stacks of layers; give one, such as model.get_encoder()")
    settings = module.config.get_text_config().to_dict()
    named = [ids for name, ids in settings.items() if name.endswith("_token_id") and ids is not None]
    special = {each for ids in named for each in (ids if isinstance(ids, list) else [ids])}
    try:
        n_words = module.get_input_embeddings().weight.shape[0]
    except (AttributeError, NotImplementedError):
        kind = type(model).__name__
        raise ProbeInputError(f"{kind} has no word vectors of its own; give the part of it that reads text") from None
    return n_words, special, settings.get("pad_token_id")


def check_length(model: nn.Module, length: int) -> None:
    """Refuse texts that are longer than the model's position table, where it has one."""
    try:
        found = find_position_rows(model)
    except PositionTableError:
        return
    if length > len(found.rows):
        raise ProbeInputError(f"length is {length}, but {found.name} has {len(found.rows)} positions")


def checked_texts(model: nn.Module, ids: Any, *, at_least: int) -> Int[Tensor, "texts length"]:
    """Refuse ids that are not so many texts of one length, or that the model has no words or positions for."""
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
    model: nn.Module | Callable[[Tensor], Any],
    ids: Int[Tensor, "texts length"] | Float[Tensor, "images ..."],
    layers: Sequence[int] | None = None,
) -> dict[int, Float[Tensor, "texts length d_model"]]:
    """Run a model in eval mode without gradients and keep the states of some layers, in float32 on the CPU.

    Args:
        model: as in `checked_texts`, which the ids have passed; or a model of images, posembed's or of transformers; or
            a function that returns the states of all layers, "texts length d_model" each.
        ids: the texts, or the images.
        layers: which: 0 is what enters the first layer, n what leaves the n-th. All by default.

    Raises:
        ProbeInputError: a layer that the model does not have, a model that hands out no states or states of several
            shapes, or one that is NaN.
    """
    kept: dict[int, list[Tensor]] = {}
    with evaluating(model if isinstance(model, nn.Module) else None):
        for some in ids.split(BATCH_SIZE):
            states = states_of(model, some)
            for layer in _chosen(model, layers, len(states)):
                if not bool(states[layer].isfinite().all()):
                    raise ProbeInputError(
                        f"hidden states of layer {layer} are NaN or infinite; look at the model's weights"
                    )
                kept.setdefault(layer, []).append(states[layer].float().cpu())
    return {layer: torch.cat(parts) for layer, parts in kept.items()}


def states_of(model: Any, ids: Tensor) -> Sequence[Float[Tensor, "batch length d_model"]]:
    """Run a model, without its head, and return the states of all layers; it must be in eval mode by then."""
    module = isinstance(model, nn.Module)
    ids = ids.to(next(model.parameters(), ids).device) if module else ids
    own = own_transformer(model) if module else None
    if own is not None or (module and hasattr(model, "hidden_states")):
        found = (own or model).hidden_states(ids)
    elif module:
        # Without its head, whose logits would be the largest tensor of all.
        body, name = getattr(model, "base_model", model), "pixel_values" if ids.is_floating_point() else "input_ids"
        found = body(**{name: ids}, output_hidden_states=True)
    else:
        found = model(ids)
    states = getattr(found, "hidden_states", found)
    if not isinstance(states, list | tuple) or not states or not all(isinstance(each, Tensor) for each in states):
        raise ProbeInputError(f"{_named(model)} hands out no hidden states; give a model with layers")
    shapes = list(dict.fromkeys(tuple(each.shape) for each in states))
    if len(shapes) > 1 or len(shapes[0]) != 3:
        raise ProbeInputError(
            f"{_named(model)} has states of shape {shapes[-1]}, and of {shapes[0]} where it begins; all layers must be "
            "(texts, length, d_model)"
        )
    return states


def _named(model: Any) -> str:
    return type(model).__name__ if isinstance(model, nn.Module) else getattr(model, "__name__", "the function")


def _chosen(model: Any, layers: Sequence[int] | None, n_states: int) -> Sequence[int]:
    if layers is None:
        return range(n_states)
    known = [each for each in layers if isinstance(each, int) and not isinstance(each, bool) and 0 <= each < n_states]
    if not known or len(set(known)) < len(layers):
        raise ProbeInputError(
            f"layers={layers!r}, but {_named(model)} has layers 0 (embeddings) to {n_states - 1}; list some, each once"
        )
    return sorted(known)
