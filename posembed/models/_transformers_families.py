"""How GPT-2 and BERT of transformers name their settings and weights, and what those are called here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

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

    def ours(self, path: str) -> list[str]:
        """The paths in our Transformer of what a module holds; none where it is unknown."""
        if path in self.others:
            return [self.others[path]]
        found = re.fullmatch(rf"{re.escape(self.layers)}\.(\d+)\.(.+)", path)
        return [f"layers.{found[1]}.{each}" for each in self.of_layer.get(found[2], ())] if found else []


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
