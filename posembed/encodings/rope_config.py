"""What a config of transformers says about the rotation of a layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import EncodingInputError, shown
from .rope_scaling import Scaling, as_scaling, kind_of

# Models that pair neighbouring columns; all others of transformers pair column i with the one half the width on.
INTERLEAVED = ("cohere", "cohere2", "ernie4_5", "glm", "glm4", "glm4v_text", "helium", "llama4_text")
# Models whose layers of full attention do not turn where the others have a window; their code says so, no field does.
WINDOWS_ONLY = ("cohere2", "exaone4")
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
    # In Gemma 4 heads of some layers are wider.
    mixed = layer is not None and getattr(config, "is_heterogeneous", False)
    sizes = config.per_layer_config[layer] if mixed else config
    scaling = _for_length(parameters, config, length)
    several: dict[str, Any] = {}
    if config.model_type in MROPE and "mrope_section" in scaling:
        scaling.pop("mrope_interleaved", None)
        several = {"axes": [2 * n for n in scaling.pop("mrope_section")], "mrope": MROPE[config.model_type]}
    neighbours = config.model_type in INTERLEAVED or getattr(config, "rope_interleave", False)
    return {
        "d_head": getattr(sizes, "head_dim", None) or sizes.hidden_size // sizes.num_attention_heads,
        "layout": "interleaved" if neighbours else "half",
        "scaling": scaling,
        **several,
    }


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
        raise EncodingInputError(f"the config of {config.model_type} has no rope_parameters: its model does not rotate")
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
    if turns is None and config.model_type in WINDOWS_ONLY and getattr(config, "sliding_window", None):
        turns = [kind == "sliding_attention" for kind in types]
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
        return nested[types[layer]]
    first, *others = nested.values()
    if any(each != first for each in others):
        raise EncodingInputError(f"the layers of this config turn differently ({', '.join(nested)}); give layer=")
    return first


def _for_length(parameters: Mapping[str, Any], config: Any, length: int | None) -> dict[str, Any]:
    """The parameters with what depends on the text, and on the longest one that the config allows."""
    given, kind, longest = dict(parameters), kind_of(parameters), config.max_position_embeddings
    if kind == "dynamic":
        # Up to the longest text nothing changes; from there the base grows with the text.
        times = max(length or 0, longest) / longest
        given |= {"rope_type": "ntk", "factor": given["factor"] * times - (given["factor"] - 1)}
    if kind in ("yarn", "longrope") and given.get("factor") is None:
        given["factor"] = longest / given["original_max_position_embeddings"]
    if kind == "longrope":
        given["length"] = length or given["original_max_position_embeddings"]
    return given
