"""What a config of transformers says about the rotation of a layer, and the model's own code where no field does."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from typing import Any

import torch
from torch import Tensor

from ..errors import EncodingInputError, shown
from .rope_scaling import SCALINGS, Scaling, kind_of

# Models whose code turns complex numbers, each of two neighbouring columns.
COMPLEX = ("deepseek_v2", "llama4_text")
# What models call the function that turns queries and keys; the first that is there counts.
TURNS = ("apply_rotary_pos_emb", "apply_multimodal_rotary_pos_emb", "apply_rotary_pos_emb_interleave")
# Of the head and the angle with which it is asked.
WIDTH, ANGLE = 8, 0.5
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
# What a rope_type may be, besides the scalings.
KINDS = ("default", "dynamic", "proportional")
# Models that turn one of their heads and leave the others; their code says so, no field does.
ONE_HEAD = ("qwen2_5_omni_dit",)


@dataclass(frozen=True)
class OfModel(Scaling):
    """The frequencies that a model's own code makes of what its config says, and its factor of queries and keys."""

    factor: float = field(default=1.0, repr=False)
    said: Mapping[str, Any] = field(default_factory=dict)
    speeds: tuple[float, ...] = field(default=(), repr=False)
    # What follows from the config is not said again: its last digits are those of a processor.
    attention_factor: float = field(default=1.0, repr=False)

    def frequencies(self, width: int, base: float) -> Tensor:
        return torch.tensor(self.speeds, dtype=torch.float64, device="cpu")


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
    if not isinstance(getattr(config, "num_hidden_layers", None), int) or not hasattr(config, "hidden_size"):
        raise EncodingInputError(
            f"the config of {config.model_type} has no hidden_size or num_hidden_layers; give that of one of its parts"
        )
    if config.model_type in ONE_HEAD:
        raise EncodingInputError(f"{config.model_type} turns the first of its heads alone, which is no rotation of all")
    if layer is not None and layer not in range(config.num_hidden_layers):
        raise EncodingInputError(f"there is no layer {layer} in a model of {config.num_hidden_layers}; count from 0")
    types = getattr(config, "layer_types", None)
    if not _turns(config, types, layer):
        return None
    parameters, kind = _of_layer(config.rope_parameters, types, layer)
    if parameters is None:
        return None
    if (rope_type := kind_of(parameters)) not in (*KINDS, *SCALINGS):
        known = ", ".join((*KINDS, *SCALINGS))
        raise EncodingInputError(f"the config's rope_type is {shown(rope_type)}; those that are read are {known}")
    # In Gemma 4 heads of some layers are wider.
    mixed = layer is not None and getattr(config, "is_heterogeneous", False)
    sizes = config.per_layer_config[layer] if mixed else config
    several: dict[str, Any] = {}
    if "mrope_section" in parameters:
        if config.model_type not in MROPE:
            raise EncodingInputError(
                f"how {config.model_type} shares its pairs among time, height and width is not known here; for texts "
                "alone leave mrope_section out"
            )
        several = {"axes": [2 * n for n in parameters["mrope_section"]], "mrope": MROPE[config.model_type]}
    # By the model's own code: most turn the whole head, whatever a partial_rotary_factor says.
    scaling = _of_model(config, parameters, kind, length)
    width = _turning_part(sizes) or getattr(sizes, "head_dim", None) or sizes.hidden_size // sizes.num_attention_heads
    return {
        "d_head": width,
        "base": parameters.get("rope_theta"),
        "fraction": min(1.0, 2 * len(scaling.speeds) / width),
        "layout": _layout(config),
        "scaling": scaling,
        **several,
    }


def _of_model(config: Any, said: Mapping[str, Any], kind: str | None, length: int | None) -> OfModel:
    """Ask the module of the model's code that makes cosines and sines for the angles of position 1, in such a text.

    Raises:
        EncodingInputError: a config that it cannot be made of, or a module that wants more than positions.
    """
    sees = "Vision" in type(config).__name__
    found = [
        each
        for name, each in vars(_code(config)).items()
        if name.endswith("RotaryEmbedding") and ("Vision" in name) == sees
    ]
    fits, why = [each for each in found if type(config).__name__ in str(signature(each))], "it has no module for them"
    # from_pretrained builds models on the meta device, which has no numbers.
    with torch.device("cpu"):
        at = torch.tensor([[1, (length or 2) - 1]])
        for each, positions in itertools.product(fits or found, (at, at.expand(3, 1, 2))):
            try:
                made = each(config)(torch.zeros(1, 2, 1), positions, *([kind] if kind else []))
                parts = made if isinstance(made, tuple) else (made.real, made.imag)
                cos, sin = (part.flatten(0, -2)[0].double() for part in parts)
            except Exception as error:  # it is for another config, or for other positions
                why = f"{type(error).__name__}: {' '.join(str(error).split())}"
            else:
                told = dict(said) | ({} if length is None else {"length": length})
                return OfModel(1.0, told, _once(torch.atan2(sin, cos)), round(float(cos[0].hypot(sin[0])), 6))
    raise EncodingInputError(f"the code of {config.model_type} makes no angles of positions by this config ({why})")


def _once(angles: Tensor) -> tuple[float, ...]:
    """The angle of each pair, where the columns of a head, by halves or as neighbours, have them twice."""
    half = len(angles) // 2
    for first, second in ((angles[:half], angles[half:]), (angles[::2], angles[1::2])):
        if torch.equal(first, second):
            return tuple(first.tolist())
    return tuple(angles.tolist())


def _code(config: Any) -> Any:
    """The module of transformers with the code of a config's model."""
    from transformers.models.auto.modeling_auto import MODEL_MAPPING

    try:
        return import_module(type(config).__module__.replace("configuration_", "modeling_"))
    except ModuleNotFoundError:  # its model is that of another config
        return import_module(MODEL_MAPPING[type(config)].__module__)


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
    with torch.device("cpu"):
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
    code = _code(config)
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

        _check_twice(config.get("text_config", config))
        try:
            # transformers writes into what is inside of it.
            config = AutoConfig.for_model(**copy.deepcopy(dict(config)))
        except (KeyError, TypeError, ValueError) as error:
            why = " ".join(str(error).split())
            raise EncodingInputError(
                f"transformers does not read this config: {why}; write it in today's form, such as 'longrope' for 'su'"
            ) from None
    config = getattr(config, "text_config", config)
    if not getattr(config, "rope_parameters", None):
        raise EncodingInputError(
            f"config is {shown(config)}, without rope_parameters; give model.config, or the content of a config.json, "
            "of a model that rotates"
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


def _of_layer(parameters: Mapping[str, Any], types: Any, layer: int | None) -> tuple[Any, str | None]:
    """The parameters of a layer, and its type where they go by it, as in Gemma 3."""
    nested = {kind: parameters[kind] for kind in dict.fromkeys(types or ()) if kind in parameters}
    inner = {kind: each for kind, each in parameters.items() if isinstance(each, Mapping)}
    if inner and not nested:
        told = ", ".join(f"{kind} (base {shown(each.get('rope_theta'))})" for kind, each in inner.items())
        raise EncodingInputError(
            f"the config's rotations are {told}, and no type of its layers has such a name: which layer turns by which "
            "is said in the model's code alone, and not known here"
        )
    if not nested:
        return parameters, None
    kind = next(iter(nested)) if layer is None else types[layer]
    if layer is None and any(each != nested[kind] for each in nested.values()):
        raise EncodingInputError(f"the layers of this config turn differently ({', '.join(nested)}); give layer=")
    return nested.get(kind), kind
