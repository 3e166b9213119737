"""Which models can be audited, and how each is called: those of transformers, of posembed, and one's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..encodings import NoPos
from ..errors import AuditError, PositionTableError
from ..models import KeyValueCache, Transformer
from ..tables import find_position_rows
from .subject import Subject

# What transformers' models call their inputs, alone or as the decoder behind an encoder.
NAMES = {"ids": "input_ids", "positions": "position_ids", "mask": "attention_mask", "cache": "past_key_values"}
DECODER = {
    "ids": "decoder_input_ids",
    "positions": "decoder_position_ids",
    "mask": "decoder_attention_mask",
    "cache": "past_key_values",
}
# Settings that make angles, or the logits, depend on where a text begins.
NOT_RELATIVE = ("yarn", "longrope", "dynamic", "scaling_beta", "attn_scale", "floor_scale", "temperature")


def is_of_transformers(model: Any) -> bool:
    """Whether a model is one of transformers', which need not be installed."""
    return any(kind.__module__.startswith("transformers.") for kind in type(model).__mro__)


def own_subject(model: Callable[..., Any], settings: Mapping[str, Any]) -> Subject:
    """A function or module of a user's that takes ids and, of these names, what it can: positions, mask, cache."""
    positionless = isinstance(model, Transformer) and isinstance(model.position_scheme, NoPos)
    if isinstance(model, Transformer):
        config = model.config
        known = {"vocab_size": config.vocab_size, "causal": config.causal, "n_positions": _n_positions(model, "")}
        model, settings = CalledByName(model), {**settings, **known}
    if not settings["vocab_size"]:
        raise AuditError("how many ids the model knows is not known; say vocab_size=")
    function = model.forward if isinstance(model, nn.Module) else model
    taken = [*inspect.signature(function).parameters]
    if "ids" not in taken:
        raise AuditError(f"the model takes {', '.join(taken)}; it must take ids, and may take positions, mask, cache")
    return Subject(
        call=model,
        names={name: name for name in NAMES if name in taken},
        read=_of_own,
        vocabulary=torch.arange(1, settings["vocab_size"]),
        code=("model = ...  # the model that was audited",),
        again=partial(own_subject, settings=settings) if isinstance(model, nn.Module) else None,
        whole=model if isinstance(model, nn.Module) else None,
        positionless=positionless,
        **{name: settings[name] for name in ("causal", "n_positions", "window", "n_layers", "relative", "pads_left")},
    )


class CalledByName(nn.Module):
    """A `Transformer` that takes what it is given by the names of the audit."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model

    def forward(self, ids: Any, positions: Any = None, mask: Any = None, cache: Any = None) -> tuple[Tensor, Any]:
        """Return the hidden states and the caches, one for each layer."""
        caches = cache or [KeyValueCache() for _ in range(self.model.config.n_layers)]
        return self.model(ids, positions, attention_mask=mask, caches=caches), caches


def _of_own(output: Any) -> tuple[Tensor, Any]:
    logits, cache = output if isinstance(output, tuple) else (output, None)
    return _checked(logits), cache


def _of_transformers(output: Any) -> tuple[Tensor, Any]:
    logits = getattr(output, "logits", None)
    logits = getattr(output, "last_hidden_state", None) if logits is None else logits
    return _checked(logits), getattr(output, "past_key_values", None)


def _checked(logits: Any) -> Tensor:
    if not isinstance(logits, Tensor) or logits.ndim != 3 or not logits.is_floating_point():
        given = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise AuditError(f"the model gives {given}; it must give numbers for each token, (batch, seq, n)")
    return logits


def subjects_of_transformers(model: Any) -> list[Subject]:
    """A model of transformers; of an encoder with a decoder, both."""
    config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
    if not getattr(model.config, "is_encoder_decoder", False):
        return [_subject(model, config, model, NAMES, "")]
    encoder = _subject(model, config, model.get_encoder(), NAMES, "encoder")
    decoder = _subject(model, config, model, DECODER, "decoder")
    decoder.fixed = {"input_ids": encoder.text(9, "source")}
    return [encoder, decoder]


def _subject(model: Any, config: Any, call: Any, names: Mapping[str, str], part: str) -> Subject:
    taken = inspect.signature(call.forward).parameters
    if names["ids"] not in taken:
        raise AuditError(f"{type(model).__name__} takes no ids of words")
    special = {*_special_ids(model.config.to_dict())}
    ordinary = [each for each in range(_vocabulary(model, config)) if each not in special]
    generates = part != "encoder" and bool(getattr(model, "can_generate", bool)())
    n_layers, window = _window(config)
    pad_id = getattr(config, "pad_token_id", None)
    origin = getattr(config, "_name_or_path", "") or getattr(model.config, "_name_or_path", "")
    name = type(model).__name__
    made = f'{name}.from_pretrained("{origin}")' if origin else f"...  # the {name} that was audited,"
    code = f"model = {made}.double().eval()" if origin else f"model = {made} in float64 and eval mode"
    into = ("model = model.get_encoder()",) if part == "encoder" else ()
    return Subject(
        call=call,
        # An encoder may share its code, and so the name of a cache, with a decoder.
        names={name: each for name, each in names.items() if each in taken and (part, name) != ("encoder", "cache")},
        read=_of_transformers,
        vocabulary=torch.tensor(ordinary),
        code=(f"from transformers import {name}", code, *into),
        again=partial(_one_of, part=part),
        whole=model,
        part=part,
        of_transformers=True,
        pad_id=pad_id if isinstance(pad_id, int) else 0,
        causal=True if generates and not _may_see_all(config) else None,
        n_positions=_n_positions(model, part),
        window=window,
        n_layers=n_layers,
        relative=_is_relative(model, config),
        pads_left=generates and not part,
        keeps_state=_keeps_state(model),
    )


def _vocabulary(model: Any, config: Any) -> int:
    try:
        return int(model.get_input_embeddings().weight.shape[0])
    except (AttributeError, NotImplementedError):  # of several parts, or in parts
        if isinstance(size := getattr(config, "vocab_size", None), int):
            return size
        raise AuditError(f"how many ids {type(model).__name__} knows is not known") from None


def _one_of(model: Any, part: str) -> Subject:
    return next(each for each in subjects_of_transformers(model) if each.part == part)


def _special_ids(config: Mapping[Any, Any]) -> Iterator[int]:
    """Ids with a meaning of their own, of padding or of an image: a random text must not hold one."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _special_ids(value)
        elif str(name).endswith(("token_id", "token_index", "token_ids")):
            yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, int))


def _n_positions(model: Any, part: str) -> int | None:
    try:
        return len(find_position_rows(model, part=part or None).rows)
    except PositionTableError:
        return None


def _window(config: Any) -> tuple[int, int | None]:
    """The number of layers and the window, where every layer has the same one."""
    kinds, window = getattr(config, "layer_types", None), getattr(config, "sliding_window", None)
    alone = kinds is not None and {*kinds} == {"sliding_attention"}
    every = alone or (kinds is None and getattr(config, "model_type", "") in ("mistral", "starcoder2"))
    return getattr(config, "num_hidden_layers", 1), window if every and isinstance(window, int) else None


def _keeps_state(model: Any) -> bool:
    """Whether layers read the tokens one after the other, as recurrences and short convolutions do."""
    kinds = getattr(model.config, "layer_types", None) or []
    others = any("attention" not in kind or "linear" in kind for kind in kinds)
    convolutions = (each for each in model.modules() if isinstance(each, nn.Conv1d))
    return others or bool(getattr(model, "_is_stateful", False)) or any(each.groups > 1 for each in convolutions)


def _may_see_all(config: Any) -> bool:
    """Whether a config could make a causal model of this class and does not: BERT, XLM and XLNet have such settings."""
    encoder = getattr(config, "is_decoder", True) is False or getattr(config, "causal", True) is False
    return encoder or getattr(config, "attn_type", None) == "bi"


def _is_relative(model: Any, config: Any) -> bool | None:
    """True of rotary positions and nothing else: no table, no scaling that looks at how far a text has come."""
    rope = getattr(config, "rope_parameters", None)
    settings = str(config.to_dict())
    plain = bool(rope) and not any(word in settings for word in NOT_RELATIVE)
    return True if plain and _n_positions(model, "") is None and not _keeps_state(model) else None
