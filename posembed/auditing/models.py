"""Which models can be audited, what is known of each, and how one is loaded: of transformers, posembed, one's own."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..encodings import NoPos
from ..errors import AuditError, CheckpointError
from ..models import KeyValueCache, Transformer, load_with_scheme
from ..pretrained import quiet
from ..progress import one_line
from .subject import Subject

# What transformers' models call their inputs, alone or as the decoder behind an encoder.
NAMES = {"ids": "input_ids", "positions": "position_ids", "mask": "attention_mask", "cache": "past_key_values"}
DECODER = {what: f"decoder_{name}" for what, name in NAMES.items()} | {"cache": NAMES["cache"]}
# Settings that make angles, or the logits, depend on where a text begins.
NOT_RELATIVE = ("yarn", "longrope", "dynamic", "scaling_beta", "attn_scale", "floor_scale", "temperature")


def load_model(source: str) -> Any:
    """Load a model of transformers with all its weights, by the class that its config names.

    Args:
        source: a folder, a name in the folder POSEMBED_CHECKPOINTS, or a hub id.

    Raises:
        CheckpointError: it is nowhere, the hub cannot be reached, its code is not transformers', or its files cannot be
            read.
    """
    import transformers

    kept = Path(os.environ.get("POSEMBED_CHECKPOINTS") or ".", source)
    where = str(kept) if (kept / "config.json").is_file() else source
    try:
        config: Any = transformers.AutoConfig.from_pretrained(where)
        made: Any = getattr(transformers, (getattr(config, "architectures", None) or [""])[0], None)
        if made is None and hasattr(config, "auto_map"):
            raise CheckpointError("it brings code of its own, which is not run; audit the model in Python")
        with quiet():
            if hasattr(config, "position_scheme"):  # of `use_scheme`
                return load_with_scheme(where).model
            return (made or transformers.AutoModel).from_pretrained(where, config=config)
    except Exception as error:  # each library has its own for what is not there, and for files that it cannot read
        raise CheckpointError(f"{source} cannot be loaded: {one_line(error):.300}") from error


def subjects_of(model: Any, said: dict[str, Any], seed: int) -> list[Subject]:
    """The model in one piece; of transformers' models with an encoder and a decoder, both."""
    if not any(kind.__module__.startswith("transformers.") for kind in type(model).__mro__):
        return [_own(model, said, seed)]
    if given := [name for name, value in said.items() if value != {"n_layers": 1, "pads_left": True}.get(name)]:
        raise AuditError(f"{', '.join(given)} would not be used: transformers' models are read by their config")
    # An encoder or a decoder taken out of such a model is called as any other.
    if not getattr(model.config, "is_encoder_decoder", False) or DECODER["ids"] not in _taken(model):
        return [_of_transformers(model, NAMES, "", seed)]
    encoder, decoder = (_of_transformers(model, *each, seed) for each in ((NAMES, "encoder"), (DECODER, "decoder")))
    decoder.fixed = {"input_ids": encoder.text(9, "source")}
    return [encoder, decoder]


class CalledByName(nn.Module):
    """A `Transformer` that takes what it is given by the names of the audit."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model

    def forward(self, ids: Any, positions: Any = None, mask: Any = None, cache: Any = None) -> tuple[Tensor, Any]:
        """Return the hidden states and the caches, one for each layer."""
        caches = cache or [KeyValueCache() for _ in range(self.model.config.n_layers)]
        return self.model(ids, positions, attention_mask=mask, caches=caches), caches


def _taken(model: Any) -> Mapping[str, Any]:
    return inspect.signature(getattr(model, "forward", model)).parameters


def named(model: Any) -> Any:
    """The model, as one that takes what it is given by the names of the audit."""
    return CalledByName(model) if isinstance(model, Transformer) else model


def _own(model: Any, said: dict[str, Any], seed: int) -> Subject:
    """A function or module of a user's that takes ids and, of these names, what it can: positions, mask, cache."""
    if isinstance(model, Transformer):
        said |= {"vocab_size": model.config.vocab_size, "causal": model.config.causal}
        said["has_positions"] = not isinstance(model.position_scheme, NoPos)
    taken, vocab_size = _taken(named(model)), said.pop("vocab_size")
    if not vocab_size:
        raise AuditError("how many ids the model knows is not known; say vocab_size=")
    # Those of transformers are not given, and checks would pass without them.
    if "ids" not in taken or {*NAMES.values()} & {*taken}:
        raise AuditError(f"the model takes {', '.join(taken)}; it must take ids, and may take positions, mask, cache")
    names, code = {name: name for name in NAMES if name in taken}, ("model = ...  # the model that was audited",)
    return Subject(named(model), names, torch.arange(1, vocab_size), code, seed, **said)


def _of_transformers(model: Any, names: Mapping[str, str], part: str, seed: int) -> Subject:
    inner = model.get_encoder() if part == "encoder" else model
    config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
    taken, name = _taken(inner), type(model).__name__
    if names["ids"] not in taken or not hasattr(config, "vocab_size"):
        raise AuditError(f"{name} takes no ids of words, or does not say how many it knows")
    generates = part != "encoder" and bool(getattr(model, "can_generate", bool)())
    pad_id, layers = getattr(config, "pad_token_id", None), getattr(model.config, "layer_types", None) or []
    # Where `use_scheme` has put one, neither the config nor from_pretrained says which positions there are.
    scheme = getattr(model, "position_scheme", None)
    origin = getattr(model.config, "_name_or_path", "") if scheme is None else ""
    made = f'{name}.from_pretrained("{origin}").double()' if origin else f"...  # the {name}, in float64 and eval mode"
    imported = [f"from transformers import {name}"] if type(model).__module__.startswith("transformers.") else []
    special = " ".join(re.findall(r'token_(?:id|ids|index)": ([^"}]+)', model.config.to_json_string(use_diff=False)))
    state = any("attention" not in kind or "linear" in kind for kind in layers)
    convolutions = (each for each in model.modules() if isinstance(each, nn.Conv1d))
    subject = Subject(
        whole=model,
        # An encoder may share its code, and so the name of a cache, with a decoder.
        names={what: each for what, each in names.items() if each in taken and (part, what) != ("encoder", "cache")},
        # A random text must not hold an id with a meaning of its own, of padding or of an image.
        vocabulary=torch.tensor(sorted({*range(config.vocab_size)} - {*map(int, re.findall(r"\d+", special))})),
        code=(*imported, f"model = {made}", *["model = model.get_encoder()"] * (part == "encoder")),
        seed=seed,
        part=part,
        of_transformers=True,
        pad_id=pad_id if isinstance(pad_id, int) else 0,
        causal=True if generates and not _may_see_all(config) else None,
        window=_window(config),
        n_layers=getattr(config, "num_hidden_layers", 1),
        pads_left=generates and not part,
        # Recurrences and short convolutions read the tokens one after the other.
        stateless=not (state or getattr(model, "_is_stateful", False) or any(each.groups > 1 for each in convolutions)),
    )
    # Rotary positions and nothing else: no table, no source beside the text, no scaling by how far it has come.
    plain = getattr(config, "rope_parameters", None) and not any(word in str(config.to_dict()) for word in NOT_RELATIVE)
    alone = part != "decoder" and subject.n_positions is None
    subject.relative = bool(plain and alone and subject.stateless and scheme is None) or None
    subject.has_positions = not isinstance(scheme, NoPos)
    return subject


def _window(config: Any) -> int | None:
    """The window, where every layer has the same one."""
    kinds, window = getattr(config, "layer_types", None), getattr(config, "sliding_window", None)
    every = (
        {*kinds} == {"sliding_attention"} if kinds else getattr(config, "model_type", "") in ("mistral", "starcoder2")
    )
    return window if every and isinstance(window, int) else None


def _may_see_all(config: Any) -> bool:
    """Whether a config could make a causal model of this class and does not: BERT, XLM and XLNet have such settings."""
    encoder = getattr(config, "is_decoder", True) is False or getattr(config, "causal", True) is False
    return encoder or getattr(config, "attn_type", None) == "bi"
