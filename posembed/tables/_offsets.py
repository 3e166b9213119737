"""How many rows of a table stand before position 0, by the model_type in config.json.

Every entry is checked by the tests against the model of transformers itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..errors import PositionTableError
from ._names import part_of, stem

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
            return _after_padding(settings.get("pad_token_id"), _AFTER_PADDING[kind])
    return None


def settings_for(name: str, config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The settings that apply to a tensor, the closest first: those of its part (``text_config``), then the whole's."""
    path = name.split(".")
    for depth, component in enumerate(path[:-1], start=1):
        for key, value in config.items():
            if isinstance(value, dict) and _is_for(key.removesuffix("_config"), component):
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


def _is_for(part: str, component: str) -> bool:
    """Whether the settings of a part are for the module of this name: "text" for "language_model"."""
    return part == component or part_of(f"{part}.") == part_of(f"{component}.") is not None


def _after_padding(padding: Any, default: int) -> int:
    if padding is None:
        return default + 1
    if type(padding) is not int or padding < 0:
        raise PositionTableError(
            f"config.json has the pad_token_id {padding!r:.50}, but this kind of model counts positions from it on; "
            "say how many rows stand before position 0: load_table(..., offset=2)"
        )
    return padding + 1
