"""What is known of models: what they call their position tables, where position 0 is, and what others have instead.

How many rows stand before position 0 follows from the model_type in config.json; the tests check the entries against
the models of transformers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from ..errors import PositionTableError

# What models call an absolute position table.
TABLE_NAMES = frozenset(
    {
        "embed_positions",  # BART, OPT, Whisper
        "pe",  # the buffer of PyTorch's tutorial
        "pos_emb",
        "pos_embed",  # timm
        "position_embedding",  # CLIP
        "position_embedding_table",
        "position_embeddings",  # BERT, RoBERTa, ViT
        "positional_embedding",  # OpenAI's CLIP and Whisper
        "positions_embed",  # GPT
        "wpe",  # GPT-2
    }
)
# Of how many parts a config may have settings.
MOST_PARTS = 64
# What models of these types call theirs, and no other is one: of GPT-2's in a decision transformer row 0 alone is read,
# RoFormer's rotates queries and keys and is added to nothing, a conformer's is of distances.
_OWN_NAMES = {
    "canine": "char_position_embeddings",
    "decision_transformer": "embed_timestep",
    "reformer": "embedding",
    "roformer": None,
    "wav2vec2-conformer": None,
}
# Parts of paths under which those names mean something else: GPT-J's angles, SAM's random frequencies.
_NO_TABLES = ("attn.embed_positions", "shared_image_embedding.", "shared_embedding.")

# Other names that may be a table's, for a list to choose from.
_LIKELY = re.compile(r"pos(ition(al|s)?)?_?(emb|enc|table)|wpe")
_UNLIKELY = re.compile(r"rel(ative)?_|relative|bias|rotary|_ids|proj|post_")

# The parts of models, and the words in a tensor's path that stand for each.
_PARTS = {
    "text": {"text", "language"},
    "vision": {"vision", "visual", "image", "video"},
    "audio": {"audio", "speech"},
    "encoder": {"encoder"},
    "decoder": {"decoder"},
}


def is_table_name(name: str, kind: str | None = None) -> bool:
    """Whether a tensor or parameter of this name is a position table in a model of this type, if its shape is one's."""
    last = stem(name).rpartition(".")[2]
    if kind in _OWN_NAMES:
        return last == _OWN_NAMES[kind]
    return last in TABLE_NAMES and not any(part in f"{name}." for part in _NO_TABLES)


def is_likely_name(name: str, kind: str | None = None) -> bool:
    """Whether a tensor of this name may be a position table, where the layout of such a model is not known."""
    return kind not in _OWN_NAMES and bool(_LIKELY.search(name.lower())) and not _UNLIKELY.search(name.lower())


def stem(name: str) -> str:
    """The name without the ".weight" that nn.Embedding adds."""
    return name.removesuffix(".weight")


def printable(name: str) -> str:
    """A name in one line, whatever is in it."""
    return name if name.isprintable() else name.encode("unicode_escape").decode("ascii")


def part_of(name: str) -> str | None:
    """The part of the model that a path names: "text", "vision", "audio", "encoder", "decoder" or None."""
    words = {word for component in name.split(".")[:-1] for word in component.split("_")}
    return next((part for part, its_words in _PARTS.items() if words & its_words), None)


def is_of_part(name: str, part: str) -> bool:
    """Whether the part stands in the name, or is another word for what does."""
    return part in name or part == part_of(name)


# Under these names some model keeps rows before position 0, so the model_type must be known. Under all other names, and
# where the table is a parameter of its own (no ".weight"), row p is position p in every model.
AMBIGUOUS = frozenset({"embed_positions", "position_embeddings"})

# fairseq's habit: positions are counted from the padding id on, so the first is pad_token_id + 1. The numbers are the
# padding ids where config.json leaves pad_token_id out.
_AFTER_PADDING = {
    "altclip_text_model": 1,
    "bridgetower_text_model": 1,
    "camembert": 1,
    "clap_text_model": 1,
    "data2vec-text": 1,
    "ernie_m": 1,
    "esm": 1,
    "fsmt": 1,
    "ibert": 1,
    "layoutlmv3": 1,
    "lilt": 0,
    "longformer": 1,
    "luke": 1,
    "markuplm": 0,
    "prophetnet": 0,
    "roberta": 1,
    "roberta-prelayernorm": 1,
    "xlm-prophetnet": 0,
    "xlm-roberta": 1,
    "xlm-roberta-xl": 1,
    "xmod": 1,
}

# Two rows, whatever the padding id.
_TWO = frozenset(
    {
        *("bart", "biogpt", "florence2", "mbart", "mpnet", "mra", "mvp", "nystromformer", "opt", "plbart"),
        *("pp_formulanet", "pp_formulanet_text", "trocr", "yoso"),
    }
)

# No rows.
_NONE = frozenset(
    {
        *("albert", "align", "align_text_model", "audioflamingo3", "audioflamingo3_encoder", "bert", "bert-generation"),
        *("big_bird", "bigbird_pegasus", "blenderbot", "blenderbot-small", "blip", "blip_2_qformer"),
        *("blip_text_model", "bros", "chinese_clip", "chinese_clip_text_model", "convbert", "deberta", "deberta-v2"),
        *("distilbert", "dpr", "electra", "eomt", "ernie", "flaubert", "flava", "flava_text_model", "fnet", "git"),
        *("instructblip_qformer", "instructblipvideo_qformer", "layoutlm", "layoutlmv2", "layoutxlm", "led", "lxmert"),
        *("marian", "megatron-bert", "mobilebert", "moss_transcribe_diarize", "moss_transcribe_diarize_audio"),
        *("musicflamingo", "pegasus", "qdqbert", "qwen2_audio", "qwen2_audio_encoder", "rembert", "roc_bert"),
        *("splinter", "squeezebert", "tapas", "tvp", "videomt", "vilt", "visual_bert", "voxtral", "voxtral_encoder"),
        *("whisper", "xlm"),
    }
)

# Tables of their own kind in a model whose main table has rows before position 0.
_OTHERS_WITHOUT = ("entity_embeddings.",)  # LUKE

# What follows the kind of model in the name of a class: BertForMaskedLM, XLMWithLMHeadModel.
_ROLE = re.compile(r"(For[A-Z]\w*|(With)?(LMHead)?Model|(Question|Context)?Encoder|Decoder)$")

KNOWN = frozenset(_AFTER_PADDING) | _TWO | _NONE


def offset_of(name: str, config: Mapping[str, Any]) -> int | None:
    """How many rows stand before position 0; None where that is not known.

    Args:
        name: of the tensor, in a checkpoint or with ".weight" in a live model.
        config: config.json, empty where there is none.

    Raises:
        PositionTableError: the config's padding id is no row.
    """
    if not name.endswith(".weight") or stem(name).rpartition(".")[2] not in AMBIGUOUS:
        return 0
    if any(other in name for other in _OTHERS_WITHOUT):
        return 0
    for settings in settings_for(name, config):
        kind = model_type(settings)
        if kind in _TWO or kind in _NONE:
            return 2 if kind in _TWO else 0
        if kind in _AFTER_PADDING:
            padding = settings.get("pad_token_id")
            if padding is not None and (type(padding) is not int or padding < 0):
                raise PositionTableError(
                    f"config.json has the pad_token_id {padding!r:.50}, but such a model counts positions from it on; "
                    "say how many rows stand before position 0: load_table(..., offset=2)"
                )
            return 1 + (_AFTER_PADDING[kind] if padding is None else padding)
    return None


def settings_for(name: str, config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The settings that apply to a tensor, the closest first: those of its part (``text_config``), then the whole's."""
    path = name.split(".")
    parts = islice(((key, value) for key, value in config.items() if isinstance(value, dict)), MOST_PARTS)
    known = [(key.removesuffix("_config"), value) for key, value in parts]
    for depth, component in enumerate(path[:-1], start=1):
        for part, value in known:
            # "text" is for "language_model" too.
            if part == component or part_of(f"{part}.") == part_of(f"{component}.") is not None:
                return [*settings_for(".".join(path[depth:]), value), config]
    return [config]


def model_type(config: Mapping[str, Any]) -> str | None:
    """The config's model_type; from the name of its class where the config is from before there was one."""
    kind = config.get("model_type")
    if isinstance(kind, str) and kind:
        return kind
    classes = config.get("architectures")
    if not isinstance(classes, list) or not classes or not isinstance(classes[0], str):
        return None
    name = _ROLE.sub("", classes[0][:200]).lower()
    return next((kind for kind in KNOWN if re.sub("_model$|[-_]", "", kind) == name), None)


ROPE = "rotary embeddings (RoPE)"
ALIBI = "ALiBi's biases, computed from the distance"
SINUSOID = "a sinusoid that it computes and does not store"
CONVOLUTION = "a convolution over its input (wav2vec 2.0's kind)"
CONVOLUTION_AND_BIAS = f"{CONVOLUTION} and a learned bias for each relative distance"
RELATIVE = "relative positions inside its attention"
RECURRENCE = "nothing of the kind: layers of it read the tokens one after the other"

# By a part of the name of one of the model's modules, parameters or buffers. In this order: WavLM and T5 models have
# several.
BY_NAME = {
    "rotary": ROPE,
    "attn.embed_positions": ROPE,  # GPT-J's and CodeGen's angles
    "rel_attn_embed": CONVOLUTION_AND_BIAS,
    "pos_conv_embed": CONVOLUTION,
    "relative_attention_bias": "a learned bias for each relative distance (T5's kind)",
    "relative_position_bias": "a learned bias for each relative distance",
    "position_bias_mlp": "biases that a small network makes of the distance (Swin v2's kind)",
    "rel_pos": RELATIVE,
    "rel_embeddings": RELATIVE,
    "pos_bias_u": f"{RELATIVE} (Transformer-XL's kind)",
    "r_r_bias": f"{RELATIVE} (Transformer-XL's kind)",
    "position_embeddings.weights.": "factors of a table, one an axis, which its model puts together (Reformer's kind)",
    "A_log": RECURRENCE,  # the layers of Mamba, alone or between others that have no positions either
}

# By the model_type of config.json, where neither the config nor a tensor's name would tell.
_BY_TYPE = {
    ALIBI: {"bloom", "mpt"},
    ROPE: {"codegen", "esm", "gpt_neox", "gpt_neox_japanese", "gptj", "modernbert", "persimmon", "roformer"},
    SINUSOID: {
        *("autoformer", "ctrl", "fsmt", "informer", "kosmos-2", "kosmos-2.5", "kosmos_2_5_text_model"),
        *("kosmos_2_text_model", "m2m_100", "marian", "musicgen"),
        *("musicgen_decoder", "musicgen_melody", "musicgen_melody_decoder", "nllb-moe", "pegasus", "pegasus_x"),
        *("seamless_m4t", "seamless_m4t_v2", "speech_to_text", "speech_to_text_2", "time_series_transformer"),
        *("trocr", "videomae", "xglm"),
    },
    CONVOLUTION: {"hubert", "sew", "sew-d", "unispeech", "unispeech-sat", "wav2vec2"},
    CONVOLUTION_AND_BIAS: {"wavlm"},
    RECURRENCE: {"rwkv", "xlstm"},
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
    said = config.get("position_embedding_type", config.get("position_embeddings_type", ""))
    if str(said).startswith("relative"):
        return RELATIVE
    # Zamba2 and Granite's hybrids have settings for rotary embeddings that they do not use.
    unused = said is None or config.get("use_mem_rope") is False
    if said in ("rotary", "rope") or (not unused and any(config.get(key) for key in _ROTARY_SETTINGS)):
        return ROPE
    # Falcon without alibi; its configs may leave the settings out.
    if kind == "falcon":
        return ROPE
    parts = (value for value in config.values() if isinstance(value, dict) and "model_type" in value)
    return next(filter(None, map(instead_by_config, parts)), None)
