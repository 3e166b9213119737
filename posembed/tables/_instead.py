"""What a model without a position table has instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

ROPE = "rotary embeddings (RoPE)"
ALIBI = "ALiBi's biases, computed from the distance"
SINUSOID = "a sinusoid that it computes, which is no table to change"
CONVOLUTION = "a convolution over its input (wav2vec 2.0's kind)"
RECURRENCE = "nothing of the kind: it reads its tokens one after the other"

# By a part of the name of one of the model's modules, parameters or buffers. In this order: WavLM and T5 models have
# several.
BY_NAME = {
    "rotary": ROPE,
    "attn.embed_positions": ROPE,  # GPT-J's and CodeGen's angles
    "pos_conv_embed": CONVOLUTION,
    "relative_attention_bias": "a learned bias for each relative distance (T5's kind)",
    "relative_position_bias": "a learned bias for each relative distance",
    "rel_pos": "relative positions inside its attention",
    "rel_embeddings": "relative positions inside its attention",
    "pos_bias_u": "relative positions inside its attention (Transformer-XL's kind)",
    "r_r_bias": "relative positions inside its attention (Transformer-XL's kind)",
}

# By the model_type of config.json, where neither the config nor a tensor's name would tell.
_BY_TYPE = {
    ALIBI: {"bloom", "mpt"},
    ROPE: {"codegen", "esm", "gpt_neox", "gpt_neox_japanese", "gptj", "modernbert", "persimmon", "roformer"},
    SINUSOID: {
        *("autoformer", "ctrl", "fsmt", "informer", "kosmos-2", "kosmos-2.5", "m2m_100", "marian", "musicgen"),
        *("musicgen_decoder", "musicgen_melody", "musicgen_melody_decoder", "nllb-moe", "pegasus", "pegasus_x"),
        *("seamless_m4t", "seamless_m4t_v2", "speech_to_text", "speech_to_text_2", "time_series_transformer"),
        *("trocr", "videomae", "xglm"),
    },
    CONVOLUTION: {"hubert", "sew", "sew-d", "unispeech", "unispeech-sat", "wav2vec2", "wavlm"},
    RECURRENCE: {"falcon_mamba", "mamba", "mamba2", "rwkv", "xlstm"},
}

# Settings that only a model with rotary embeddings has.
_ROTARY_SETTINGS = ("rope_theta", "rope_parameters", "rope_scaling", "rotary_dim", "rotary_pct", "rotary_emb_base")


def instead_by_name(names: Iterable[str]) -> str | None:
    """What the names of a model's modules and tensors say that it has; None where they say nothing."""
    listed = list(names)
    return next((what for pattern, what in BY_NAME.items() if any(pattern in name for name in listed)), None)


def instead_by_config(config: Mapping[str, Any]) -> str | None:
    """What a model's config.json says that it has; None where it says nothing.

    The settings of a part (``text_config``) count where the whole has none.
    """
    # ALiBi first: Falcon has settings for rotary embeddings even where it says alibi.
    attention = config.get("attn_config")
    if config.get("alibi") is True or (isinstance(attention, dict) and attention.get("alibi") is True):
        return ALIBI
    kind = config.get("model_type")
    for what, kinds in _BY_TYPE.items():
        if isinstance(kind, str) and kind in kinds:
            return what
    if config.get("position_embedding_type") in ("rotary", "rope") or any(config.get(key) for key in _ROTARY_SETTINGS):
        return ROPE
    # Falcon without alibi; its configs may leave the settings out.
    if kind == "falcon":
        return ROPE
    parts = (value for value in config.values() if isinstance(value, dict) and "model_type" in value)
    return next(filter(None, map(instead_by_config, parts)), None)
