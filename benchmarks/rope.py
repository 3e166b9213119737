"""Turning queries and keys: with angles computed, as in a model's first layer, and with angles at hand, as later on."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb
from torch import Tensor
from transformers import LlamaConfig
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama import modeling_llama as llama
from x_transformers import x_transformers

from posembed.encodings import RoPE

from . import references
from .case import Candidate, Case, with_gradient, without_gradient
from .goals import faster_than

SHAPE, QUICK_SHAPE = (2, 8, 2048, 64), (1, 2, 32, 8)
# Angles up to a position of 4096, rounded to float32.
FLOAT32 = 1e-3
# A product and a sum in float32.
ROUNDED = 5e-7
# What a candidate does at a call: from the starts of its positions to queries and keys turned.
Turn = Callable[[], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Given:
    """Queries and keys, "batch heads seq d_head", and the gradients that come for them."""

    q: Tensor
    k: Tensor
    upstream: tuple[Tensor, Tensor]

    @property
    def length(self) -> int:
        """The number of tokens."""
        return self.q.shape[-2]


def cases(quick: bool) -> list[Case]:
    """Both layouts, angles computed and at hand, forward alone and with the backward pass."""
    shape = QUICK_SHAPE if quick else SHAPE
    return [
        _case(shape, layout, seen, training)
        for layout, seen, training in itertools.product(("half", "interleaved"), (False, True), (False, True))
    ]


def _case(shape: tuple[int, ...], layout: str, seen: bool, training: bool) -> Case:
    where = "angles at hand" if seen else "new positions"
    name = f"{layout}, {where}, {'forward+backward' if training else 'forward'}"
    rival = "transformers llama" if layout == "half" else "transformers gptj"
    return Case(
        "rope",
        name,
        partial(_given, shape),
        [_candidate(each, seen, training) for each in _ways(layout, seen)],
        partial(_reference, layout=layout, training=training),
        FLOAT32,
        [faster_than(rival, 5)],
    )


def _given(shape: tuple[int, ...]) -> Given:
    generator = torch.Generator().manual_seed(0)
    q, k, for_q, for_k = (torch.randn(shape, generator=generator) for _ in range(4))
    return Given(q, k, (for_q, for_k))


def _reference(given: Given, *, layout: str, training: bool) -> tuple[Tensor, ...]:
    positions = torch.arange(given.length)
    turned = tuple(references.rotated(each, positions, layout) for each in (given.q, given.k))
    # A rotation's gradient is the opposite rotation.
    back = tuple(references.rotated(each, -positions, layout) for each in given.upstream)
    return turned + back if training else turned


@dataclass(frozen=True)
class Way:
    """How a library turns queries and keys.

    Attributes:
        name: of the candidate.
        turn: from queries, keys, positions and whether those were seen before, to the call.
        note: as in the candidate.
        bound: as in the candidate.
        tokens_first: whether it wants "batch seq heads d_head".
    """

    name: str
    turn: Callable[[Tensor, Tensor, Callable[[], Tensor], bool], Turn]
    note: str = ""
    bound: float = FLOAT32
    tokens_first: bool = False


def _ways(layout: str, seen: bool) -> list[Way]:
    """The candidates of a layout."""
    ours = Way("posembed", partial(_posembed, layout), "angles in float64", ROUNDED)
    if layout == "half":
        return [ours, Way("transformers llama", _llama)]
    at_hand = "sines and cosines at hand" if seen else "gathers from its table, as in the model"
    sines = "keeps angles and takes sines at each call" if seen else ""
    return [
        ours,
        Way("transformers gptj", _gptj, f"{at_hand}; tokens before heads, as in the model", tokens_first=True),
        Way("x-transformers", _x_transformers, sines),
        Way("rotary-embedding-torch", _rotary_torch, sines),
    ]


def _candidate(way: Way, seen: bool, training: bool) -> Candidate:
    form = _tokens_first if way.tokens_first else _as_given

    def make(given: Given) -> Callable[[], Any]:
        q, k = (form(each).detach().requires_grad_(training) for each in (given.q, given.k))
        turn = way.turn(q, k, _starts(given.length, seen), seen)
        if not training:
            return without_gradient(turn)
        return with_gradient(turn, (q, k), [form(each) for each in given.upstream])

    return Candidate(way.name, make, way.note, lambda turned: tuple(form(each) for each in turned), bound=way.bound)


def _as_given(x: Tensor) -> Tensor:
    return x


def _tokens_first(x: Tensor) -> Tensor:
    """There and back again."""
    return x.transpose(1, 2).contiguous()


def _starts(length: int, seen: bool) -> Callable[[], Tensor]:
    """Positions from 0 on at every call, or at each call from one further, so that none were seen just before."""
    positions, starts = torch.arange(length), itertools.count()
    return (lambda: positions) if seen else (lambda: positions + next(starts) % length)


def _posembed(layout: str, q: Tensor, k: Tensor, positions: Callable[[], Tensor], seen: bool) -> Turn:
    scheme = RoPE(q.shape[-1], layout=layout)

    def turn():
        at = positions()
        return scheme.rotate(q, at), scheme.rotate_keys(k, at)

    if seen:
        without_gradient(turn)()
    return turn


def _llama(q: Tensor, k: Tensor, positions: Callable[[], Tensor], seen: bool) -> Turn:
    parameters = {"rope_type": "default", "rope_theta": 10000.0}
    config = LlamaConfig(
        hidden_size=q.shape[-1], num_attention_heads=1, head_dim=q.shape[-1], rope_parameters=parameters
    )
    angles = llama.LlamaRotaryEmbedding(config)
    at_hand = angles(q, positions()[None]) if seen else None

    def turn():
        return llama.apply_rotary_pos_emb(q, k, *(at_hand or angles(q, positions()[None])))

    return turn


def _gptj(q: Tensor, k: Tensor, positions: Callable[[], Tensor], seen: bool) -> Turn:
    """As in GPTJAttention: the table repeated for the batch, its rows gathered, then queries and keys turned."""
    table = gptj.create_sinusoidal_positions(2 * q.shape[1], q.shape[-1])

    def angles() -> tuple[Tensor, ...]:
        at = positions()[None].expand(q.shape[0], -1)
        rows = table.repeat(q.shape[0], 1, 1)
        return torch.gather(rows, 1, at.unsqueeze(-1).repeat(1, 1, rows.shape[-1])).chunk(2, -1)

    at_hand = angles() if seen else None

    def turn():
        sin, cos = at_hand or angles()
        return gptj.apply_rotary_pos_emb(q, sin, cos), gptj.apply_rotary_pos_emb(k, sin, cos)

    return turn


def _x_transformers(q: Tensor, k: Tensor, positions: Callable[[], Tensor], seen: bool) -> Turn:
    angles = x_transformers.RotaryEmbedding(q.shape[-1])
    at_hand = angles(positions()) if seen else None

    def turn():
        found, scale = at_hand or angles(positions())
        return tuple(x_transformers.apply_rotary_pos_emb(each, found, scale) for each in (q, k))

    return turn


def _rotary_torch(q: Tensor, k: Tensor, positions: Callable[[], Tensor], seen: bool) -> Turn:
    module = RotaryEmbedding(q.shape[-1])
    if seen:
        return lambda: (module.rotate_queries_or_keys(q), module.rotate_queries_or_keys(k))

    def turn():
        angles = module(positions())
        return apply_rotary_emb(angles, q), apply_rotary_emb(angles, k)

    return turn
