"""Which models can be audited, and how each is called: those of transformers, of posembed, and one's own."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..encodings import NoPos
from ..errors import AuditError
from ..models import KeyValueCache, Transformer
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


def subjects_of(model: Any, settings: Mapping[str, Any], seed: int) -> list[Subject]:
    """The model in one piece; of transformers' models with an encoder and a decoder, both."""
    if not is_of_transformers(model):
        return [_own(model, dict(settings), seed)]
    config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
    # An encoder or a decoder taken out of such a model is called as any other.
    if not getattr(model.config, "is_encoder_decoder", False) or DECODER["ids"] not in _taken(model):
        return [_subject(model, config, NAMES, "", seed)]
    encoder, decoder = (_subject(model, config, *each, seed) for each in ((NAMES, "encoder"), (DECODER, "decoder")))
    decoder.fixed = {"input_ids": encoder.text(9, "source")}
    return [encoder, decoder]


def _taken(model: Any) -> Mapping[str, Any]:
    return inspect.signature(model.forward).parameters


def _own(model: Any, settings: dict[str, Any], seed: int) -> Subject:
    """A function or module of a user's that takes ids and, of these names, what it can: positions, mask, cache."""
    settings["positionless"] = isinstance(model, Transformer) and isinstance(model.position_scheme, NoPos)
    if isinstance(model, Transformer):
        settings |= {"vocab_size": model.config.vocab_size, "causal": model.config.causal}
        model = CalledByName(model)
    vocab_size = settings.pop("vocab_size")
    if not vocab_size:
        raise AuditError("how many ids the model knows is not known; say vocab_size=")
    taken = [*inspect.signature(getattr(model, "forward", model)).parameters]
    if "ids" not in taken:
        raise AuditError(f"the model takes {', '.join(taken)}; it must take ids, and may take positions, mask, cache")
    names = {name: name for name in NAMES if name in taken}
    whole = model if isinstance(model, nn.Module) else None
    code = ("model = ...  # the model that was audited",)
    return _with_rows(Subject(whole, model, names, torch.arange(1, vocab_size), code, seed, **settings))


def _with_rows(subject: Subject) -> Subject:
    if subject.n_positions is None and subject.table is not None:
        subject.n_positions = len(subject.table.rows)
    return subject


class CalledByName(nn.Module):
    """A `Transformer` that takes what it is given by the names of the audit."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model

    def forward(self, ids: Any, positions: Any = None, mask: Any = None, cache: Any = None) -> tuple[Tensor, Any]:
        """Return the hidden states and the caches, one for each layer."""
        caches = cache or [KeyValueCache() for _ in range(self.model.config.n_layers)]
        return self.model(ids, positions, attention_mask=mask, caches=caches), caches


def _subject(model: Any, config: Any, names: Mapping[str, str], part: str, seed: int) -> Subject:
    find = type(model).get_encoder if part == "encoder" else lambda whole: whole
    taken = _taken(find(model))
    name, special = type(model).__name__, {*_special_ids(model.config.to_dict())}
    if names["ids"] not in taken:
        raise AuditError(f"{name} takes no ids of words")
    generates = part != "encoder" and bool(getattr(model, "can_generate", bool)())
    pad_id, origin = getattr(config, "pad_token_id", None), getattr(model.config, "_name_or_path", "")
    made = (
        f'{name}.from_pretrained("{origin}").double().eval()' if origin else f"...  # the {name}, in float64 and eval"
    )
    into = ("model = model.get_encoder()",) if part == "encoder" else ()
    imported = (f"from transformers import {name}",) if type(model).__module__.startswith("transformers.") else ()
    subject = _with_rows(
        Subject(
            whole=model,
            call=find(model),
            # An encoder may share its code, and so the name of a cache, with a decoder.
            names={key: each for key, each in names.items() if each in taken and (part, key) != ("encoder", "cache")},
            vocabulary=torch.tensor([each for each in range(_vocabulary(model, config)) if each not in special]),
            code=(*imported, f"model = {made}", *into),
            seed=seed,
            find=find,
            part=part,
            of_transformers=True,
            pad_id=pad_id if isinstance(pad_id, int) else 0,
            causal=True if generates and not _may_see_all(config) else None,
            window=_window(config),
            n_layers=getattr(config, "num_hidden_layers", 1),
            pads_left=generates and not part,
            keeps_state=_keeps_state(model),
        )
    )
    subject.relative = _is_relative(config, subject) or None
    return subject


def _vocabulary(model: Any, config: Any) -> int:
    try:
        return int(model.get_input_embeddings().weight.shape[0])
    except (AttributeError, NotImplementedError):  # of several parts, or in parts
        if isinstance(size := getattr(config, "vocab_size", None), int):
            return size
        raise AuditError(f"how many ids {type(model).__name__} knows is not known") from None


def _special_ids(config: Mapping[Any, Any]) -> Iterator[int]:
    """Ids with a meaning of their own, of padding or of an image: a random text must not hold one."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _special_ids(value)
        elif str(name).endswith(("token_id", "token_index", "token_ids")):
            yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, int))


def _window(config: Any) -> int | None:
    """The window, where every layer has the same one."""
    kinds, window = getattr(config, "layer_types", None), getattr(config, "sliding_window", None)
    alone = kinds is not None and {*kinds} == {"sliding_attention"}
    every = alone or (kinds is None and getattr(config, "model_type", "") in ("mistral", "starcoder2"))
    return window if every and isinstance(window, int) else None


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


def _is_relative(config: Any, subject: Subject) -> bool:
    """Rotary positions and nothing else: no table, no source beside the text, no scaling by how far it has come."""
    settings = str(config.to_dict())
    plain = bool(getattr(config, "rope_parameters", None)) and not any(word in settings for word in NOT_RELATIVE)
    alone = subject.part != "decoder" and subject.n_positions is None
    return plain and alone and not subject.keeps_state
