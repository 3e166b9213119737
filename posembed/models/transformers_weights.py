"""A GPT-2 or BERT of transformers as one of our own models, with the same weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import ModelInputError
from .heads import MaskedLanguageModel
from .transformer import LanguageModel, Transformer, TransformerConfig


@dataclass(frozen=True)
class Family:
    """What the models of one type have in common.

    Attributes:
        settings: from their config to the arguments of `TransformerConfig`.
        dropouts: settings that are one here.
        only: settings that have only one value here.
        layers: the path of the layers.
        of_layer: the modules of a layer, and ours; three where one matrix makes queries, keys and values.
        others: the other modules, and ours.
        of_head: the parameters of the head, and ours.
        tied: parameters that are no others than one of ours.
        left_out: the path of what is not read.
    """

    settings: Callable[[Any], dict[str, Any]]
    dropouts: tuple[str, ...]
    only: Mapping[str, bool]
    layers: str
    of_layer: Mapping[str, tuple[str, ...]]
    others: Mapping[str, str]
    of_head: Mapping[str, str]
    tied: Mapping[str, str]
    left_out: str | None = None

    def config(self, theirs: Any) -> TransformerConfig:
        """Make the config of ours, or raise ModelInputError where it cannot say what theirs says."""
        for name, value in self.only.items():
            if getattr(theirs, name) != value:
                raise ModelInputError(f"its {name} is {getattr(theirs, name)!r}; only {value!r} can be taken over")
        rates = {name: float(getattr(theirs, name)) for name in self.dropouts}
        if len(set(rates.values())) > 1:
            given = ", ".join(f"{name}={rate}" for name, rate in rates.items())
            raise ModelInputError(f"it has several rates of dropout ({given}), a Transformer one; make them equal")
        return TransformerConfig(**self.settings(theirs), scheme="learned", dropout=rates[self.dropouts[0]])

    def modules(self, n_layers: int) -> dict[str, tuple[str, ...]]:
        """The paths of all modules, and those in our Transformer."""
        return {path: (ours,) for path, ours in self.others.items()} | {
            f"{self.layers}.{i}.{path}": tuple(f"layers.{i}.{each}" for each in ours)
            for i in range(n_layers)
            for path, ours in self.of_layer.items()
        }


ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_fast": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "gelu_python": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}


def _sizes(theirs: Any) -> dict[str, Any]:
    return {
        "vocab_size": theirs.vocab_size,
        "n_layers": theirs.num_hidden_layers,
        "d_model": theirs.hidden_size,
        "n_heads": theirs.num_attention_heads,
        "n_positions": theirs.max_position_embeddings,
    }


def _activation(name: Any) -> str:
    if name not in ACTIVATIONS:
        raise ModelInputError(f"its activation is {name!r}; those that can be taken over are {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def _of_gpt2(theirs: Any) -> dict[str, Any]:
    return _sizes(theirs) | {
        "d_ff": theirs.n_inner,
        "activation": _activation(theirs.activation_function),
        "norm_epsilon": theirs.layer_norm_epsilon,
    }


def _of_bert(theirs: Any) -> dict[str, Any]:
    return _sizes(theirs) | {
        "d_ff": theirs.intermediate_size,
        "causal": theirs.is_decoder,
        "norm": "post",
        "activation": _activation(theirs.hidden_act),
        "norm_epsilon": theirs.layer_norm_eps,
        "n_token_types": theirs.type_vocab_size,
    }


_GPT2 = Family(
    settings=_of_gpt2,
    dropouts=("embd_pdrop", "attn_pdrop", "resid_pdrop"),
    only={"add_cross_attention": False, "scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False},
    layers="h",
    of_layer={
        "ln_1": ("attention_norm",),
        "attn.c_attn": ("attention.query", "attention.key", "attention.value"),
        "attn.c_proj": ("attention.output",),
        "ln_2": ("feed_forward_norm",),
        "mlp.c_fc": ("feed_forward.0",),
        "mlp.c_proj": ("feed_forward.2",),
    },
    others={"wte": "words", "wpe": "position_scheme", "ln_f": "norm"},
    of_head={},
    tied={"lm_head.weight": "transformer.words.weight"},
)
_BERT = Family(
    settings=_of_bert,
    dropouts=("hidden_dropout_prob", "attention_probs_dropout_prob"),
    only={"add_cross_attention": False},
    layers="encoder.layer",
    of_layer={
        "attention.self.query": ("attention.query",),
        "attention.self.key": ("attention.key",),
        "attention.self.value": ("attention.value",),
        "attention.output.dense": ("attention.output",),
        "attention.output.LayerNorm": ("attention_norm",),
        "intermediate.dense": ("feed_forward.0",),
        "output.dense": ("feed_forward.2",),
        "output.LayerNorm": ("feed_forward_norm",),
    },
    others={
        "embeddings.word_embeddings": "words",
        "embeddings.position_embeddings": "position_scheme",
        "embeddings.token_type_embeddings": "token_types",
        "embeddings.LayerNorm": "norm",
    },
    of_head={
        "cls.predictions.bias": "bias",
        "cls.predictions.transform.dense.weight": "transform.0.weight",
        "cls.predictions.transform.dense.bias": "transform.0.bias",
        "cls.predictions.transform.LayerNorm.weight": "transform.2.weight",
        "cls.predictions.transform.LayerNorm.bias": "transform.2.bias",
    },
    tied={
        "cls.predictions.decoder.weight": "transformer.words.weight",
        "cls.predictions.decoder.bias": "bias",
    },
    left_out="pooler",
)
# By the very names of their classes: a subclass may compute something else.
KNOWN: dict[str, tuple[Family, type[Transformer] | type[LanguageModel]]] = {
    "BertForMaskedLM": (_BERT, MaskedLanguageModel),
    "BertModel": (_BERT, Transformer),
    "GPT2LMHeadModel": (_GPT2, LanguageModel),
    "GPT2Model": (_GPT2, Transformer),
}


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

    modules = family.modules(model.config.num_hidden_layers)
    turned = {f"{path}.weight" for path, module in model.named_modules() if isinstance(module, Conv1D)}
    found: dict[str, Tensor] = {}
    left: dict[str, Tensor] = {}
    for name, value in model.state_dict().items():
        path, _, kind = name.removeprefix(f"{model.base_model_prefix}.").rpartition(".")
        targets = [f"{body}{each}.{kind}" for each in modules.get(path, ())]
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
