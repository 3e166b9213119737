"""Turning queries and keys, with the angles computed in the call."""

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

from .case import Candidate, Case, with_gradient, without_gradient
from .goals import no_slower

SHAPE, QUICK_SHAPE = (2, 8, 2048, 64), (1, 2, 32, 8)
# Angles up to a position of 2048, rounded to float32.
FLOAT32 = 1e-3
# A product and a sum in float32.
ROUNDED = 5e-7
# What a candidate does at a call: queries and keys turned.
Turn = Callable[[], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Given:
    """Queries and keys, "batch heads seq d_head", and the gradients that come for them."""

    q: Tensor
    k: Tensor
    upstream: tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Way:
    """How a library turns queries and keys.

    Attributes:
        name: of the candidate.
        turn: from queries, keys and positions to the call.
        note: as in the candidate.
        bound: as in the candidate.
        tokens_first: whether it wants "batch seq heads d_head".
    """

    name: str
    turn: Callable[[Tensor, Tensor, Tensor], Turn]
    note: str = ""
    bound: float = FLOAT32
    tokens_first: bool = False


def cases(quick: bool) -> list[Case]:
    """Both layouts, forward alone and with the backward pass."""
    shape = QUICK_SHAPE if quick else SHAPE
    return [_case(shape, *each) for each in itertools.product(("half", "interleaved"), (False, True))]


def _case(shape: tuple[int, ...], layout: str, training: bool) -> Case:
    return Case(
        "rope",
        f"{layout}, {'forward+backward' if training else 'forward'}",
        partial(_given, shape),
        [_candidate(each, training) for each in _ways(layout)],
        partial(_reference, layout=layout, training=training),
        FLOAT32,
        [no_slower],
    )


def _given(shape: tuple[int, ...]) -> Given:
    generator = torch.Generator().manual_seed(0)
    q, k, for_q, for_k = (torch.randn(shape, generator=generator) for _ in range(4))
    return Given(q, k, (for_q, for_k))


def rotated(x: Tensor, positions: Tensor, layout: str = "half") -> Tensor:
    """RoPE in float64 by the formula: the pairs of x, "... seq d_head", turned by the angles of their positions."""
    x, width = x.double(), x.shape[-1]
    angles = positions.double()[:, None] * 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    cos, sin = angles.cos(), angles.sin()
    first, second = x.chunk(2, -1) if layout == "half" else x.unflatten(-1, (-1, 2)).unbind(-1)
    turned = first * cos - second * sin, second * cos + first * sin
    return torch.cat(turned, -1) if layout == "half" else torch.stack(turned, -1).flatten(-2)


def _reference(given: Given, *, layout: str, training: bool) -> tuple[Tensor, ...]:
    positions = torch.arange(given.q.shape[-2])
    turned = tuple(rotated(each, positions, layout) for each in (given.q, given.k))
    # A rotation's gradient is the opposite rotation.
    back = tuple(rotated(each, -positions, layout) for each in given.upstream)
    return turned + back if training else turned


def _ways(layout: str) -> list[Way]:
    """The candidates of a layout."""
    ours = Way("posembed", partial(_posembed, layout), "angles in float64", ROUNDED)
    if layout == "half":
        return [ours, Way("transformers llama", _llama)]
    gathers = "gathers from its table and puts tokens before heads, as in the model"
    return [
        ours,
        Way("transformers gptj", _gptj, gathers, tokens_first=True),
        Way("x-transformers", _x_transformers),
        Way("rotary-embedding-torch", _rotary_torch),
    ]


def _candidate(way: Way, training: bool) -> Candidate:
    form = _tokens_first if way.tokens_first else lambda x: x

    def make(given: Given) -> Callable[[], Any]:
        q, k = (form(each).detach().requires_grad_(training) for each in (given.q, given.k))
        turn = way.turn(q, k, torch.arange(given.q.shape[-2]))
        if not training:
            return without_gradient(turn)
        return with_gradient(turn, (q, k), [form(each) for each in given.upstream])

    return Candidate(way.name, make, way.note, lambda turned: tuple(form(each) for each in turned), bound=way.bound)


def _tokens_first(x: Tensor) -> Tensor:
    """There and back again."""
    return x.transpose(1, 2).contiguous()


def _posembed(layout: str, q: Tensor, k: Tensor, positions: Tensor) -> Turn:
    scheme = RoPE(q.shape[-1], layout=layout)
    return lambda: (scheme.rotate(q, positions), scheme.rotate_keys(k, positions))


def _llama(q: Tensor, k: Tensor, positions: Tensor) -> Turn:
    parameters = {"rope_type": "default", "rope_theta": 10000.0}
    config = LlamaConfig(
        hidden_size=q.shape[-1], num_attention_heads=1, head_dim=q.shape[-1], rope_parameters=parameters
    )
    angles = llama.LlamaRotaryEmbedding(config)
    return lambda: llama.apply_rotary_pos_emb(q, k, *angles(q, positions[None]))


def _gptj(q: Tensor, k: Tensor, positions: Tensor) -> Turn:
    """As in GPTJAttention: the table repeated for the batch, its rows gathered, then queries and keys turned."""
    table = gptj.create_sinusoidal_positions(2 * q.shape[1], q.shape[-1])

    def turn():
        at, rows = positions[None].expand(q.shape[0], -1), table.repeat(q.shape[0], 1, 1)
        sin, cos = torch.gather(rows, 1, at.unsqueeze(-1).repeat(1, 1, rows.shape[-1])).chunk(2, -1)
        return gptj.apply_rotary_pos_emb(q, sin, cos), gptj.apply_rotary_pos_emb(k, sin, cos)

    return turn


def _x_transformers(q: Tensor, k: Tensor, positions: Tensor) -> Turn:
    angles = x_transformers.RotaryEmbedding(q.shape[-1])

    def turn():
        found, scale = angles(positions)
        return tuple(x_transformers.apply_rotary_pos_emb(each, found, scale) for each in (q, k))

    return turn


def _rotary_torch(q: Tensor, k: Tensor, positions: Tensor) -> Turn:
    module = RotaryEmbedding(q.shape[-1])

    def turn():
        angles = module(positions)
        return apply_rotary_emb(angles, q), apply_rotary_emb(angles, k)

    return turn
