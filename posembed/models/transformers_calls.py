"""What happens in a call of a model of transformers while a position scheme is in it: positions, cache, attention."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.cache_utils import Cache, DynamicLayer, StaticLayer
from transformers.masking_utils import sdpa_mask

from ..encodings import PositionScheme
from ..encodings.positions import compute_dtype
from ..errors import ModelInputError
from .attention import added, attend, rotated
from .blockwise_attention import SchemeBias
from .masks import AttentionMask
from .transformers_families import NAME, SCHEME, Anatomy, crosses

# What some calls ask of attention and use_scheme has no place for.
UNSUPPORTED = ("softcap", "s_aux", "position_bias", "cache")


class Call(NamedTuple):
    """What one call of a model tells the attention of every layer.

    Attributes:
        positions: of the queries.
        key_positions: of all keys, those in the cache first.
        weights: whether the attention weights are asked for.
    """

    positions: Tensor
    key_positions: Tensor
    weights: bool


def hooks(parts: Anatomy, scheme: PositionScheme) -> list[Callable[[], Any]]:
    """Hook into a model: its own positions fall silent, and the scheme's take their place; what undoes that."""
    calls, own = _Calls(parts, scheme), cast(Any, parts.own)
    if (rows := parts.family.rows) is not None:
        # In front of the parameter and the method of these names, which stay what they are.
        own.__dict__ |= {rows: torch.zeros(()), "interpolate_pos_encoding": _no_rows}
        at_patches = own.get_submodule("dropout").register_forward_pre_hook(calls.at_patches)
        before = parts.body.register_forward_pre_hook(calls.before_an_image, with_kwargs=True)
        taken = [partial(own.__dict__.pop, name) for name in (rows, "interpolate_pos_encoding")]
        return [at_patches.remove, before.remove, *taken]
    made = [
        parts.body.register_forward_pre_hook(calls.before, with_kwargs=True),
        parts.body.register_forward_hook(calls.after, with_kwargs=True),
        own.register_forward_pre_hook(_ask_for_position_zero, with_kwargs=True),
        own.register_forward_hook(_answer_nothing),
    ]
    undo: list[Callable[[], Any]] = [hook.remove for hook in made]
    if (widens := getattr(parts.body, "project_in", None)) is not None:
        widens.forward = nn.Identity().forward  # in front of its class's, which `_embeddings` calls
        undo.append(partial(delattr, widens, "forward"))
    return undo


def _no_rows(*args: Any) -> float:
    return 0.0


class _Calls:
    """Nothing of a call is kept here: a model may run in several threads, and its layers again for a gradient."""

    def __init__(self, parts: Anatomy, scheme: PositionScheme):
        self.family, self.scheme, self.n_layers = parts.family, scheme, len(parts.attentions)
        self.own: Any = parts.own
        # Of the class, without self: others may have set a forward on the model, such as nnsight.
        self.names = list(inspect.signature(type(parts.body).forward).parameters)[1:]

    def before(self, body: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """Add the scheme's vectors to the embeddings, and send the positions along to every attention."""
        kwargs = self._asked(body, args, kwargs)
        embeds = _embeddings(body, kwargs)
        if embeds is None:
            return (), kwargs  # the model has a message for that
        positions, of_keys = self._positions(body, kwargs, embeds)
        call = Call(*_shared(positions, of_keys), _weights_asked(body, kwargs))
        return (), kwargs | {
            "input_ids": None,
            "inputs_embeds": added(self.scheme, embeds, call.positions),
            "position_ids": torch.zeros_like(positions) if self.family.has_token_types else positions,
            "posembed_call": call,
        }

    def before_an_image(self, body: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """Send the positions of [CLS] and of the patches, row by row, along to every attention."""
        kwargs = self._asked(body, args, kwargs)
        pixels, steps = kwargs["pixel_values"], self.own.patch_embeddings.projection.stride
        n = 1 + math.prod(size // step for size, step in zip(pixels.shape[-2:], steps, strict=True))
        at = torch.arange(n, device=pixels.device)
        return (), kwargs | {"posembed_call": Call(at, at, _weights_asked(body, kwargs))}

    def at_patches(self, dropout: Any, args: tuple[Tensor]) -> tuple[Tensor]:
        """Add the scheme's vectors where the model's own rows were added, before their dropout."""
        return (added(self.scheme, args[0], torch.arange(args[0].shape[1], device=args[0].device)),)

    def _asked(self, body: Any, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
        if body.config._attn_implementation != NAME:
            raise ModelInputError("the model's attention was changed under its scheme; remove the scheme before that")
        asked = dict(zip(self.names, args, strict=False)) | kwargs
        if getattr(asked.get("attention_mask"), "ndim", None) == 3:  # which GPT-2 would read as one of padding
            raise ModelInputError("attention_mask has three axes, and transformers wants four; give mask[:, None]")
        return asked

    def after(self, body: Any, args: tuple, kwargs: dict[str, Any], output: Any) -> None:
        """Tell a cache that the model has just made the positions of its keys."""
        if kwargs.get("past_key_values") is not None or "posembed_call" not in kwargs:
            return
        for made in output if isinstance(output, tuple) else output.values():
            cache = _self_attention_cache(made)
            if isinstance(cache, Cache) and cache.get_seq_length():
                positions = kwargs["posembed_call"].positions.expand(kwargs["inputs_embeds"].shape[:2])
                _key_positions(cache, positions, self.n_layers, filled=True)

    def _positions(
        self, body: Any, kwargs: dict[str, Any], embeds: Tensor
    ) -> tuple[Int[Tensor, "#batch seq"], Int[Tensor, "#batch key"]]:
        """Return the positions of the tokens, as given or else counted, and those of all keys."""
        cache, positions = _self_attention_cache(kwargs.get("past_key_values")), kwargs.get("position_ids")
        if positions is not None and positions.ndim == 1:
            positions = positions[None]
        if positions is not None and positions.ndim != 2:
            raise ModelInputError(f"position_ids have shape {tuple(positions.shape)}; a scheme takes (batch, seq)")
        if positions is None:
            past = 0 if cache is None else cache.get_seq_length()
            positions = self.family.count(kwargs, body.config.pad_token_id, embeds.shape[1], past, embeds.device)
        if cache is None:
            return positions, positions
        stored = _key_positions(cache, positions.expand(embeds.shape[:2]), self.n_layers)
        return positions, positions if stored.shape[1] == positions.shape[1] else stored


def _weights_asked(body: Any, kwargs: dict[str, Any]) -> bool:
    weights = kwargs.get("output_attentions")
    return bool(body.config.output_attentions if weights is None else weights)


def _embeddings(body: Any, kwargs: dict[str, Any]) -> Float[Tensor, "batch seq d_model"] | None:
    ids, embeds = kwargs.get("input_ids"), kwargs.get("inputs_embeds")
    if (ids is None) == (embeds is None):
        return None
    embeds = body.get_input_embeddings()(ids) if embeds is None else embeds
    if embeds.ndim != 3:
        raise ModelInputError(f"the embeddings have shape {tuple(embeds.shape)}; a scheme needs (batch, seq, d_model)")
    # A small OPT looks its words up narrower, and adds positions when they are widened.
    widens = getattr(body, "project_in", None)
    return embeds if widens is None else type(widens).forward(widens, embeds)


def _shared(positions: Tensor, of_keys: Tensor) -> tuple[Tensor, Tensor]:
    """Drop the batch axis where all texts have the same positions: the bias then needs none. Else both have it."""
    if len(positions) == len(of_keys) == 1:
        return positions[0], of_keys[0]
    batch = max(len(positions), len(of_keys))
    return positions.expand(batch, -1), of_keys.expand(batch, -1)


def _ask_for_position_zero(own: nn.Module, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Keep far positions from a table that has no row for them, and from angles that would adapt to them."""
    return tuple(map(_zero, args)), {name: _zero(value) for name, value in kwargs.items()}


def _zero(value: Any) -> Any:
    return torch.zeros_like(value) if isinstance(value, Tensor) and not value.is_floating_point() else value


def _answer_nothing(own: nn.Module, args: tuple, output: Any) -> Any:
    if isinstance(output, tuple):  # cosine and sine of no rotation
        return torch.ones_like(output[0]), torch.zeros_like(output[1])
    return torch.zeros_like(output)


def _self_attention_cache(cache: Any) -> Any:
    """The part of a cache that belongs to self-attention; a decoder with cross-attention has two."""
    return getattr(cache, "self_attention_cache", cache)


def _key_positions(
    cache: Any, positions: Int[Tensor, "batch seq"], n_layers: int, *, filled: bool = False
) -> Int[Tensor, "batch key"]:
    """Add the positions of new tokens to a cache and return those of all its keys.

    They are kept as one more layer of the cache, behind the model's: so they are reordered by beam search, repeated,
    cropped and copied with the keys.

    Args:
        cache: of self-attention.
        positions: of the new tokens.
        n_layers: the number of the model's layers.
        filled: whether the keys of these tokens are in the cache already.
    """
    if len(cache.layers) <= n_layers:
        _check_new(cache, filled)
        while len(cache.layers) < n_layers:  # a cache that makes its layers when they are first used
            cache.layers.append(cache.layer_class_to_replicate())
        first = cache.layers[0]
        cache.layers.append(StaticLayer(first.max_cache_len) if isinstance(first, StaticLayer) else DynamicLayer())
    states = positions[:, None, :, None]
    return cache.layers[n_layers].update(states, states)[0][:, 0, :, 0]


def _check_new(cache: Any, filled: bool) -> None:
    if not filled and cache.get_seq_length():
        raise ModelInputError(
            "the cache was filled without this scheme, so its keys' positions are not known; give a new one"
        )
    if cache.offloading:
        raise ModelInputError("an offloaded cache cannot keep positions; use another cache_implementation")
    if any(isinstance(layer, StaticLayer) and layer.is_sliding for layer in cache.layers):
        raise ModelInputError("a static cache with a sliding window moves its keys about; use a dynamic cache")


def attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    posembed_call: Call | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attend with the scheme of the module's layer, or without one where it has none, as in cross-attention."""
    scheme = getattr(module, SCHEME, None)
    for name in UNSUPPORTED:
        # The bias of T5 is its own positions, which are silent.
        if kwargs.get(name) is not None and not (
            name == "position_bias" and hasattr(module, "has_relative_attention_bias")
        ):
            raise ModelInputError(f"{type(module).__name__} asks for {name}=, which use_scheme does not support")
    if scheme is None and posembed_call is None and not crosses(module):
        raise ModelInputError("the model was saved with a scheme; load it with posembed.models.load_with_scheme")
    if scheme is None:
        return _with_weights(query, key, value, attention_mask, None, scaling, dropout)
    if posembed_call is None:
        raise ModelInputError(
            "attention was called without positions; call the whole model, and if you did, use another one: the layers "
            "of this one hand nothing on to attention"
        )
    if scaling == 1.0 and getattr(module, "scaling", 1.0) != 1.0:
        # Schemes read queries as they were projected; OPT scales its own before attention.
        query, scaling = query / module.scaling, module.scaling
    at, keys_at = posembed_call.positions, posembed_call.key_positions[..., -key.shape[2] :]  # a window keeps the last
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    # transformers fills its cache before it calls attention: keys are cached as they are and turned at each step anew.
    query, key = rotated(scheme, query, key, at, keys_at)
    visible = attention_mask
    if attention_mask is not None and attention_mask.is_floating_point():
        visible = attention_mask > torch.finfo(attention_mask.dtype).min / 2
    if posembed_call.weights or visible is not attention_mask:
        mask = AttentionMask(query.shape[2], key.shape[2], causal=False, given=visible, device=query.device)
        bias = SchemeBias(scheme, query, key, at, keys_at, mask).block(0, query.shape[2])
        return _with_weights(query, key, value, attention_mask, bias, scaling, dropout)
    how: dict[str, Any] = {"attention_mask": attention_mask, "causal": False, "scale": scaling, "dropout": dropout}
    mixed = attend(query, key, value, scheme=scheme, positions=at, key_positions=keys_at, **how)
    return mixed.transpose(1, 2).contiguous(), None


def whole_mask(*args: Any, **kwargs: Any) -> Tensor | None:
    """Make the mask, causality included: True where a query may look, None only where it may look everywhere."""
    return sdpa_mask(*args, **{**kwargs, "allow_is_causal_skip": False})


def _with_weights(query, key, value, mask, bias, scaling, dropout) -> tuple[Tensor, Tensor]:
    """Attend with every weight in memory, which `attend` never has."""
    groups, dtype = query.shape[1] // key.shape[1], compute_dtype(query)
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    logits = (query @ key.mT).to(dtype) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if bias is not None:
        logits = logits + bias
    if mask is not None and mask.is_floating_point():
        logits = logits + mask
    elif mask is not None:
        # Not minus infinity: the weights of a query that sees nothing would become nan.
        logits = logits.masked_fill(~mask.bool(), torch.finfo(dtype).min)
    weights = F.dropout(logits.softmax(-1).to(value.dtype), dropout)
    return (weights @ value).transpose(1, 2).contiguous(), weights


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, whole_mask)
