"""Attention a block of queries at a time, and the biases of a block.

Where a scheme knows of offsets alone and positions are contiguous, its bias is one number a diagonal.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ..encodings.interface import PositionScheme
from ..encodings.positions import compute_dtype, known
from ..errors import ModelInputError
from .masks import AttentionMask

# Queries in a block.
ROWS = 256


class Bias:
    """What is added to the logits of a block of queries; by itself nothing.

    Attributes:
        flipped: whether the queries of a block run backwards, last query first.
        made_again: whether the biases of several blocks are made again for the gradient, and not kept.
        causal: whether the bias is minus infinity for keys ahead.
    """

    flipped = False
    made_again = False
    causal = False

    def block(self, start: int, stop: int) -> Tensor | None:
        """Return the bias of the queries from start to stop and the keys that they may see, "#batch heads ..."."""
        return None


class SchemeBias(Bias):
    """Any scheme's bias, made for the queries and keys of a block."""

    def __init__(
        self,
        scheme: PositionScheme,
        q: Tensor,
        k: Tensor,
        positions: Tensor,
        key_positions: Tensor,
        mask: AttentionMask,
        gates: Tensor | None = None,
    ):
        self.scheme, self.q, self.k, self.mask, self.gates = scheme, q, k, mask, gates
        self.positions, self.key_positions = positions, key_positions
        self.made_again = torch.is_grad_enabled()

    def block(self, start: int, stop: int) -> Tensor | None:
        """Ask the scheme for this part of its bias."""
        n_keys = self.mask.n_visible_keys(stop)
        axis = -1 if self.scheme.n_axes is None else -2
        extra = {} if self.gates is None else {"gates": self.gates.narrow(-1, 0, n_keys)}
        if self.scheme.reads_mask:
            visible = self.mask.block(start, stop)
            extra["visible"] = self.q.new_ones(1, n_keys, dtype=torch.bool) if visible is None else visible
        bias = self.scheme.bias(
            self.q.narrow(2, start, stop - start),
            self.k.narrow(2, 0, n_keys),
            self.positions.narrow(axis, start, stop - start),
            self.key_positions.narrow(axis, 0, n_keys),
            **extra,
        )
        if bias is None:
            return None
        _check_bias(self.scheme, bias, self.q, stop - start, n_keys)
        bias = bias.to(compute_dtype(self.q))
        return bias if bias.ndim == 4 else bias[None]


def bias_of_offsets(
    scheme: PositionScheme, q: Tensor, positions: Tensor, key_positions: Tensor, mask: AttentionMask
) -> Bias | None:
    """Return the bias where offsets are all that matters, in a causal model without those ahead; else None.

    A compiler, as on the meta device, has no positions yet to ask whether they are contiguous.
    """
    if type(scheme).bias_by_offset is PositionScheme.bias_by_offset or not known(positions):
        return None
    first = _first(positions)
    first_key = first if key_positions is positions else _first(key_positions)
    if first is None or first_key is None:
        return None
    lowest = first_key - (first + mask.n_queries - 1)
    n_offsets = mask.n_keys if mask.causal else mask.n_keys + mask.n_queries - 1
    diagonals = scheme.bias_by_offset(torch.arange(lowest, lowest + n_offsets, device=q.device))
    if diagonals is None:
        return None
    if diagonals.dtype == torch.bool or tuple(diagonals.shape) not in ((q.shape[1], n_offsets), (1, n_offsets)):
        raise ModelInputError(
            f"{type(scheme).__name__} gave a bias of shape {tuple(diagonals.shape)}, {diagonals.dtype}, but here it "
            f"must be numbers, {(q.shape[1], n_offsets)}: heads, offsets"
        )
    return DiagonalBias(diagonals.to(compute_dtype(q)), mask)


class DiagonalBias(Bias):
    """The bias of offsets, read as a matrix without making one.

    With the last query of a block first, the bias depends on the sum of the indices, and the matrix is a view of one
    row of numbers in which both axes step by one. Of a single block it is written out in order, which takes less time
    than to turn queries around and back.

    Args:
        diagonals: "heads offsets", from the last query's first key to the first query's last key, or in a causal model
            to the first query's own key; minus infinity then is put behind them, for the keys ahead.
        mask: how many queries and keys there are, and whether the model is causal.
    """

    def __init__(self, diagonals: Tensor, mask: AttentionMask):
        self.mask, self.causal, self.flipped = mask, mask.causal, mask.n_queries > ROWS
        self.made_again = diagonals.requires_grad and torch.is_grad_enabled()
        ahead, row = mask.n_queries - 1 if mask.causal else 0, diagonals.unsqueeze(0)
        self.row = torch.constant_pad_nd(row, (0, ahead), -torch.inf) if ahead else row.contiguous()
        self.whole = None if self.flipped else self.row.unfold(2, mask.n_keys, 1).flip(2)

    def block(self, start: int, stop: int) -> Tensor:
        """Cut the matrix of this block out of the diagonals."""
        if self.whole is not None:
            return self.whole
        n_keys = self.mask.n_visible_keys(stop)
        return self.row.narrow(2, self.mask.n_queries - stop, stop - start + n_keys - 1).unfold(2, n_keys, 1)


def _first(positions: Tensor) -> int | None:
    """The first of contiguous positions; None where they are not contiguous."""
    at = positions.tolist() if positions.ndim == 1 else []  # a list is compared sooner than a small tensor
    return at[0] if at and at == list(range(at[0], at[0] + len(at))) else None


def attend_in_blocks(
    q: Tensor, k: Tensor, v: Tensor, bias: Bias, mask: AttentionMask, scale: float | None, dropout: float
) -> Tensor:
    """Attend, with the keys ahead of a block left out where the model is causal; a compiler gets one block."""
    # Asked first: a length that is compared with another is no longer free in what is exported.
    if torch.compiler.is_compiling() or mask.n_queries <= ROWS:
        return _block(q, k, v, bias, mask, 0, mask.n_queries, scale, dropout)
    blocks = []
    for start in range(0, mask.n_queries, ROWS):
        stop = min(start + ROWS, mask.n_queries)
        n_keys = mask.n_visible_keys(stop)
        part = q[:, :, start:stop], k[:, :, :n_keys], v[:, :, :n_keys], bias, mask, start, stop, scale, dropout
        blocks.append(checkpoint(_block, *part, use_reentrant=False) if bias.made_again else _block(*part))
    return torch.cat(blocks, 2)


def _block(q, k, v, bias: Bias, mask: AttentionMask, start: int, stop: int, scale, dropout) -> Tensor:
    added = bias.block(start, stop)
    seen = mask.block(start, stop, causal=not bias.causal)
    if bias.flipped:
        q = q.flip(2)
        seen = seen if seen is None or seen.shape[-2] == 1 else seen.flip(-2)
    if added is not None and seen is not None:
        added = added.where(seen, -torch.inf)
    out = sdpa(q, k, v, seen if added is None else added, scale, dropout)
    return out.flip(2) if bias.flipped else out


def sdpa(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float | None, dropout: float, **how) -> Tensor:
    """Torch's attention, with queries grouped where there are fewer key heads."""
    if mask is not None and q.is_cuda and mask.dtype not in (torch.bool, q.dtype):
        # Its kernels there want one format; rounded to bfloat16, far keys would fall together.
        wide = mask.dtype
        return sdpa(q.to(wide), k.to(wide), v.to(wide), mask, scale, dropout, **how).to(q.dtype)
    grouped, narrower = q.shape[1] != k.shape[1], q.shape[-1] - v.shape[-1]
    if narrower > 0:  # its kernels that make no matrix of weights want one width
        return sdpa(q, k, F.pad(v, (0, narrower)), mask, scale, dropout, **how)[..., : v.shape[-1]]
    return F.scaled_dot_product_attention(q, k, v, mask, dropout_p=dropout, scale=scale, enable_gqa=grouped, **how)


def _check_bias(scheme: PositionScheme, bias: Tensor, q: Tensor, n_queries: int, n_keys: int) -> None:
    """Raise ModelInputError unless it is "heads query key", with or without a batch; one number may serve for several.

    Summed with logits of other sizes, it would give other logits in silence, and so would a mask, which torch's own
    attention takes in its place.
    """
    wanted = (q.shape[0], q.shape[1], n_queries, n_keys)[-bias.ndim :]
    fits = bias.ndim in (3, 4) and all(n in (m, 1) for n, m in zip(bias.shape, wanted, strict=True))
    if not fits or bias.dtype == torch.bool:
        raise ModelInputError(
            f"{type(scheme).__name__} gave a bias of shape {tuple(bias.shape)}, {bias.dtype}, but here it must be "
            f"numbers, {(q.shape[1], n_queries, n_keys)}: heads, queries, keys"
        )
