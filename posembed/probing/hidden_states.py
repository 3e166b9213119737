"""Hidden states, layer by layer, of a model that hands them out or of a function; and texts for models of text."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..errors import ProbeInputError, shown
from ..inference import CALLED_WRONGLY, eval_mode
from ..models import LanguageModel, Transformer
from ..progress import one_line

BATCH_SIZE = 32
# Models that hand out what leaves each layer, and the last of it once more behind its norm; others begin with what
# enters the first.
STATES_AFTER_LAYERS = frozenset({"falcon_mamba", "mamba", "mamba2", "rwkv"})


def own_transformer(model: Any) -> Transformer | None:
    """The `Transformer` in a model of posembed's own; None for any other."""
    model = model.transformer if isinstance(model, LanguageModel) else model
    return model if isinstance(model, Transformer) else None


def named(model: Any) -> str:
    """The class of a model, or the name of a function."""
    return "what was given" if isinstance(model, list) else getattr(model, "__name__", type(model).__name__)


def read_by(model: Any) -> str | None:
    """The name of what a model reads; None of a function, and of a module of one's own."""
    return "input_ids" if own_transformer(model) is not None else getattr(model, "main_input_name", None)


def check_one_stack(model: Any) -> None:
    """Refuse a model of transformers that has an encoder and a decoder."""
    two = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
    if two and {"encoder", "decoder"} <= {name.rpartition(".")[2] for name, _ in model.named_modules()}:
        raise ProbeInputError(f"{type(model).__name__} has two stacks of layers; give one, such as model.get_encoder()")


def vocabulary_of(model: Any) -> tuple[int, set[int], int | None]:
    """How many words there are, which of them are special, and which one pads."""
    if (own := own_transformer(model)) is not None:
        return own.config.vocab_size, set(), None
    if read_by(model) != "input_ids":
        raise ProbeInputError(f"{named(model)} reads no words; give a model of text, of transformers or of posembed")
    settings = model.config.get_text_config().to_dict()
    named_ids = [ids for name, ids in settings.items() if name.endswith("_token_id") and ids is not None]
    special = {each for ids in named_ids for each in (ids if isinstance(ids, list) else [ids])}
    return model.get_input_embeddings().weight.shape[0], special, settings.get("pad_token_id")


def checked_inputs(model: Any, inputs: Any, *, at_least: int) -> Tensor:
    """Refuse what a model cannot read, too little of it, and padding, whose places are none."""
    reads = read_by(model)
    if not isinstance(inputs, Tensor) or inputs.ndim < 1 + (reads == "input_ids"):
        raise ProbeInputError(f"{named(model)} reads {reads or 'a tensor'}; give a tensor, a text or an image a row")
    # The states of a Perceiver are those of latents, which stand at no place of its input.
    if getattr(getattr(model, "config", None), "num_latents", None):
        raise ProbeInputError(f"the states of {named(model)} are those of latents; give a function to states of places")
    check_one_stack(model)
    are_words = reads == "input_ids" and not inputs.is_floating_point()
    if len(inputs) < at_least or (are_words and inputs.shape[1] < 2):
        raise ProbeInputError(
            f"inputs of shape {tuple(inputs.shape)} are too few; give at least {at_least} along the first axis, texts "
            "of at least 2 tokens"
        )
    padding = vocabulary_of(model)[2] if are_words else None
    if padding is not None and bool((inputs == padding).any()):
        raise ProbeInputError(
            f"a text holds id {padding}, which pads; give texts of one length, without padding, or, where it is taken, "
            "attention_mask="
        )
    return inputs.long().cpu() if are_words else inputs


def fitted_and_tested(model: Any, inputs: Any, test_inputs: Any) -> tuple[Tensor, Tensor]:
    """What is for fitting and what is for testing: the last quarter, unless that is given."""
    if test_inputs is None:
        given = checked_inputs(model, inputs, at_least=4)
        n_test = max(2, len(given) // 4)
        return given[:-n_test], given[-n_test:]
    train, test = (checked_inputs(model, each, at_least=2) for each in (inputs, test_inputs))
    if train.shape[1:] != test.shape[1:]:
        raise ProbeInputError(
            f"texts of {tuple(train.shape[1:])} do not belong to texts of {tuple(test.shape[1:])}; cut both alike"
        )
    return train, test


def without_padding(inputs: Any, attention_mask: Tensor) -> tuple[Any, Bool[Tensor, "texts length"]]:
    """Ids with a word of each text in place of its padding, which the mask hides, and the mask, looked at."""
    mask = attention_mask.bool().cpu()
    if len(mask) != len(inputs) or bool((mask[:, 1:] & ~mask[:, :-1]).any()) or not bool(mask[:, 1].all()):
        raise ProbeInputError(
            "attention_mask must show two tokens at least of each text, and hide what stands behind them; pad "
            "behind texts"
        )
    return inputs.where(mask.to(inputs.device), inputs[:, :1]) if inputs.shape == mask.shape else inputs, mask


def hidden_states(
    model: Any,
    inputs: Tensor,
    layers: Collection[int] | None = None,
    mask: Bool[Tensor, "texts length"] | None = None,
) -> dict[int, Float[Tensor, "texts length d_model"]]:
    """Run a model in eval mode without gradients and keep the states of some layers, in float32 on the CPU.

    Args:
        model: or a function, as in `checked_inputs`, which the inputs have passed.
        inputs: the texts, or whatever the model reads.
        layers: which: 0 is what enters the first layer, n what leaves the n-th, the last one behind the final norm. All
            by default.
        mask: which tokens are none of padding, where there is any.

    Raises:
        ProbeInputError: a layer that the model does not have, a model that hands out no states, one that is NaN, or
            layers that differ in length or width.
    """
    kept: dict[int, list[Tensor]] = {}

    def more(which: slice) -> dict[str, Tensor]:
        return {} if mask is None else {"attention_mask": mask[which].long()}

    with eval_mode(model if isinstance(model, nn.Module) else None):
        check_repeatable(model, inputs[:2], **more(slice(2)))
        for start in range(0, len(inputs), BATCH_SIZE):
            some = slice(start, start + BATCH_SIZE)
            states = states_of(model, inputs[some], **more(some))
            for layer in chosen_layers(model, layers, len(states)):
                kept.setdefault(layer, []).append(states[layer].float().cpu())
    found = {layer: torch.cat(parts) for layer, parts in kept.items()}
    for layer, each in found.items():
        # What padding has become is not looked at.
        if not bool((each if mask is None else each[mask]).isfinite().all()):
            raise ProbeInputError(f"hidden states of layer {layer} are NaN or infinite; look at the model's weights")
    if len({each.shape for each in found.values()}) > 1:
        sizes = ", ".join(f"{tuple(each.shape[1:])} of layer {layer}" for layer, each in found.items())
        raise ProbeInputError(f"states of {named(model)} differ in length or width: {sizes}; choose layers of one size")
    return found


def check_repeatable(model: Any, inputs: Tensor, **mask: Tensor) -> None:
    """Refuse what draws as it runs: a model that shuffles its patches, a function that drops something out."""
    first, again = states_of(model, inputs, **mask), states_of(model, inputs, **mask)
    same = (torch.allclose(*each, rtol=1e-3, atol=1e-3, equal_nan=True) for each in zip(first, again, strict=True))
    if not all(same):
        raise ProbeInputError(
            f"{named(model)} gives other states each time; put the model into eval mode, or give a function that calls "
            "it with what it draws held fixed"
        )


def states_of(model: Any, inputs: Tensor, **mask: Tensor) -> Sequence[Float[Tensor, "texts length d_model"]]:
    """The states of all layers for one batch; the model must be in eval mode by then. One tensor is one layer.

    Behind an output may stand a list of states, as in ``return x, states``.
    """
    found = _run(model, inputs, **mask)
    states = [found] if isinstance(found, Tensor) else found
    if isinstance(states, tuple) and len(states) == 2 and isinstance(states[1], list | tuple):
        states = states[1]
    if not isinstance(states, list | tuple) or not states or not all(_fits(each, len(inputs)) for each in states):
        raise ProbeInputError(
            f"{named(model)} hands out no hidden states of these texts; give what returns a list of floats "
            "(texts, length, d_model), one a layer, with a length of at least 2"
        )
    return states


def _fits(states: Any, n_texts: int) -> bool:
    numbers = isinstance(states, Tensor) and states.is_floating_point()
    return numbers and states.ndim == 3 and len(states) == n_texts and states.shape[1] > 1


def _run(model: Any, inputs: Tensor, **mask: Tensor) -> Any:
    """What a model or a function makes of a batch, and of a mask of padding where there is one."""
    if isinstance(model, list):  # the states of all texts, of which these are the numbers
        return [layer[inputs] for layer in model]
    if not isinstance(model, nn.Module):
        return model(inputs, **mask)
    inputs = inputs.to(next(model.parameters(), inputs).device)
    mask = {name: its.to(inputs.device) for name, its in mask.items()}
    own = own_transformer(model) or model
    if callable(hand_out := getattr(own, "hidden_states", None)):
        return hand_out(inputs, **mask)
    name, floats = read_by(model), inputs.is_floating_point()
    if name is None:
        with telling(model, "these inputs"):
            found = model(inputs, **mask)
        one = found[0] if isinstance(found, tuple) and len(found) == 1 else found
        if isinstance(one, Tensor):
            raise ProbeInputError(
                f"{named(model)} hands out its output and not the states of its layers; where that is what you mean, "
                "give a function: lambda ids: [module(ids)]"
            )
        return found
    # Without its head, whose logits would be the largest tensor of all. DINOv3's base reads no pixels.
    body: Any = getattr(model, "base_model", model)
    body = body if name in inspect.signature(body.forward).parameters else model
    name = "inputs_embeds" if name == "input_ids" and floats else name
    with telling(model, f"this {name}"):
        output = body(**{name: inputs.to(body.dtype) if floats else inputs}, **mask, output_hidden_states=True)
    states, last = getattr(output, "hidden_states", None), getattr(output, "last_hidden_state", None)
    if not states:
        return None
    if isinstance(last, Tensor) and last.shape == states[-1].shape:
        states = (*states[:-1], last)  # as its head reads it: CLIP normalises it later
    if body.config.model_type in STATES_AFTER_LAYERS:
        states = (inputs if floats else body.get_input_embeddings()(inputs), *states[:-2], states[-1])
    return states


def relative_change(before: Float[Tensor, "*tokens d_model"], after: Float[Tensor, "*tokens d_model"]) -> Tensor:
    """How far each token's state has moved, as a part of its size."""
    # A token whose state is zero has changed by nothing or without bounds.
    sizes = before.norm(dim=-1).clamp(min=torch.finfo(before.dtype).tiny)
    return (after - before).norm(dim=-1) / sizes


@contextmanager
def telling(model: Any, given: str) -> Iterator[None]:
    """Say in one line that a model cannot be called with something."""
    try:
        yield
    except CALLED_WRONGLY as error:
        said = f"{named(model)} cannot be called with {given} alone ({one_line(error):.200})"
        raise ProbeInputError(f"{said}; give what fits, or a function that calls it") from error


def chosen_layers(model: Any, layers: Collection[int] | None, n_states: int) -> Sequence[int]:
    """The numbers of the layers that are meant, rising."""
    if layers is None:
        return range(n_states)
    known = sorted({*layers} & {*range(n_states)})
    if not known or len(known) < len(layers):
        raise ProbeInputError(
            f"layers={shown(layers)}, but {named(model)} has layers 0 (embeddings) to {n_states - 1}; "
            "list some, each once"
        )
    return known
