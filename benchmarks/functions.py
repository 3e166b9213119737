"""The bare function of queries, keys and values: posembed's, PyTorch's with a matrix, FlexAttention compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from posembed import PositionScheme, scheme
from posembed.models import attend

from . import references
from .case import SkippedError
from .setting import Function, Setting

Call = Callable[[], Tensor]


def candidates(setting: Setting) -> list[tuple[str, Callable[[Setting, Function], Call], str]]:
    """The candidates of a setting: name, what makes the call, note."""
    flex = [("torch FlexAttention, compiled", _flex, "compiled beforehand; its mask of blocks at hand")]
    return [("posembed attend", _posembed, ""), *_plain(setting), *([] if setting.training else flex)]


def _plain(setting: Setting) -> list[tuple[str, Callable[[Setting, Function], Call], str]]:
    if setting.scheme == "shaw":
        return [("torch SDPA, bias gathered", _gathered, "a query's products with all offsets, then gathered")]
    if setting.scheme == "t5" and setting.training:
        return [("torch SDPA, bias looked up", _looked_up, "its matrix of buckets is at hand")]
    return [("torch SDPA, bias at hand", _at_hand, "as in a later layer: the matrix is kept")]


def formula(setting: Setting, given: Function) -> Tensor:
    """The formula, in the format of what is given."""
    return references.attention(setting.scheme, given.q, given.k, given.v, given.table, setting.causal)


def made_scheme(setting: Setting, table: Tensor | None) -> PositionScheme:
    """Make posembed's scheme with a table; a parameter stays the same parameter."""
    one = scheme(setting.scheme, d_model=setting.d_model, n_heads=setting.n_heads, causal=setting.causal)
    if table is not None:
        one.weight = table if isinstance(table, nn.Parameter) else nn.Parameter(table)
    return one


def _posembed(setting: Setting, given: Function) -> Call:
    one, at = made_scheme(setting, given.table), torch.arange(setting.length)
    return partial(attend, given.q, given.k, given.v, causal=setting.causal, scheme=one, positions=at, key_positions=at)


def _at_hand(setting: Setting, given: Function) -> Call:
    with torch.no_grad():
        matrix = references.bias(setting.scheme, given.q, given.table, setting.causal, setting.length)
        matrix = _masked(matrix[None], _ahead(setting)).contiguous()
    return partial(F.scaled_dot_product_attention, given.q, given.k, given.v, matrix)


def _looked_up(setting: Setting, given: Function) -> Call:
    assert given.table is not None
    table, ahead = given.table, _ahead(setting)
    buckets = references.t5_buckets(references.offsets(setting.length), setting.causal)

    def call():
        matrix = F.embedding(buckets, table).permute(2, 0, 1)[None]
        return F.scaled_dot_product_attention(given.q, given.k, given.v, _masked(matrix, ahead))

    return call


def _gathered(setting: Setting, given: Function) -> Call:
    assert given.table is not None
    table, ahead, clip = given.table, _ahead(setting), len(given.table) // 2
    index = references.offsets(setting.length).clamp(-clip, clip) + clip

    def call():
        by_offset = given.q @ table.T / math.sqrt(setting.d_head)
        matrix = by_offset.gather(-1, index.expand(*by_offset.shape[:2], -1, -1))
        return F.scaled_dot_product_attention(given.q, given.k, given.v, _masked(matrix, ahead))

    return call


def _ahead(setting: Setting) -> Tensor | None:
    """True where a key is ahead of a query that may not see it."""
    return references.offsets(setting.length) > 0 if setting.causal else None


def _masked(matrix: Tensor, ahead: Tensor | None) -> Tensor:
    return matrix if ahead is None else matrix.masked_fill(ahead, -torch.inf)


def _flex(setting: Setting, given: Function) -> Call:
    if setting.quick:
        raise SkippedError("compiling takes longer than a quick run")
    blocks = _blocks(setting.length) if setting.causal else None
    hook = {"alibi": _flex_alibi, "t5": _flex_t5, "shaw": _flex_shaw}[setting.scheme](setting, given)
    return lambda: _compiled()(given.q, given.k, given.v, score_mod=hook(), block_mask=blocks)


@cache
def _compiled():
    # With sizes left open the compiler of torch 2.13 fails.
    return torch.compile(flex_attention, dynamic=False)


@cache
def _blocks(length: int):
    def sees(batch, head, query, key):
        return query >= key

    return create_block_mask(sees, None, None, length, length, device="cpu")


def _flex_alibi(setting: Setting, given: Function):
    slopes = references.alibi_slopes(setting.n_heads).float()

    def score_mod(score, batch, head, query, key):
        return score - slopes[head] * (key - query).abs()

    return lambda: score_mod


def _flex_t5(setting: Setting, given: Function):
    assert given.table is not None
    far = 128
    by_offset = references.t5(given.table.detach(), torch.arange(-far, far + 1), setting.causal).contiguous()

    def score_mod(score, batch, head, query, key):
        return score + by_offset[head, (key - query).clamp(-far, far) + far]

    return lambda: score_mod


def _flex_shaw(setting: Setting, given: Function):
    assert given.table is not None
    table, clip = given.table.detach(), len(given.table) // 2

    def hook():
        by_offset = given.q @ table.T / math.sqrt(setting.d_head)

        def score_mod(score, batch, head, query, key):
            return score + by_offset[batch, head, query, (key - query).clamp(-clip, clip) + clip]

        return score_mod

    return hook
