"""What happens around each call of a model of transformers while a position scheme is in it."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers.cache_utils import Cache

from ..encodings import PositionScheme
from ..errors import ModelInputError
from ._transformers_attention import NAME, Call
from ._transformers_cache import key_positions, self_attention_cache
from ._transformers_models import Anatomy


class Calls:
    """The hooks of a model: its own positions fall silent, and the scheme's take their place.

    Nothing of a call is kept here: a model may run in several threads, and its layers again for a gradient.
    """

    def __init__(self, parts: Anatomy, scheme: PositionScheme):
        self.family, self.scheme, self.n_layers = parts.family, scheme, len(parts.attentions)
        self.names = list(inspect.signature(parts.body.forward).parameters)
        self.hooks = [
            parts.body.register_forward_pre_hook(self._before, with_kwargs=True),
            parts.body.register_forward_hook(self._after, with_kwargs=True),
            parts.own.register_forward_pre_hook(_ask_for_position_zero, with_kwargs=True),
            parts.own.register_forward_hook(_answer_nothing),
        ]

    def remove(self) -> None:
        """Take the hooks out."""
        for hook in self.hooks:
            hook.remove()

    def _before(self, body: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """Add the scheme's vectors to the embeddings, and send the positions along to every attention."""
        _check_attention(body)
        kwargs = dict(zip(self.names, args, strict=False)) | kwargs
        embeds = _embeddings(body, kwargs)
        if embeds is None:
            return (), kwargs  # the model has a message for that
        positions, of_keys = self._positions(body, kwargs, embeds)
        call = Call(*_shared(positions, of_keys), _wants_weights(body, kwargs))
        return (), kwargs | {
            "input_ids": None,
            "inputs_embeds": self.scheme.add(embeds, call.positions),
            "position_ids": torch.zeros_like(positions) if self.family.has_token_types else positions,
            "posembed_call": call,
        }

    def _after(self, body: Any, args: tuple, kwargs: dict[str, Any], output: Any) -> None:
        """Tell a cache that the model has just made the positions of its keys."""
        if kwargs.get("past_key_values") is not None or "posembed_call" not in kwargs:
            return
        for made in output if isinstance(output, tuple) else output.values():
            cache = self_attention_cache(made)
            if isinstance(cache, Cache) and cache.get_seq_length():
                positions = kwargs["posembed_call"].positions.expand(kwargs["inputs_embeds"].shape[:2])
                key_positions(cache, positions, self.n_layers, filled=True)

    def _positions(
        self, body: Any, kwargs: dict[str, Any], embeds: Tensor
    ) -> tuple[Int[Tensor, "#batch seq"], Int[Tensor, "#batch key"]]:
        """Return the positions of the tokens, as given or else counted, and those of all keys."""
        cache, positions = self_attention_cache(kwargs.get("past_key_values")), kwargs.get("position_ids")
        if positions is None:
            past = 0 if cache is None else cache.get_seq_length()
            positions = self.family.count(kwargs, body.config.pad_token_id, embeds.shape[1], past, embeds.device)
        if cache is None:
            return positions, positions
        stored = key_positions(cache, positions.expand(embeds.shape[:2]), self.n_layers)
        return positions, positions if stored.shape[1] == positions.shape[1] else stored


def _check_attention(body: Any) -> None:
    if body.config._attn_implementation != NAME:
        raise ModelInputError("the model's attention was changed under its scheme; remove the scheme before that")


def _embeddings(body: Any, kwargs: dict[str, Any]) -> Float[Tensor, "batch seq d_model"] | None:
    ids, embeds = kwargs.get("input_ids"), kwargs.get("inputs_embeds")
    if (ids is None) == (embeds is None):
        return None
    embeds = body.get_input_embeddings()(ids) if embeds is None else embeds
    if embeds.ndim != 3:
        raise ModelInputError(f"the embeddings have shape {tuple(embeds.shape)}; a scheme needs (batch, seq, d_model)")
    return embeds


def _shared(positions: Tensor, of_keys: Tensor) -> tuple[Tensor, Tensor]:
    """Drop the batch axis where all texts have the same positions: the bias then needs none. Else both have it."""
    if len(positions) == len(of_keys) == 1:
        return positions[0], of_keys[0]
    batch = max(len(positions), len(of_keys))
    return positions.expand(batch, -1), of_keys.expand(batch, -1)


def _wants_weights(body: Any, kwargs: dict[str, Any]) -> bool:
    asked = kwargs.get("output_attentions")
    return bool(body.config.output_attentions if asked is None else asked)


def _ask_for_position_zero(own: nn.Module, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Keep far positions from a table that has no row for them, and from angles that would adapt to them."""
    return tuple(map(_zero, args)), {name: _zero(value) for name, value in kwargs.items()}


def _zero(value: Any) -> Any:
    return torch.zeros_like(value) if isinstance(value, Tensor) and not value.is_floating_point() else value


def _answer_nothing(own: nn.Module, args: tuple, output: Any) -> Any:
    if isinstance(output, tuple):  # cosine and sine of no rotation
        return torch.ones_like(output[0]), torch.zeros_like(output[1])
    return torch.zeros_like(output)
