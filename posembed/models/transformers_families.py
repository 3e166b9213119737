"""The models of transformers that can take a position scheme, and where each keeps its own positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ..errors import ModelInputError
from .masks import positions_from_mask

# The name of our attention in transformers, and where an attention module has the scheme of its layer.
NAME, SCHEME = "posembed", "_posembed_scheme"
# Where the config of a model says which scheme it was saved with.
ENTRY = "position_scheme"
# A number that is saved with a scheme. Who loads the files in another way, with another attention, has the model's
# former positions: transformers then reports this name among the weights that it did not expect.
MARK = "load_this_with_posembed_models_load_with_scheme"


@dataclass(frozen=True)
class Family:
    """How the models of one type make their own positions.

    Attributes:
        own: the path, from the body, of the module that makes them: a table, or the angles of a rotation.
        body: the path, from the base model, of the module that embeds tokens and runs the layers.
        counted_by: what is counted where the caller gives no positions: all tokens, those that the attention mask
            shows, or those that are not the padding id.
        has_token_types: whether the model looks up its token types by position, in a table no longer than its own.
        rows: of a model of images, the name in `own`, which embeds its patches, of the rows that are added to them.
    """

    own: str
    body: str = ""
    counted_by: Literal["tokens", "mask", "ids"] = "tokens"
    has_token_types: bool = False
    rows: str | None = None

    def count(self, arguments: dict[str, Any], pad: int | None, n_tokens: int, past: Any, device: Any) -> Tensor:
        """Return the positions of a call's tokens, "#batch seq" from 0, as the model counts where none are given.

        Args:
            arguments: of the call.
            pad: the padding id.
            n_tokens: the number of the call's tokens.
            past: the number of tokens in the cache.
            device: of the tokens.
        """
        ids, mask = arguments.get("input_ids"), arguments.get("attention_mask")
        if self.counted_by == "mask" and mask is not None and mask.ndim == 2:
            return positions_from_mask(mask.bool())[:, -n_tokens:]
        if self.counted_by == "ids" and ids is not None:
            return positions_from_mask(ids != pad) + past
        return (torch.arange(n_tokens, device=device) + past)[None]


_TABLE = "embeddings.position_embeddings"
_ROBERTA = Family(_TABLE, counted_by="ids", has_token_types=True)
_ROTARY = Family("rotary_emb")

# By the model_type of their configs. Each is tested: nothing of its own positions may be left.
FAMILIES = {
    "albert": Family(_TABLE, has_token_types=True),
    "bert": Family(_TABLE, has_token_types=True),
    "camembert": _ROBERTA,
    "distilbert": Family(_TABLE),
    "electra": Family(_TABLE, has_token_types=True),
    "gemma": _ROTARY,
    "gemma3_text": _ROTARY,
    "gpt2": Family("wpe"),
    "gpt_neox": _ROTARY,
    "llama": _ROTARY,
    "mistral": _ROTARY,
    "mixtral": _ROTARY,
    "modernbert": _ROTARY,
    "olmo2": _ROTARY,
    "opt": Family("embed_positions", body="decoder", counted_by="mask"),
    "phi": _ROTARY,
    "phi3": _ROTARY,
    "qwen2": _ROTARY,
    "qwen3": _ROTARY,
    "roberta": _ROBERTA,
    "smollm3": _ROTARY,
    "starcoder2": _ROTARY,
    "t5": Family("block.0.layer.0.SelfAttention.relative_attention_bias", body="encoder"),
    "vit": Family("embeddings", rows="position_embeddings"),
    "xlm-roberta": _ROBERTA,
}

# Why others that are often asked for cannot.
WHY_NOT = {
    "bloom": "its attention is code of its own",
    "decision_transformer": "it counts steps in time, of three tokens each",
    "esm": "it scales its words by the share of hidden ones, for which it wants their ids",
    "fnet": "it has no attention, and mixes its tokens by Fourier transforms",
    "gemma2": "it caps the logits, which is no part of a scheme",
    "gptj": "its attention is code of its own",
    "roc_bert": "it mixes its words with shapes and sounds before it adds positions",
    "stablelm": "its layers hand nothing on to attention, which so cannot know where its tokens stand",
} | dict.fromkeys(
    ("falcon_mamba", "mamba", "mamba2", "rwkv", "xlstm"),
    "it has no attention, and reads its tokens one after the other",
)


# What models call attention to another model, where its class does not tell (BART).
CROSS_ATTENTION = ("encoder_attn", "encoder_attention", "cross_attn", "cross_attention", "crossattention")


@dataclass(frozen=True)
class Anatomy:
    """The modules of a model that a position scheme has to do with.

    Attributes:
        family: of the model.
        body: the module that embeds tokens and runs the layers.
        own: the module that makes the model's own positions.
        attentions: the self-attention of each layer, in order; of layers that share it, once.
    """

    family: Family
    body: nn.Module
    own: nn.Module
    attentions: list[nn.Module]

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Those of the model's own positions."""
        named = dict(self.own.named_parameters())
        return [named[self.family.rows]] if self.family.rows else [*named.values()]

    @property
    def causal(self) -> bool:
        """Whether the model attends to the past only."""
        return bool(self.attentions[0].is_causal) and getattr(self.body.config, "is_causal", None) is not False


def anatomy(model: Any) -> Anatomy:
    """Find the modules, or raise ModelInputError for a model that is not supported."""
    from transformers import PreTrainedModel

    kind, known = type(model).__name__, ", ".join(FAMILIES)
    if not isinstance(model, PreTrainedModel):
        raise ModelInputError(
            f"{kind} cannot take a scheme; use_scheme knows models of transformers with one of the model_types {known}"
        )
    if (name := model.config.model_type) not in FAMILIES:
        untested = (
            "nobody has tested where it keeps its positions; to try it name the module that makes them, "
            f"FAMILIES[{name!r}] = Family('its.path'), both from {__name__}; what a scheme adds is then added to "
            "inputs_embeds, so see whether that is where this model's own rows are added, and give one part of a model "
            "of several"
        )
        why = WHY_NOT.get(name, untested)
        raise ModelInputError(f"{kind} cannot take a scheme: {why}; use a model with one of the model_types {known}")
    family = FAMILIES[name]
    base = model.base_model
    if family.body == "encoder" and (hasattr(base, "decoder") or not hasattr(base, "encoder")):
        raise ModelInputError(
            f"{kind} has two stacks, which would need a scheme each, or is one of them; use a {name} with an encoder "
            "alone, such as T5EncoderModel"
        )
    body = base.get_submodule(family.body)
    own = body.get_submodule(family.own)
    attentions = [
        module
        for path, module in body.named_modules()
        if hasattr(module, "is_causal") and not crosses(module) and path.rpartition(".")[2] not in CROSS_ATTENTION
    ]
    if not attentions:
        raise ModelInputError(f"{kind} cannot take a scheme: it has no attention that can be exchanged; use another")
    return Anatomy(family, body, own, attentions)


def crosses(attention: nn.Module) -> bool:
    """Whether keys and values are those of another model."""
    return bool(getattr(attention, "is_cross_attention", "Cross" in type(attention).__name__))


def sizes(config: Any, parts: Anatomy) -> dict[str, int]:
    """Read the sizes that `posembed.scheme` asks for from the config of a model; layers that are one count once."""
    d_model, n_heads = config.hidden_size, config.num_attention_heads
    # ALBERT and ELECTRA look their words up narrower, add positions, and widen both.
    found = {"d_model": getattr(config, "embedding_size", None) or d_model, "n_heads": n_heads}
    found["n_layers"] = len(parts.attentions)
    found["d_head"] = getattr(config, "head_dim", None) or d_model // n_heads
    if parts.family.rows:
        found["n_positions"] = parts.parameters[0].shape[1]
    elif config.model_type != "t5":  # which has no longest text
        found["n_positions"] = config.max_position_embeddings
    if parts.family.counted_by == "ids":
        found["n_positions"] -= config.pad_token_id + 1  # the rows before position 0
    return found
