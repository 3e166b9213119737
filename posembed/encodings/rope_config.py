"""What a config of transformers says about the rotation of a layer."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..errors import EncodingInputError, shown
from .rope_scaling import Scaling, as_scaling, kind_of

# Models whose code turns complex numbers, each of two neighbouring columns.
COMPLEX = ("deepseek_v2", "llama4_text")
# What models call the function that turns queries and keys; the first that is there counts.
TURNS = ("apply_rotary_pos_emb", "apply_multimodal_rotary_pos_emb", "apply_rotary_pos_emb_interleave")
# Of the head and the angle with which it is asked.
WIDTH, ANGLE = 8, 0.5
# Beside the rotation in some rope_parameters, and no part of it: a scale of queries by position, the longest text.
NOT_OF_ROTATION = ("llama_4_scaling_beta", "max_position_embeddings")
# Models whose layers of full attention do not turn where the others have a window; their code says so, no field does.
WINDOWS_ONLY = ("afmoe", "cohere2", "cohere2_moe", "exaone4", "exaone_moe", "flint", "kolibri1")
# Fields by which a model that can rotate does not, with the values by which it does.
ROTATES_WHERE = {"alibi": (False,), "use_mem_rope": (True,), "position_embedding_type": ("rope", "rotary")}
# Kinds of layers whose code turns nothing.
WITHOUT_ATTENTION = ("linear_attention", "conv")
# How models that turn by time, height and width share the pairs among them; their code says so, no field does.
MROPE = {
    "glm4v_text": "sliced",
    "qwen2_5_vl_text": "sliced",
    "qwen2_vl_text": "sliced",
    "qwen3_vl_text": "interleaved",
}


class Said(NamedTuple):
    """What `scaling=` says, besides how the angles are stretched; None of what it is silent about."""

    scaling: Scaling | None
    base: float | None = None
    fraction: float | None = None
    pairs: str | None = None


def said_by(scaling: Scaling | Mapping[str, Any] | None) -> Said:
    """Read a scaling, or a whole ``rope_parameters``, which has the base and the share of the columns too.

    Args:
        scaling: None, a scaling, or a mapping in the form of transformers.

    Raises:
        EncodingInputError: an unknown rope_type, an option that is missing or not known.

    Example:
        >>> from posembed.encodings.rope_config import said_by
        >>> said_by({"rope_type": "default", "rope_theta": 500000.0}).base
        500000.0
    """
    if scaling is None or isinstance(scaling, Scaling):
        return Said(scaling)
    given = {name: value for name, value in scaling.items() if value is not None}
    base, fraction = given.pop("rope_theta", None), given.pop("partial_rotary_factor", None)
    if kind_of(given) != "proportional":
        return Said(as_scaling(given), base, fraction)
    given.pop("type", None)
    return Said(as_scaling({"factor": 1.0, **given, "rope_type": "linear"}), base, fraction, "proportional")


def agreed(name: str, given: Any, said: Any, usual: Any) -> Any:
    """Return what was given or what the scaling says; where they differ nobody knows which is meant."""
    if given is not None and said is not None and given != said:
        raise EncodingInputError(f"{name} is {shown(given)}, but the scaling says {shown(said)}; give one of them")
    return next(value for value in (given, said, usual) if value is not None)


def rotation_of(config: Any, layer: int | None, length: int | None) -> dict[str, Any] | None:
    """Return the arguments of `RoPE` for a layer of a model, or None where that layer does not turn.

    Args:
        config: of transformers, or what its config.json holds.
        layer: the number of the layer, from 0; None for a model whose layers all turn alike.
        length: the longest text, as for `RoPE.from_config`.

    Raises:
        EncodingInputError: as of `RoPE.from_config`.
    """
    config = _with_one_form(config)
    if layer is not None and layer not in range(config.num_hidden_layers):
        raise EncodingInputError(f"there is no layer {layer} in a model of {config.num_hidden_layers}; count from 0")
    types = getattr(config, "layer_types", None)
    parameters = _of_layer(config.rope_parameters, types, layer) if _turns(config, types, layer) else None
    if parameters is None:
        return None
    if not hasattr(config, "hidden_size"):
        raise EncodingInputError(f"the config of {config.model_type} has no hidden_size; give that of one of its parts")
    # In Gemma 4 heads of some layers are wider.
    mixed = layer is not None and getattr(config, "is_heterogeneous", False)
    sizes = config.per_layer_config[layer] if mixed else config
    scaling = _for_length(parameters, config, length)
    several: dict[str, Any] = {}
    if "mrope_section" in scaling:
        if config.model_type not in MROPE:
            raise EncodingInputError(
                f"how {config.model_type} shares its pairs among time, height and width is not known here; for texts "
                "alone leave mrope_section out"
            )
        scaling.pop("mrope_interleaved", None)
        several = {"axes": [2 * n for n in scaling.pop("mrope_section")], "mrope": MROPE[config.model_type]}
    whole = getattr(sizes, "head_dim", None) or sizes.hidden_size // sizes.num_attention_heads
    if part := _turning_part(sizes):  # and the share that turns says the same again
        scaling.pop("partial_rotary_factor", None)
    return {
        "d_head": part or whole,
        "layout": _layout(config),
        "scaling": scaling,
        **several,
    }


def _turning_part(config: Any) -> int | None:
    """How wide the part of a head is that turns and stands apart from the rest, as in DeepSeek's attention."""
    return getattr(config, "qk_rope_head_dim", None) or None


def _layout(config: Any) -> str:
    """Which columns of a head turn together: no field of a config says it, so its model's own code is asked.

    Raises:
        EncodingInputError: that code turns in a way that `RoPE` does not.
    """
    if config.model_type in COMPLEX or getattr(config, "rope_interleave", False):
        return "interleaved"
    # from_pretrained builds models on the meta device, which has no numbers.
    with torch.device("cpu"):
        return _paired(config)


def _paired(config: Any) -> str:
    turned, still = (_turned(config, angle) for angle in (ANGLE, 0.0))
    # What the first column becomes, among the columns as the model's code leaves them when nothing turns.
    first, columns = (turned @ still.T)[0], torch.eye(WIDTH, dtype=torch.float64)
    for layout, partner in (("interleaved", 1), ("half", WIDTH // 2)):
        if torch.allclose(first, math.cos(ANGLE) * columns[0] + math.sin(ANGLE) * columns[partner], atol=1e-5):
            return layout
    raise EncodingInputError(
        f"how {config.model_type} turns its heads is not known here; RoPE(d_head, scaling=config.rope_parameters) has "
        'its speeds, layout="interleaved" or "half" its pairs'
    )


def _turned(config: Any, angle: float) -> Tensor:
    """Each column of a head, all pairs turned by one angle, by the function of the model's code; zeros if it has none.

    Some take queries alone, some the cosine of each pair once.
    """
    from transformers.models.auto.modeling_auto import MODEL_MAPPING

    try:
        code = import_module(type(config).__module__.replace("configuration_", "modeling_"))
    except ModuleNotFoundError:  # its model is that of another config
        code = import_module(MODEL_MAPPING[type(config)].__module__)
    # Where a part of each head turns by itself (MLA), the other function is that of a side path, or of other weights.
    names = TURNS[::-1] if _turning_part(config) and getattr(config, "rope_interleave", True) is not False else TURNS
    turn: Any = next((getattr(code, name) for name in names if hasattr(code, name)), None)
    x = torch.eye(WIDTH, dtype=torch.float64)[None, None]
    for width, both in itertools.product((WIDTH, WIDTH // 2), (True, False)):
        cosine, sine = (x.new_full((1, WIDTH, width), each) for each in (math.cos(angle), math.sin(angle)))
        try:
            found = turn(x, x, cosine, sine)[0] if both else turn(x, cosine, sine)
            return found[0, 0].double()
        except Exception:  # it takes another form
            continue
    return torch.zeros_like(x[0, 0])


def _with_one_form(config: Any) -> Any:
    """A config as an object of today's form: transformers knows how each model wrote its older ones."""
    if isinstance(config, Mapping):
        from transformers import AutoConfig

        if "model_type" not in config:
            raise EncodingInputError("the config has no model_type, so nobody knows how to read it; add it")
        _check_twice(config.get("text_config", config))
        config = AutoConfig.for_model(**config)
    config = getattr(config, "text_config", config)
    if not getattr(config, "rope_parameters", None):
        raise EncodingInputError(
            f"the config of {config.model_type} has no rope_parameters: its model does not rotate, or its code says how"
        )
    for name, values in ROTATES_WHERE.items():
        if (said := getattr(config, name, values[0])) not in values:
            raise EncodingInputError(
                f"the config of {config.model_type} says {name} {shown(said)}: its model does not rotate"
            )
    return config


def _check_twice(config: Mapping[str, Any]) -> None:
    """What a config says twice must be the same: transformers takes one of the two in silence."""
    inner = config.get("rope_parameters") or config.get("rope_scaling") or {}
    for name in ("rope_theta", "partial_rotary_factor"):
        if None is not config.get(name) != inner.get(name, config.get(name)):
            raise EncodingInputError(
                f"the config says {name} {shown(config[name])} and, inside, {shown(inner[name])}; remove the wrong one"
            )


def _turns(config: Any, types: Any, layer: int | None) -> bool:
    """Whether a layer turns at all; in today's models some have no positions."""
    turns = getattr(config, "no_rope_layers", None)  # 1 where it turns, whatever its name says
    if bases := getattr(config, "layer_rope_theta", None):
        turns = [bool(base) for base in bases]
    if turns is None and config.model_type in WINDOWS_ONLY and getattr(config, "sliding_window", None):
        turns = [kind == "sliding_attention" for kind in types]
        if getattr(config, "prefix_dense_sliding_window_pattern", None) == 1:  # its dense layers turn all the same
            turns = [each or kind == "dense" for each, kind in zip(turns, config.mlp_layer_types, strict=True)]
    if crossed := getattr(config, "cross_attention_layers", None):  # they look at an image
        turns = [index not in crossed for index in range(config.num_hidden_layers)]
    if turns is None and set(types or ()).intersection(WITHOUT_ATTENTION):
        turns = [kind not in WITHOUT_ATTENTION for kind in types]
    if not turns:
        return True
    if layer is None and not all(turns):
        still = ", ".join(str(index) for index, each in enumerate(turns) if not each)
        raise EncodingInputError(f"some layers of this config do not turn ({still}); give layer=")
    return layer is None or bool(turns[layer])


def _of_layer(parameters: Mapping[str, Any], types: Any, layer: int | None) -> Mapping[str, Any] | None:
    """The parameters of a layer: its own ones where they go by the type of the layer, as in Gemma 3."""
    nested = {kind: parameters[kind] for kind in dict.fromkeys(types or ()) if kind in parameters}
    if not nested:
        return parameters
    if layer is not None:
        return nested.get(types[layer])
    first, *others = nested.values()
    if any(each != first for each in others):
        raise EncodingInputError(f"the layers of this config turn differently ({', '.join(nested)}); give layer=")
    return first


def _for_length(parameters: Mapping[str, Any], config: Any, length: int | None) -> dict[str, Any]:
    """The parameters with what depends on the text, and on the longest one that the config allows."""
    given = {name: value for name, value in parameters.items() if name not in NOT_OF_ROTATION}
    kind, longest = kind_of(parameters), getattr(config, "max_position_embeddings", 0)
    if kind == "dynamic":
        # Up to the longest text nothing changes; from there the base grows with the text.
        times = max(length or 0, longest) / longest
        given |= {"rope_type": "ntk", "factor": given["factor"] * times - (given["factor"] - 1)}
    if kind in ("yarn", "longrope") and given.get("factor") is None:
        given["factor"] = longest / given["original_max_position_embeddings"]
    if kind == "longrope":
        given["length"] = length or given["original_max_position_embeddings"]
    return given
