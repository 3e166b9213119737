"""Attention with any scheme's bias: one entry, and the leanest exact way for what is asked."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from ..encodings.interface import PositionScheme
from ..encodings.positions import check_positions, compute_dtype, offsets_between
from ..errors import EncodingInputError, ModelInputError
from ._blocks import Bias, attend_in_blocks
from ._diagonals import DiagonalBias
from ._flex import flex_attend
from .masks import AttentionMask


def attend(
    q: Float[Tensor, "batch heads query d_head"],
    k: Float[Tensor, "batch heads_kv key d_head"],
    v: Float[Tensor, "batch heads_kv key d_value"],
    *,
    causal: bool,
    scheme: PositionScheme | None = None,
    positions: Int[Tensor, "..."] | None = None,
    key_positions: Int[Tensor, "..."] | None = None,
    attention_mask: Any = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "batch heads query d_value"]:
    """Compute softmax(q k^T scale + bias) v with a position scheme's bias (Vaswani et al. 2017, equation 1).

    Queries and keys come rotated. The queries belong to the last keys, so a causal mask is right for a whole text, for
    one new token and for several behind a cache. A query that may see no key gets zeros.

    On the CPU queries are taken in blocks: where the bias depends on the offset alone and positions are contiguous, it
    is one number a diagonal and never a matrix; any other bias is made for one block at a time, and made again for the
    gradient. On a GPU a scheme with a `score_mod` goes through FlexAttention. Under torch.compile and torch.export the
    bias is one whole matrix, which the compiler may fuse.

    Args:
        q: queries.
        k: keys; with fewer heads than q, each serves several query heads.
        v: values.
        causal: whether a query sees only the keys up to its own.
        scheme: whose bias is added; None for none.
        positions: of the queries, "query" or "batch query".
        key_positions: of the keys, "key" or "batch key".
        attention_mask: True, or 1, where attention is allowed: "batch key", "batch query key" or
            "batch heads query key".
        scale: what products of queries and keys are multiplied by; by default 1 / sqrt(d_head).
        dropout: the share of attention weights to drop.

    Raises:
        ModelInputError: shapes, heads, masks or a bias that do not fit together.
        EncodingInputError: positions that are missing, of a wrong dtype or shape.

    Example:
        >>> import torch
        >>> from posembed import scheme
        >>> from posembed.models import attend
        >>> q = k = torch.zeros(1, 2, 3, 4)
        >>> v, at = torch.arange(3.0).expand(1, 2, 1, 3).mT, torch.arange(3)
        >>> attend(q, k, v, causal=True, scheme=scheme("nopos"))[0, 0, :, 0]  # means of the values so far
        tensor([0.0000, 0.5000, 1.0000])
        >>> nearer = attend(q, k, v, causal=True, scheme=scheme("alibi", n_heads=2), positions=at, key_positions=at)
        >>> bool((nearer[0, 0, 1:, 0] > torch.tensor([0.5, 1.0])).all())
        True
    """
    _check_shapes(q, k, v, dropout)
    mask = AttentionMask(q.shape[2], k.shape[2], causal=causal, given=attention_mask, device=q.device)
    _check_mask(mask, q)
    if scheme is None or not scheme.biased:
        return _without_bias(q, k, v, mask, scale, dropout)
    _check_positions(scheme, positions, key_positions, q, k)
    assert positions is not None and key_positions is not None
    if mask.n_queries == 0:
        return q.new_zeros(*q.shape[:3], v.shape[3])
    if torch.compiler.is_compiling():
        whole = _SchemeBias(scheme, q, k, positions, key_positions, mask).block(0, mask.n_queries)
        return _sdpa(q, k, v, _masked(whole, mask, q), scale, dropout)
    hook = scheme.score_mod() if q.is_cuda and not dropout else None
    if hook is not None:
        return flex_attend(q, k, v, hook, positions, key_positions, mask, scale)
    bias = _bias(scheme, q, k, positions, key_positions, mask)
    return attend_in_blocks(q, k, v, bias, mask, scale, dropout)


class _SchemeBias(Bias):
    """Any bias, made for the queries and keys of a block."""

    def __init__(self, scheme, q, k, positions, key_positions, mask):
        self.scheme, self.q, self.k, self.mask = scheme, q, k, mask
        self.positions, self.key_positions = positions, key_positions
        self.wants_gradient = torch.is_grad_enabled()

    def block(self, start: int, stop: int) -> Tensor | None:
        n_keys = self.mask.n_visible_keys(stop)
        axis = -1 if self.scheme.n_axes is None else -2
        extra = {"visible": self._visible(start, stop, n_keys)} if self.scheme.reads_mask else {}
        bias = self.scheme.bias(
            self.q[:, :, start:stop],
            self.k[:, :, :n_keys],
            self.positions.narrow(axis, start, stop - start),
            self.key_positions.narrow(axis, 0, n_keys),
            **extra,
        )
        if bias is None:
            return None
        _check_heads(bias.shape[-3], self.q)
        bias = bias.to(compute_dtype(self.q))
        return bias if bias.ndim == 4 else bias[None]

    def _visible(self, start: int, stop: int, n_keys: int) -> Tensor:
        visible = self.mask.block(start, stop)
        return visible if visible is not None else torch.ones(1, n_keys, dtype=torch.bool, device=self.q.device)


def _bias(scheme, q, k, positions, key_positions, mask) -> Bias:
    if _contiguous(positions) and _contiguous(key_positions):
        first = int(offsets_between(positions[-1:], key_positions[:1]))
        offsets = torch.arange(first, first + mask.n_queries + mask.n_keys - 1, device=q.device)
        diagonals = scheme.bias_by_offset(offsets)
        if diagonals is not None:
            _check_heads(diagonals.shape[0], q)
            return DiagonalBias(diagonals.to(compute_dtype(q)), mask)
    return _SchemeBias(scheme, q, k, positions, key_positions, mask)


def _contiguous(positions: Tensor) -> bool:
    return positions.ndim == 1 and len(positions) > 0 and bool((positions.long().diff() == 1).all())


def _without_bias(q, k, v, mask: AttentionMask, scale, dropout) -> Tensor:
    square, single = mask.n_queries == mask.n_keys, mask.n_queries == 1
    if mask.given is None and (not mask.causal or square or single):
        return _sdpa(q, k, v, None, scale, dropout, causal=mask.causal and not single)
    if torch.compiler.is_compiling() or q.is_cuda:
        return _sdpa(q, k, v, mask.block(0, mask.n_queries), scale, dropout)
    return attend_in_blocks(q, k, v, Bias(), mask, scale, dropout)


def _masked(bias: Tensor | None, mask: AttentionMask, q: Tensor) -> Tensor | None:
    seen = mask.block(0, mask.n_queries)
    if bias is None:
        return seen
    bias = bias.to(q.dtype)
    return bias if seen is None else bias.masked_fill(~seen, -torch.inf)


def _sdpa(q, k, v, mask, scale, dropout, *, causal=False) -> Tensor:
    grouped = q.shape[1] != k.shape[1]
    return F.scaled_dot_product_attention(
        q, k, v, mask, dropout_p=dropout, is_causal=causal, scale=scale, enable_gqa=grouped
    )


def _check_shapes(q: Any, k: Any, v: Any, dropout: float) -> None:
    if any(not isinstance(each, Tensor) or each.ndim != 4 for each in (q, k, v)):
        raise ModelInputError("q, k and v must be tensors of shape (batch, heads, seq, d_head)")
    if q.shape[3] != k.shape[3]:
        raise ModelInputError(f"queries are {q.shape[3]} wide and keys {k.shape[3]}; they must agree")
    if k.shape[2] != v.shape[2] or k.shape[1] != v.shape[1]:
        raise ModelInputError(
            f"{k.shape[2]} keys and {v.shape[2]} values, of {k.shape[1]} and {v.shape[1]} heads; they must agree"
        )
    if not q.shape[0] == k.shape[0] == v.shape[0]:
        raise ModelInputError(f"q, k and v have a batch of {q.shape[0]}, {k.shape[0]} and {v.shape[0]}; make them one")
    if q.shape[1] % k.shape[1]:
        raise ModelInputError(f"{q.shape[1]} query heads cannot share {k.shape[1]} key heads; choose a divisor")
    if not 0 <= dropout < 1:
        raise ModelInputError(f"dropout is {dropout!r}; it must be at least 0 and below 1")


def _check_mask(mask: AttentionMask, q: Tensor) -> None:
    if mask.given is not None and (
        mask.given.shape[0] not in (1, q.shape[0]) or mask.given.shape[1] not in (1, q.shape[1])
    ):
        raise ModelInputError(
            f"attention_mask is for a batch of {mask.given.shape[0]} and {mask.given.shape[1]} heads, but q has "
            f"{q.shape[0]} and {q.shape[1]}; they must agree"
        )


def _check_positions(scheme: PositionScheme, positions: Any, key_positions: Any, q: Tensor, k: Tensor) -> None:
    if positions is None or key_positions is None:
        raise EncodingInputError(f"{type(scheme).__name__} has a bias; pass positions and key_positions")
    check_positions(positions, q, n_axes=scheme.n_axes)
    check_positions(key_positions, k, n_axes=scheme.n_axes, name="key_positions")


def _check_heads(n_heads: int, q: Tensor) -> None:
    if n_heads not in (1, q.shape[1]):
        raise ModelInputError(
            f"the scheme has a bias of {n_heads} heads, but there are {q.shape[1]} query heads; make it for as many"
        )
