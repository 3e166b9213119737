"""A model of transformers with a position scheme, as files: how it comes back."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ..encodings import PositionScheme
from ..errors import CheckpointError, ModelInputError, shown
from .in_transformers import SchemeInModel, scheme_for, use_scheme
from .transformers_families import ENTRY, MARK, NAME, anatomy


def load_with_scheme(
    source: Path | str, scheme: str | PositionScheme | None = None, *, kind: Any = None, **more: Any
) -> SchemeInModel:
    """Load a model that was saved with a scheme of `use_scheme`: the scheme comes back with its weights.

    Transformers' own ``from_pretrained`` makes a model that refuses to run, for it would have its former positions.
    Given another ``attn_implementation`` it runs with these, and all that can be done is that transformers reports a
    weight that it did not expect, whose name is what to do instead. Saved from there once more it loads in silence, for
    no such weight is left, and only this function still tells.

    Args:
        source: a folder of ``save_pretrained``, or a hub id.
        scheme: the same again, where `use_scheme` was given an object, or the import path of a class.
        kind: the class of the model, such as ``BertForSequenceClassification``; by default the one that was saved.
        more: for ``from_pretrained``, such as ``dtype`` or ``revision``.

    Returns:
        What `use_scheme` returns; the model is its ``model``.

    Raises:
        ModelInputError: a model without a scheme, or with another one; one that has to be given and is not.
        CheckpointError: weights of the scheme that are missing, or those of another one. What ``from_pretrained``
            raises where there is no model, or a damaged one, is raised as it is.

    Example:
        >>> from tempfile import mkdtemp
        >>> from transformers import GPT2Config, GPT2LMHeadModel
        >>> from posembed.models import load_with_scheme, use_scheme
        >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=9, n_positions=8, n_embd=8, n_layer=1, n_head=2))
        >>> trained, folder = use_scheme(model, "t5"), mkdtemp()
        >>> model.save_pretrained(folder)
        >>> again = load_with_scheme(folder)
        >>> bool((again.scheme.weight == trained.scheme.weight).all())
        True
    """
    import transformers

    where = {name: more[name] for name in ("revision", "cache_dir", "token", "local_files_only") if name in more}
    config = transformers.AutoConfig.from_pretrained(source, **where)
    said = getattr(config, ENTRY, None)
    if config._attn_implementation != NAME and isinstance(said, Mapping):
        raise ModelInputError(
            f"the config of {source} names the scheme {_told(said)!r}, but its model was loaded with another "
            "attention, so without it, and saved again: what the scheme had learned is lost, and that model runs with "
            "its former positions; take the files from before, and load them with load_with_scheme"
        )
    if not isinstance(said, Mapping):
        raise ModelInputError(f"{source} was saved without a scheme; load it with from_pretrained, then use_scheme")
    scheme, options = _chosen(said, scheme, source)
    kind = kind or getattr(transformers, (config.architectures or ["none"])[0], None)
    if not (isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel)):
        raise ModelInputError(f"kind is {shown(kind)}; give the class of a model, such as kind=GPT2LMHeadModel")
    if not isinstance(config, its := getattr(kind, "config_class", None) or type(config)):
        raise ModelInputError(f"{source} has a {type(config).__name__}, and {kind.__name__} wants a {its.__name__}")
    loads = _with_room(kind, scheme, options).from_pretrained
    how = more | {"output_loading_info": True, "attn_implementation": "eager", "ignore_mismatched_sizes": True}
    model, found = loads(source, **how)
    others = [name for name, *_ in found["mismatched_keys"] if not more.get("ignore_mismatched_sizes") or _ours(name)]
    others += filter(_ours, (*found["missing_keys"], *found["unexpected_keys"]))
    if others:
        raise CheckpointError(
            f"{source} has other weights than the model and its scheme ({min(others)}); give the same"
        )
    weights = model.position_scheme.state_dict()
    # Made anew: what it computed from its weights as it was made would be of none.
    del model.position_scheme
    delattr(model, MARK)
    model.__class__ = kind
    installed = use_scheme(model, scheme, options=options)
    installed.scheme.load_state_dict(weights)
    return installed


def _ours(name: str) -> bool:
    return "position_scheme." in name


def _told(said: Mapping[str, Any]) -> Any:
    return said.get("name") or said.get("made")


def _chosen(said: Mapping[str, Any], scheme: Any, source: Any) -> tuple[Any, Any]:
    """The scheme that is meant, and its options."""
    name, its = said.get("name"), _told(said)
    if scheme is None and (name is None or ":" in name):
        raise ModelInputError(
            f"the scheme of {source} is {its!r}; give it again, as scheme=: no config holds an object, and nothing is "
            "imported because a file says so"
        )
    if scheme is not None and str(scheme) != its:
        raise ModelInputError(f"the scheme of {source} is {its!r}, not {shown(scheme)}; give the same one")
    return name if scheme is None else scheme, said.get("options")


def _with_room(kind: Any, scheme: Any, options: Any) -> Any:
    """The class of a model that has a place for the scheme's weights, which transformers then reads with the others."""

    def init(self: Any, config: Any, *args: Any, **more: Any) -> None:
        kind.__init__(self, config, *args, **more)
        self.register_buffer(MARK, torch.zeros(1))
        # A given scheme is read into at the end, when all is known to fit.
        self.position_scheme = scheme_for(self, anatomy(self), copy.deepcopy(scheme), options).to(self.device)

    return type(kind.__name__, (kind,), {"__init__": init, "__module__": kind.__module__})
