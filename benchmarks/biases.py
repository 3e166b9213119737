"""Making a bias of offsets: one number a diagonal, against matrices of queries and keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import peers
import torch
from torch import Tensor, nn
from transformers import T5Config
from transformers.models.bloom import modeling_bloom as bloom
from transformers.models.t5 import modeling_t5
from x_transformers import x_transformers

from posembed import PositionScheme, scheme

from .case import Candidate, Case, without_gradient

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
    kinds = {
        "t5, causal": (_t5(True), partial(_t5_reference, causal=True)),
        "t5, bidirectional": (_t5(False), partial(_t5_reference, causal=False)),
        "alibi, causal": (_alibi_causal(), _alibi_causal_reference),
        "alibi, bidirectional": (_alibi(), _alibi_reference),
    }
    return [
        Case("bias", f"{name}, {length}", partial(_given, length), candidates, reference, ROUNDED)
        for name, (candidates, reference) in kinds.items()
    ]


def _given(length: int) -> Given:
    return Given(length, torch.randn(32, N_HEADS, generator=torch.Generator().manual_seed(0)))


def offsets(length: int) -> Tensor:
    """Key position minus query position, "query key"."""
    return torch.arange(length) - torch.arange(length)[:, None]


def alibi(n_heads: int, at: Tensor) -> Tensor:
    """ALiBi's bias of offsets of any shape, "heads ...", in float64; a power of two of heads."""
    slopes = 2.0 ** (-8.0 * torch.arange(1, n_heads + 1, dtype=torch.float64) / n_heads)
    return -slopes.view(-1, *[1] * at.ndim) * at.abs()


def t5(weight: Tensor, at: Tensor, causal: bool) -> Tensor:
    """T5's bias of offsets of any shape, "heads ..."; weight is "buckets heads"."""
    return weight[peers.t5_buckets_transformers(at, not causal)].movedim(-1, 0)


def _t5_reference(given: Given, *, causal: bool) -> Tensor:
    return _seen(t5(given.weight.double(), offsets(given.length), causal), causal)


def _alibi_reference(given: Given) -> Tensor:
    return alibi(N_HEADS, offsets(given.length))


def _alibi_causal_reference(given: Given) -> Tensor:
    return _seen(_alibi_reference(given), True)


def _seen(matrix: Tensor, causal: bool) -> Tensor:
    """What a causal model sees of a bias; the rest is zero in all answers."""
    return matrix.tril() if causal else matrix


def _as_matrix(by_offset: Tensor, causal: bool) -> Tensor:
    """The matrix that the numbers of all diagonals stand for."""
    length = (by_offset.shape[1] + 1) // 2
    return _seen(by_offset[:, offsets(length) + length - 1], causal)


def _by_offset(name: str, causal: bool, given: Given) -> Callable[[], Tensor]:
    one = _scheme(name, causal, given)
    return without_gradient(lambda: one.bias_by_offset(torch.arange(1 - given.length, given.length)))


def _whole(name: str, causal: bool, given: Given) -> Callable[[], Tensor]:
    one, at = _scheme(name, causal, given), torch.arange(given.length)
    no_contents = torch.zeros(1, N_HEADS, given.length, 1)
    return without_gradient(lambda: one.bias(no_contents, no_contents, at, at))


def _scheme(name: str, causal: bool, given: Given) -> PositionScheme:
    one = scheme(name, n_heads=N_HEADS, causal=causal)
    if name == "t5":
        one.weight = nn.Parameter(given.weight.clone())
    return one


def _ours(name: str, causal: bool) -> list[Candidate]:
    note = f"{N_HEADS} x {'(2 x length - 1)'} numbers; attention reads them as a matrix"
    return [
        Candidate("posembed", partial(_by_offset, name, causal), note, partial(_as_matrix, causal=causal)),
        Candidate("posembed, as a matrix", partial(_whole, name, causal), "", partial(_seen, causal=causal)),
    ]


def _t5(causal: bool) -> list[Candidate]:
    answer = partial(_seen, causal=causal)
    return [
        *_ours("t5", causal),
        Candidate("transformers T5Attention.compute_bias", partial(_t5_transformers, causal), "", answer),
        Candidate("x-transformers RelativePositionBias", partial(_t5_x_transformers, causal), "", answer),
    ]


def _t5_transformers(causal: bool, given: Given) -> Callable[[], Tensor]:
    module = modeling_t5.T5Attention(
        T5Config(num_heads=N_HEADS, is_decoder=causal), has_relative_attention_bias=True, layer_idx=0
    )
    module.relative_attention_bias.weight = nn.Parameter(given.weight.clone())
    return without_gradient(lambda: module.compute_bias(given.length, given.length)[0])


def _t5_x_transformers(causal: bool, given: Given) -> Callable[[], Tensor]:
    module = x_transformers.RelativePositionBias(1.0, causal, heads=N_HEADS)
    module.relative_attention_bias.weight = nn.Parameter(given.weight.clone())
    return without_gradient(lambda: module(given.length, given.length))


def _alibi_causal() -> list[Candidate]:
    added = "what its scores get: one number a key, which is ALiBi up to a constant in each row, and its causal mask"
    return [
        *_ours("alibi", True),
        Candidate("transformers bloom, added to the scores", _bloom_added, added, _without_constants, bound=SHIFTED),
        Candidate(
            "x-transformers AlibiPositionalBias",
            _alibi_x_transformers,
            "made anew at each call",
            partial(_seen, causal=True),
        ),
    ]


def _alibi() -> list[Candidate]:
    return [
        *_ours("alibi", False),
        Candidate("x-transformers AlibiPositionalBias", _alibi_x_transformers, "made anew at each call"),
    ]


def _bloom_added(given: Given) -> Callable[[], Tensor]:
    """Bloom adds the two one after the other to the scores of all queries and keys."""
    sees_all = torch.ones(1, given.length)

    def call():
        mask = torch.full((given.length, given.length), torch.finfo(torch.float32).min).triu_(1)
        return bloom.build_alibi_tensor(sees_all, N_HEADS, torch.float32) + mask

    return call


def _without_constants(matrix: Tensor) -> Tensor:
    """A bias up to a constant in each row, as the one that is zero for the query's own key."""
    return _seen(matrix - matrix.diagonal(dim1=-2, dim2=-1)[..., None], True)


def _alibi_x_transformers(given: Given) -> Callable[[], Tensor]:
    module = x_transformers.AlibiPositionalBias(N_HEADS)

    def call():
        module.bias = None
        return module(given.length, given.length)

    return call
