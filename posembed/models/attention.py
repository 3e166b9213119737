"""Attention with any scheme's bias: one entry, and the leanest exact way for what is asked."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..encodings.interface import PositionScheme, check_scheme
from ..encodings.positions import check_pair
from ..errors import EncodingInputError, ModelInputError, shown
from .blockwise_attention import Bias, SchemeBias, attend_in_blocks, bias_of_offsets, sdpa
from .flex import flex_attend
from .masks import AttentionMask, in_order


def rotated(
    scheme: PositionScheme, q: Tensor, k: Tensor, positions: Int[Tensor, "..."], key_positions: Int[Tensor, "..."]
) -> tuple[Tensor, Tensor]:
    """Turn queries and keys as a scheme does."""
    turned = scheme.rotate(q, positions), scheme.rotate_keys(k, key_positions)
    widens = scheme.widens
    return _alike(scheme, "rotate", q, turned[0], widens), _alike(scheme, "rotate_keys", k, turned[1], widens)


def added(scheme: PositionScheme, x: Tensor, positions: Int[Tensor, "..."]) -> Tensor:
    """Add to embeddings what a scheme adds."""
    return _alike(scheme, "add", x, scheme.add(x, positions))


def _alike(scheme: PositionScheme, name: str, given: Tensor, made: Any, widens: int = 1) -> Tensor:
    """What a scheme, perhaps one of a user's own, has made; it has to be of the shape and dtype of what was given."""
    wanted = (*given.shape[:-1], given.shape[-1] * widens)
    if not isinstance(made, Tensor) or made.shape != wanted or made.dtype != given.dtype:
        what = f"{tuple(made.shape)}, {made.dtype}," if isinstance(made, Tensor) else f"a {type(made).__name__}"
        raise EncodingInputError(
            f"{type(scheme).__name__}.{name} makes {what} of {tuple(given.shape)}, {given.dtype}; it must keep both"
            + (f", but {widens} times as wide" if widens > 1 else "")
        )
    return made


def attend(
    q: Float[Tensor, "batch heads query d_head"],
    k: Float[Tensor, "batch heads_kv key d_head"],
    v: Float[Tensor, "batch heads_kv key d_value"],
    *,
    causal: bool | Literal["positions"],
    scheme: PositionScheme | None = None,
    positions: Int[Tensor, "..."] | None = None,
    key_positions: Int[Tensor, "..."] | None = None,
    gates: Float[Tensor, "batch heads key"] | None = None,
    attention_mask: Any = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "batch heads query d_value"]:
    """Compute softmax(q k^T scale + bias) v with a position scheme's bias (Vaswani et al. 2017, equation 1).

    Queries and keys come rotated. The queries belong to the last keys, so a causal mask is right for a whole text, for
    one new token and for several behind a cache. A query that may see no key gets zeros.

    Queries are taken in blocks: where the bias depends on the offset alone and positions are contiguous, it is one
    number a diagonal and never a matrix; any other bias is made for one block at a time, and made again for the
    gradient. On a GPU a scheme with a `score_mod` goes through FlexAttention. A compiler gets one block, which it may
    fuse: ``torch.compile(fullgraph=True)``, ``torch.export`` and, inside ``torch.no_grad()``,
    ``torch.onnx.export(dynamo=True)`` keep the length free. ``torch.jit.trace`` would fix it, and is refused.

    Args:
        q: queries.
        k: keys; with fewer heads than q, each serves several query heads.
        v: values.
        causal: whether a query sees only the keys up to its own; "positions" where tokens do not stand in the order of
            their positions, as in context parallelism: it then sees the keys at positions up to its own, wherever they
            stand, and the queries need not be the last of the keys. That takes a whole mask.
        scheme: whose bias is added; None for none.
        positions: of the queries, "query" or "batch query".
        key_positions: of the keys, "key" or "batch key".
        gates: what the scheme has read of the tokens of all keys, ``scheme.gates(x)``, where it reads any.
        attention_mask: True, or 1, where attention is allowed: "batch key", "batch query key" or
            "batch heads query key".
        scale: what products of queries and keys are multiplied by; by default 1 / sqrt(d_head), of heads as they were
            before the scheme widened them.
        dropout: the share of attention weights to drop.

    Raises:
        ModelInputError: shapes, heads, masks or a bias that do not fit together; a scale that is 0 or not finite; a
            call that torch.jit.trace records.
        EncodingInputError: what is no scheme; positions that are missing, of a wrong dtype or shape.

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
    if torch.jit.is_tracing():
        raise ModelInputError(
            "torch.jit.trace fixes the length that it sees; use torch.export, or torch.onnx.export with dynamo=True "
            "and dynamic_shapes=, inside torch.no_grad()"
        )
    _check_shapes(q, k, v)
    if causal == "positions":
        if positions is None or key_positions is None:
            raise EncodingInputError("causality follows positions; pass positions and key_positions")
        check_pair(q, k, positions, key_positions)
        mask = AttentionMask(q.shape[2], k.shape[2], causal=False, given=attention_mask, device=q.device)
        k, v, key_positions, gates, attention_mask = in_order(k, v, positions, key_positions, gates, mask.given)
        causal = False
    if scale is not None and not (scale and math.isfinite(scale)):
        raise ModelInputError(f"scale is {shown(scale)}; give a finite number that is not 0, or None")
    mask = AttentionMask(q.shape[2], k.shape[2], causal=causal, given=attention_mask, device=q.device)
    if mask.given is not None:
        _check_mask(mask.given, q)
    if scheme is not None:
        check_scheme(scheme)
    if scheme is not None and scheme.widens > 1 and scale is None:
        scale = (q.shape[-1] // scheme.widens) ** -0.5
    if scheme is None or not scheme.biased:
        square, single = mask.n_queries == mask.n_keys, mask.n_queries == 1
        if mask.given is None and (not causal or square or single):
            return sdpa(q, k, v, None, scale, dropout, is_causal=causal and not single)
        return attend_in_blocks(q, k, v, Bias(), mask, scale, dropout)
    if positions is None or key_positions is None:
        raise EncodingInputError(f"{type(scheme).__name__} has a bias; pass positions and key_positions")
    check_pair(q, k, positions, key_positions, n_axes=scheme.n_axes)
    if gates is not None and gates.shape[-1] != mask.n_keys:
        raise ModelInputError(f"there are gates of {gates.shape[-1]} tokens and {mask.n_keys} keys; give those of all")
    if mask.n_queries == 0:
        return q.new_zeros(*q.shape[:3], v.shape[3])
    hook = scheme.score_mod() if q.is_cuda and not dropout and not torch.compiler.is_compiling() else None
    if hook is not None:
        return flex_attend(q, k, v, hook, positions, key_positions, mask, scale)
    bias = bias_of_offsets(scheme, q, positions, key_positions, mask)
    if bias is None:
        bias = SchemeBias(scheme, q, k, positions, key_positions, mask, gates)
    return attend_in_blocks(q, k, v, bias, mask, scale, dropout)


def _check_shapes(q: Tensor, k: Tensor, v: Tensor) -> None:
    """What torch would read otherwise than it is meant, or name in its own words of many lines."""
    one_batch = q.ndim == k.ndim == v.ndim == 4 and k.shape[:3] == v.shape[:3] and q.shape[::3] == k.shape[::3]
    if not one_batch or q.shape[1] % k.shape[1]:
        shapes = ", ".join(str(tuple(each.shape)) for each in (q, k, v))
        raise ModelInputError(
            f"q, k and v have shapes {shapes}; give (batch, heads, seq, d_head), of one batch and width, with a value "
            "for each key, and query heads that share those of keys equally"
        )


def _check_mask(given: Tensor, q: Tensor) -> None:
    if given.shape[0] not in (1, q.shape[0]) or given.shape[1] not in (1, q.shape[1]):
        raise ModelInputError(
            f"attention_mask is for a batch of {given.shape[0]} and {given.shape[1]} heads, but q has {q.shape[0]} and "
            f"{q.shape[1]}; they must agree"
        )
