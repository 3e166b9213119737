"""Making a bias of offsets: one number a diagonal, against matrices of queries and keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from transformers import T5Config
from transformers.models.bloom import modeling_bloom as bloom
from transformers.models.mpt import modeling_mpt as mpt
from transformers.models.t5 import modeling_t5 as t5
from x_transformers import x_transformers

from posembed import scheme

from . import references
from .case import Candidate, Case, Goal, without_gradient
from .goals import faster_than, less_memory_than

N_HEADS = 8
LENGTH, QUICK_LENGTH = 2048, 48
# A product in float32.
ROUNDED = 2e-7
# Differences between numbers of each row, for a bias of keys alone.
SHIFTED = 1e-6


@dataclass(frozen=True)
class Given:
    """How many tokens, and T5's weight, "buckets heads"."""

    length: int
    weight: Tensor


def cases(quick: bool) -> list[Case]:
    """T5 and ALiBi, each causal and bidirectional where peers have it."""
    length = QUICK_LENGTH if quick else LENGTH
    made = partial(_given, length)
    return [
        Case("bias", f"t5, causal, {length}", made, _t5(True), partial(_t5_reference, causal=True), ROUNDED, _goals()),
        Case("bias", f"t5, bidirectional, {length}", made, _t5(False), partial(_t5_reference, causal=False), ROUNDED,
             _goals()),
        Case("bias", f"alibi, causal, {length}", made, _alibi_causal(), _alibi_causal_reference, ROUNDED, _goals()),
        Case("bias", f"alibi, bidirectional, {length}", made, _alibi(), _alibi_reference, ROUNDED),
    ]  # fmt: skip


def _goals() -> list[Goal]:
    return [faster_than("transformers", 100), less_memory_than("transformers", 100)]


def _given(length: int) -> Given:
    return Given(length, torch.randn(32, N_HEADS, generator=torch.Generator().manual_seed(0)))


def _t5_reference(given: Given, *, causal: bool) -> Tensor:
    return _seen(references.t5(given.weight.double(), references.offsets(given.length), causal), causal)


def _alibi_reference(given: Given) -> Tensor:
    return references.alibi(N_HEADS, references.offsets(given.length))


def _alibi_causal_reference(given: Given) -> Tensor:
    return _seen(_alibi_reference(given), True)


def _seen(matrix: Tensor, causal: bool) -> Tensor:
    """What a causal model sees of a bias; the rest is zero in all answers."""
    return matrix.tril() if causal else matrix


def _as_matrix(by_offset: Tensor, causal: bool) -> Tensor:
    """The matrix that the numbers of all diagonals stand for."""
    length = (by_offset.shape[1] + 1) // 2
    return _seen(by_offset[:, references.offsets(length) + length - 1], causal)


def _posembed(name: str, causal: bool, given: Given) -> Callable[[], Tensor]:
    one = scheme(name, n_heads=N_HEADS, causal=causal)
    if name == "t5":
        one.weight = nn.Parameter(given.weight.clone())
    return without_gradient(lambda: one.bias_by_offset(torch.arange(1 - given.length, given.length)))


def _ours(name: str, causal: bool) -> Candidate:
    note = f"{N_HEADS} x {'(2 x length - 1)'} numbers; attention reads them as a matrix"
    return Candidate("posembed", partial(_posembed, name, causal), note, partial(_as_matrix, causal=causal))


def _t5(causal: bool) -> list[Candidate]:
    answer = partial(_seen, causal=causal)
    return [
        _ours("t5", causal),
        Candidate("transformers T5Attention.compute_bias", partial(_t5_transformers, causal), "", answer),
        Candidate("x-transformers RelativePositionBias", partial(_t5_x_transformers, causal), "", answer),
    ]


def _t5_transformers(causal: bool, given: Given) -> Callable[[], Tensor]:
    module = t5.T5Attention(
        T5Config(num_heads=N_HEADS, is_decoder=causal), has_relative_attention_bias=True, layer_idx=0
    )
    module.relative_attention_bias.weight = nn.Parameter(given.weight.clone())
    return without_gradient(lambda: module.compute_bias(given.length, given.length)[0])


def _t5_x_transformers(causal: bool, given: Given) -> Callable[[], Tensor]:
    module = x_transformers.RelativePositionBias(1.0, causal, heads=N_HEADS)
    module.relative_attention_bias.weight = nn.Parameter(given.weight.clone())
    return without_gradient(lambda: module(given.length, given.length))


def _alibi_causal() -> list[Candidate]:
    keys = "one number a head and key: ALiBi up to a constant in each row, in causal models only; not counted"
    added = "what its scores get: the numbers of the keys and its causal mask, as one matrix"
    seen = partial(_seen, causal=True)
    return [
        _ours("alibi", True),
        Candidate("transformers bloom, added to the scores", _bloom_added, added, _without_constants, bound=SHIFTED),
        Candidate("transformers bloom, build_alibi_tensor", _bloom, keys, _of_keys, bound=SHIFTED, counts=False),
        Candidate("transformers mpt, build_mpt_alibi_tensor", _mpt, keys, _of_keys, bound=SHIFTED, counts=False),
        Candidate("x-transformers AlibiPositionalBias", _alibi_x_transformers, "made anew at each call", seen),
    ]


def _alibi() -> list[Candidate]:
    return [
        _ours("alibi", False),
        Candidate("x-transformers AlibiPositionalBias", _alibi_x_transformers, "made anew at each call"),
    ]


def _bloom(given: Given) -> Callable[[], Tensor]:
    mask = torch.ones(1, given.length)
    return lambda: bloom.build_alibi_tensor(mask, N_HEADS, torch.float32)


def _bloom_added(given: Given) -> Callable[[], Tensor]:
    """Bloom adds the two one after the other to the scores of all queries and keys."""
    keys = _bloom(given)

    def call():
        shape = (given.length, given.length)
        mask = torch.full(shape, torch.finfo(torch.float32).min).triu_(1)
        return keys() + mask

    return call


def _mpt(given: Given) -> Callable[[], Tensor]:
    return lambda: mpt.build_mpt_alibi_tensor(N_HEADS, given.length)


def _of_keys(keys: Tensor) -> Tensor:
    return _without_constants(keys.expand(-1, keys.shape[-1], -1))


def _without_constants(matrix: Tensor) -> Tensor:
    """A bias up to a constant in each row, as the one that is zero for the query's own key."""
    return _seen(matrix - matrix.diagonal(dim1=-2, dim2=-1)[..., None], True)


def _alibi_x_transformers(given: Given) -> Callable[[], Tensor]:
    module = x_transformers.AlibiPositionalBias(N_HEADS)

    def call():
        module.bias = None
        return module(given.length, given.length)

    return call
