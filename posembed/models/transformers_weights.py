"""A GPT-2 or BERT of transformers as one of our own models, with the same weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import ModelInputError
from ._transformers_families import KNOWN, Family
from .transformer import LanguageModel, Transformer


def from_transformers(model: Any) -> Transformer | LanguageModel:
    """Make our own model with the weights of one of transformers: its hidden states and logits are the same.

    The weights are copied, in their dtype and on their device. The position table becomes the scheme "learned". A BERT
    keeps the vectors of its token types: without ``token_types`` every token has type 0, there as here. The model is in
    training mode where the given one is.

    Args:
        model: a ``GPT2Model`` or ``BertModel``, which becomes a `Transformer` (BERT's pooler is left out); a
            ``GPT2LMHeadModel``, which becomes a `LanguageModel`; or a ``BertForMaskedLM``, which becomes a
            `MaskedLanguageModel`.

    Raises:
        ModelInputError: another model; one with a scheme, an adapter or quantised weights in it, with logits of a
            matrix of their own, or with settings that ours does not have.

    Example:
        >>> import torch
        >>> from transformers import GPT2Config, GPT2LMHeadModel
        >>> from posembed.models import from_transformers
        >>> theirs = GPT2LMHeadModel(GPT2Config(vocab_size=9, n_positions=8, n_embd=8, n_layer=2, n_head=2)).eval()
        >>> ours, ids = from_transformers(theirs), torch.tensor([[3, 1, 4]])
        >>> torch.allclose(ours(ids), theirs(ids).logits, atol=1e-5)
        True
    """
    _check_kind(model)
    family, kind = KNOWN[type(model).__name__]
    # Not in memory yet: no random numbers are drawn for what the weights replace.
    with torch.device("meta"):
        ours = kind(family.config(model.config))
    weights, left = _renamed(model, family, body="" if kind is Transformer else "transformer.")
    _check_left(left, weights, family)
    ours = ours.to_empty(device=model.device).to(model.dtype)
    _fill(ours, weights)
    return ours.train(model.training)


def _renamed(model: Any, family: Family, *, body: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Find the weights by our names, those of the Transformer under `body`; and those that have no name here.

    A matrix of GPT-2 stands on its side, "in out".
    """
    from transformers.pytorch_utils import Conv1D

    turned = {f"{path}.weight" for path, module in model.named_modules() if isinstance(module, Conv1D)}
    found: dict[str, Tensor] = {}
    left: dict[str, Tensor] = {}
    for name, value in model.state_dict().items():
        path, _, kind = name.removeprefix(f"{model.base_model_prefix}.").rpartition(".")
        targets = [f"{body}{each}.{kind}" for each in family.ours(path)]
        if name in family.of_head:
            targets = [family.of_head[name]]
        if targets:
            parts = (value.mT if name in turned else value).chunk(len(targets))
            found |= dict(zip(targets, parts, strict=True))
        else:
            left[name] = value
    return found, left


@torch.no_grad()
def _fill(ours: Transformer | LanguageModel, weights: dict[str, Tensor]) -> None:
    parameters = dict(ours.named_parameters())
    for name in sorted(parameters.keys() | weights.keys()):
        of, given = parameters.get(name), weights.get(name)
        if of is None or given is None or of.shape != given.shape:
            shapes = [None if each is None else tuple(each.shape) for each in (given, of)]
            raise ModelInputError(f"{name} has shape {shapes[0]}, by its config {shapes[1]}; mend the config")
        of.copy_(given)


def _check_kind(model: Any) -> None:
    name = type(model).__name__
    if name not in KNOWN or not type(model).__module__.startswith("transformers."):
        raise ModelInputError(f"{name} cannot be taken over; give one of {', '.join(KNOWN)} of transformers")
    if hasattr(model, "position_scheme"):
        raise ModelInputError(f"there is a position scheme in this {name}; remove it first")
    for path, weight in model.named_parameters():
        if weight.is_meta or not weight.is_floating_point():
            what = "on the meta device" if weight.is_meta else f"{weight.dtype}"
            raise ModelInputError(f"{path} is {what}; load the model with its weights in memory, not quantised")


def _check_left(left: dict[str, Tensor], found: dict[str, Tensor], family: Family) -> None:
    """Nothing may be lost in silence."""
    for name, value in left.items():
        if name in family.tied:
            if not torch.equal(value, found[family.tied[name]]):
                raise ModelInputError(f"{name} differs from {family.tied[name]}, which serves here for both")
        elif family.left_out is None or not name.startswith(f"{family.left_out}."):
            raise ModelInputError(f"it has {name}, for which there is no place here; merge or remove it first")
