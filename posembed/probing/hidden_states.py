"""Texts for any model of text, posembed's or of transformers, and hidden states of any model, layer by layer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..dense_tensors import why_not_ordinary
from ..errors import PositionTableError, ProbeInputError, shown
from ..inference import CALLED_WRONGLY, evaluating, reads
from ..models import LanguageModel, Transformer, VisionTransformer
from ..progress import one_line
from ..tables import PositionRows, find_position_rows

BATCH_SIZE = 32


def own_transformer(model: Any) -> Transformer | None:
    """The `Transformer` in a model of posembed's own; None for any other."""
    model = model.transformer if isinstance(model, LanguageModel) else model
    return model if isinstance(model, Transformer) else None


def vocabulary_of(model: nn.Module) -> tuple[int, set[int], int | None]:
    """How many words there are, which of them are special, and which one pads."""
    check_made(model)
    own = own_transformer(model)
    if own is not None:
        return own.config.vocab_size, set(), None
    module: Any = model
    reads = read_by(module)
    if reads != "input_ids":
        reason = f"reads {reads}" if reads else "is no model of transformers or of posembed"
        raise ProbeInputError(f"{type(model).__name__} {reason}, and has no words to repeat; give a model of text")
    check_one_stack(module)
    settings = module.config.get_text_config().to_dict()
    named = [ids for name, ids in settings.items() if name.endswith("_token_id") and ids is not None]
    special = {each for ids in named for each in (ids if isinstance(ids, list) else [ids])}
    try:
        n_words = module.get_input_embeddings().weight.shape[0]
    except (AttributeError, NotImplementedError):
        kind = type(model).__name__
        said = f"{kind} has no word vectors of its own; give the part of it that has, or a function to hidden states"
        raise ProbeInputError(said) from None
    return n_words, special, settings.get("pad_token_id")


def check_made(model: Any) -> None:
    """Refuse a class in the place of a model, and a model without numbers."""
    if isinstance(model, type):
        raise ProbeInputError(f"model is the class {model.__name__}; give a model that is made or loaded")
    if isinstance(model, nn.Module) and any(each.is_meta for each in model.parameters()):
        raise ProbeInputError(f"the weights of {type(model).__name__} are on the meta device; load them first")


def read_by(model: Any) -> str | None:
    """The name of what a model of transformers reads; None of any other."""
    name = getattr(model, "main_input_name", None)
    if isinstance(model, nn.Module) and name not in (None, *(taken := inspect.signature(model.forward).parameters)):
        # Parts have their name from the whole: MGP-STR from a model of text, a decoder from one that listens.
        return next((each for each in ("pixel_values", "input_values", "input_ids") if each in taken), name)
    return None if name is None else str(name)


def check_one_stack(model: Any) -> None:
    """Refuse a model of transformers that has an encoder and a decoder."""
    parts = {name.rpartition(".")[2] for name, _ in model.named_modules()}
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False) and {"encoder", "decoder"} <= parts:
        raise ProbeInputError(f"{type(model).__name__} has two stacks of layers; give one, such as model.get_encoder()")


def check_length(model: nn.Module, length: int) -> None:
    """Refuse texts that are longer than the position table that a model of text reads, where it does."""
    found = table_read(model, torch.arange(2)[None])
    if found is not None and length > len(found.rows):
        raise ProbeInputError(f"length is {length}, but {found.name} has {len(found.rows)} positions")


def table_read(model: nn.Module, inputs: Tensor) -> PositionRows | None:
    """The position table that a model looks into for these inputs.

    The one table of a model may be that of another part, such as of its images where it is given text.

    Args:
        model: of text, images or sound.
        inputs: some of what it is asked about.
    """
    try:
        found = find_position_rows(model)
    except PositionTableError:
        return None
    try:
        with evaluating(model):
            return found if reads(found.parameter, lambda: _run(model, inputs)) else None
    except (ProbeInputError, *CALLED_WRONGLY):  # what is wrong is said where the model is run in earnest
        return found


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
        raise ProbeInputError(f"ids are {_described(ids)}; they must be integers of shape (texts, length)")
    if len(ids) < texts or ids.shape[1] < tokens:
        raise ProbeInputError(
            f"{len(ids)} texts of {ids.shape[1]} tokens are too few; give at least {texts} of at least {tokens}"
        )
    if int(ids.min()) < 0:
        raise ProbeInputError(f"ids hold {int(ids.min())}; they must not be negative")


def checked_inputs(model: Any, inputs: Any, *, at_least: int) -> Tensor:
    """Refuse what a model or a function cannot read, or too little of it; ids of texts are `checked_texts`."""
    check_made(model)
    own, floats = own_transformer(model), isinstance(inputs, Tensor) and inputs.is_floating_point()
    reads = read_by(model)
    if (own is not None or reads == "input_ids") and not (floats and inputs.ndim == 3):
        return checked_texts(model, inputs, at_least=at_least)
    if reads is not None:
        check_one_stack(model)
    if n_latents := getattr(getattr(model, "config", None), "num_latents", None):
        raise ProbeInputError(
            f"the states of {named(model)} are those of {n_latents} latents, which stand at no place of its input; "
            "give a function to states that do, such as its input_preprocessor makes"
        )
    if not isinstance(inputs, Tensor) or inputs.ndim == 0 or len(inputs) < at_least or (reads and not floats):
        raise ProbeInputError(
            f"{named(model)} reads {reads or 'a tensor'}, and was given {_described(inputs)}; give "
            f"{'floats' if reads else 'a tensor'} with at least {at_least} along the first axis"
        )
    return inputs


def fitted_and_tested(model: Any, inputs: Any, test_inputs: Any) -> tuple[Tensor, Tensor]:
    """What is for fitting and what is for testing: the last quarter, unless that is given."""
    if test_inputs is None:
        given = checked_inputs(model, inputs, at_least=4)
        n_test = max(2, len(given) // 4)
        return given[:-n_test], given[-n_test:]
    train, test = (checked_inputs(model, each, at_least=2) for each in (inputs, test_inputs))
    if train.shape[1:] != test.shape[1:]:
        sizes = [" x ".join(map(str, part.shape[1:])) for part in (train, test)]
        raise ProbeInputError("texts of {} cannot be tested by texts of {}; cut them to one length".format(*sizes))
    return train, test


def given_states(states: Any) -> tuple[Callable[[Tensor], Any], Int[Tensor, " texts"]]:
    """States in place of a model: a function that looks those of some texts up, and the numbers of all texts."""
    found = [states] if isinstance(states, Tensor) else states
    if not isinstance(found, list | tuple) or not found or not isinstance(found[0], Tensor):
        raise ProbeInputError(
            f"{named(states)} is no model, no function and no hidden states; give a tensor (texts, length, d_model), "
            "or a list of such, one a layer"
        )

    def look_up(texts: Tensor) -> list[Tensor]:
        return [layer[texts] for layer in layers]

    look_up.__name__ = "what was given"
    n_texts = found[0].shape[:1].numel()
    layers = _checked_states(found, look_up, n_texts)
    return look_up, torch.arange(n_texts)


def hidden_states(
    model: nn.Module | Callable[[Tensor], Any], inputs: Tensor, layers: Sequence[int] | None = None
) -> dict[int, Float[Tensor, "texts length d_model"]]:
    """Run a model in eval mode without gradients and keep the states of some layers, in float32 on the CPU.

    Args:
        model: as in `checked_inputs`, which the inputs have passed.
        inputs: the texts, or whatever the model reads.
        layers: which: 0 is what enters the first layer, n what leaves the n-th. All by default.

    Raises:
        ProbeInputError: a layer that the model does not have, a model that hands out no states, one that is NaN, or
            layers that differ in length or width.
    """
    kept: dict[int, list[Tensor]] = {}
    with evaluating(model if isinstance(model, nn.Module) else None):
        if isinstance(model, nn.Module):
            check_repeatable(model, inputs[:2])
        for some in inputs.split(BATCH_SIZE):
            states = states_of(model, some)
            for layer in chosen_layers(model, layers, len(states)):
                if not bool(states[layer].float().isfinite().all()):
                    raise ProbeInputError(
                        f"hidden states of layer {layer} are NaN or infinite; look at the model's weights, or at what "
                        "was given"
                    )
                kept.setdefault(layer, []).append(states[layer].float().cpu())
    sizes: dict[tuple[int, ...], int] = {}
    for layer, parts in kept.items():
        for part in parts:
            sizes.setdefault(tuple(part.shape[1:]), layer)
    if len(sizes) > 1:
        those = ", ".join(f"{size} from layer {layer}" for size, layer in sizes.items())
        raise ProbeInputError(f"states of {named(model)} differ in length or width: {those}; choose layers of one size")
    return {layer: torch.cat(parts) for layer, parts in kept.items()}


def check_repeatable(model: nn.Module, inputs: Tensor) -> None:
    """Refuse a model that draws as it runs, as one that shuffles its patches does: its states say nothing of places."""
    first, again = (_checked_states(_run(model, inputs), model, len(inputs)) for _ in range(2))
    if not all(
        torch.allclose(one, other, rtol=1e-3, atol=1e-3, equal_nan=True)
        for one, other in zip(first, again, strict=True)
    ):
        raise ProbeInputError(
            f"{named(model)} gives other states each time; give a function that calls it with what it draws held fixed"
        )


def named(model: Any) -> str:
    """The class of a model, or the name of a function."""
    return getattr(model, "__name__", type(model).__name__)


def _described(given: Any) -> str:
    if not isinstance(given, Tensor):
        return type(given).__name__
    if why := why_not_ordinary(given):
        return f"a tensor that is {why},"
    return f"{given.dtype} of {tuple(given.shape)}"


def states_of(model: Any, inputs: Tensor) -> Sequence[Float[Tensor, "texts length d_model"]]:
    """The states of all layers for one batch; the model must be in eval mode by then."""
    return _checked_states(_run(model, inputs), model, len(inputs))


def _run(model: Any, inputs: Tensor) -> Any:
    """What a model or a function makes of a batch."""
    if not isinstance(model, nn.Module):
        return model(inputs)
    if why := why_not_ordinary(inputs):
        raise ProbeInputError(f"what {named(model)} is to read is {why}; give an ordinary tensor")
    inputs = inputs.to(next(model.parameters(), inputs).device)
    own = model if isinstance(model, VisionTransformer) else own_transformer(model)
    if own is not None:
        return own.hidden_states(inputs)
    name = read_by(model)
    if name == "input_ids" and inputs.is_floating_point():
        name = "inputs_embeds"
    if name is None:
        asked = "output_hidden_states" in inspect.signature(model.forward).parameters
        with telling(model, "these inputs"):
            return _with_last(model(inputs, output_hidden_states=True)) if asked else model(inputs)
    # Without its head, whose logits would be the largest tensor of all. DINOv3's base reads no pixels.
    body: Any = getattr(model, "base_model", model)
    body = body if str(name) in inspect.signature(body.forward).parameters else model
    inputs = inputs.to(body.dtype) if inputs.is_floating_point() else inputs
    with telling(model, f"this {name}"):
        with _first_layer(body) as noted:
            states = _with_last(body(**{name: inputs}, output_hidden_states=True))
        return _from_the_first(states, noted)


@contextmanager
def telling(model: Any, given: str) -> Iterator[None]:
    """Say in one line that a model cannot be called with something."""
    try:
        yield
    except CALLED_WRONGLY as error:
        said = f"{named(model)} cannot be called with {given} alone ({one_line(error):.200})"
        raise ProbeInputError(f"{said}; give what fits, or a function that calls it") from error


def _with_last(output: Any) -> Any:
    """The states that a model of transformers hands out, the last as its head reads it: CLIP normalises it later."""
    states, last = getattr(output, "hidden_states", None), getattr(output, "last_hidden_state", None)
    if states and isinstance(last, Tensor) and last.shape == getattr(states[-1], "shape", None):
        return (*states[:-1], last)
    return states


@contextmanager
def _first_layer(body: Any) -> Iterator[list[Any]]:
    """Note what enters the first layer of a model inside the block, and what leaves it."""
    n_layers = getattr(getattr(body, "config", None), "num_hidden_layers", None)
    stacks = [each for each in body.modules() if isinstance(each, nn.ModuleList) and len({*each}) == n_layers]
    noted: list[Any] = []

    def note(_: Any, given: tuple, named: dict[str, Any], left: Any) -> None:
        entered = given[0] if given else named.get("hidden_states")
        noted.append((entered, left[0] if isinstance(left, tuple | list) else left, n_layers))

    hooks = [stacks[0][0].register_forward_hook(note, with_kwargs=True)] if stacks and n_layers else []
    try:
        yield noted
    finally:
        for hook in hooks:
            hook.remove()


def _from_the_first(states: Any, noted: list[Any]) -> Any:
    """The states from what enters the first layer on: Mamba, RWKV and their kin begin with what leaves it."""
    entered, left, n_layers = noted[0] if len(noted) == 1 else (None, None, 0)
    if not states or not isinstance(entered, Tensor) or not isinstance(left, Tensor) or torch.equal(entered, left):
        return states
    # Without the last state as it was before its norm.
    return (entered, *states[: n_layers - 1], states[-1]) if torch.equal(left, states[0]) else states


def _checked_states(found: Any, model: Any, n_texts: int) -> Sequence[Float[Tensor, "texts length d_model"]]:
    """Refuse what are no hidden states of so many texts; one tensor is one layer."""
    states = [found] if isinstance(found, Tensor) else found
    if not isinstance(states, list | tuple) or not states:
        raise ProbeInputError(f"{named(model)} hands out no hidden states; give what returns a list, one a layer")
    for each in states:
        if not isinstance(each, Tensor) or not _fits(each, n_texts):
            raise ProbeInputError(
                f"{named(model)}: {_described(each)} in place of a layer's states; they must be floats of shape "
                f"({n_texts}, length, d_model), with a length of at least 2"
            )
    return states


def _fits(states: Tensor, n_texts: int) -> bool:
    ordinary = why_not_ordinary(states) is None and states.is_floating_point()
    return ordinary and states.ndim == 3 and len(states) == n_texts and states.shape[1] >= 2 and states.shape[2] > 0


def chosen_layers(model: Any, layers: Sequence[int] | None, n_states: int) -> Sequence[int]:
    """The numbers of the layers that are meant, rising."""
    if layers is None:
        return range(n_states)
    if not isinstance(layers, list | tuple | range | set | frozenset):
        raise ProbeInputError(f"layers={shown(layers)} is no list; list the numbers of some, such as [0, 1]")
    known = [each for each in layers if isinstance(each, int) and not isinstance(each, bool) and 0 <= each < n_states]
    if not known or len(set(known)) < len(layers):
        raise ProbeInputError(
            f"layers={shown(layers)}, but {named(model)} has layers 0 (embeddings) to {n_states - 1}; "
            "list some, each once"
        )
    return sorted(known)
