"""Attention a block of queries at a time, and the biases of a block."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ..encodings.interface import PositionScheme
from ..encodings.positions import compute_dtype
from ..errors import ModelInputError
from .masks import AttentionMask

# Queries in a block.
ROWS = 256


class Bias:
    """What is added to the logits of a block of queries; by itself nothing.

    Attributes:
        flipped: whether the queries of a block run backwards, last query first.
        made_again: whether a block's bias is made again for the gradient, and not kept.
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
    ):
        self.scheme, self.q, self.k, self.mask = scheme, q, k, mask
        self.positions, self.key_positions = positions, key_positions
        self.made_again = torch.is_grad_enabled() and not torch.compiler.is_compiling()

    def block(self, start: int, stop: int) -> Tensor | None:
        """Ask the scheme for this part of its bias."""
        n_keys = self.mask.n_visible_keys(stop)
        axis = -1 if self.scheme.n_axes is None else -2
        bias = self.scheme.bias(
            self.q[:, :, start:stop],
            self.k[:, :, :n_keys],
            self.positions.narrow(axis, start, stop - start),
            self.key_positions.narrow(axis, 0, n_keys),
            **self._visible(start, stop, n_keys),
        )
        if bias is None:
            return None
        check_bias(self.scheme, bias, self.q, stop - start, n_keys)
        bias = bias.to(compute_dtype(self.q))
        return bias if bias.ndim == 4 else bias[None]

    def _visible(self, start: int, stop: int, n_keys: int) -> dict[str, Tensor]:
        if not self.scheme.reads_mask:
            return {}
        visible = self.mask.block(start, stop)
        return {"visible": self.q.new_ones(1, n_keys, dtype=torch.bool) if visible is None else visible}


class DiagonalBias(Bias):
    """The bias of offsets, read as a matrix without making one.

    With the last query of a block first, the bias depends on the sum of the indices, and the matrix is a view of one
    row of numbers in which both axes step by one.

    Args:
        diagonals: "heads offsets", from the last query's first key to the first query's last key.
        mask: of the call; causality becomes minus infinity for the keys ahead.
    """

    flipped = True

    def __init__(self, diagonals: Tensor, mask: AttentionMask):
        self.mask, self.causal = mask, mask.causal
        self.made_again = diagonals.requires_grad and torch.is_grad_enabled()
        if mask.causal:
            ahead = torch.arange(diagonals.shape[1], device=diagonals.device) > mask.n_keys - 1
            diagonals = diagonals.masked_fill(ahead, -torch.inf)
        self.diagonals = diagonals.contiguous()

    def block(self, start: int, stop: int) -> Tensor:
        """Cut the matrix of this block out of the diagonals."""
        first = self.mask.n_queries - stop
        return _Hankel.apply(self.diagonals, first, stop - start, self.mask.n_visible_keys(stop))


class _Hankel(torch.autograd.Function):
    """The matrix whose entry (i, j) is numbers[first + i + j], as a view; its gradient sums along the diagonals."""

    @staticmethod
    def forward(ctx, numbers, first, rows, columns):
        ctx.shape, ctx.first = numbers.shape, first
        offset = numbers.storage_offset() + first
        return numbers.as_strided((1, len(numbers), rows, columns), (0, numbers.stride(0), 1, 1), offset)

    @staticmethod
    def backward(ctx, gradient):
        rows, columns = gradient.shape[2:]
        padded = F.pad(gradient.sum(0), (0, rows)).flatten(1)[:, : rows * (columns + rows - 1)]
        total = gradient.new_zeros(ctx.shape)
        sums = padded.unflatten(1, (rows, columns + rows - 1)).sum(1)
        total[:, ctx.first : ctx.first + columns + rows - 1] = sums
        return total, None, None, None


def attend_in_blocks(
    q: Tensor, k: Tensor, v: Tensor, bias: Bias, mask: AttentionMask, scale: float | None, dropout: float
) -> Tensor:
    """Attend, with the keys ahead of a block left out where the model is causal; a compiler gets one block."""
    rows = mask.n_queries if torch.compiler.is_compiling() else ROWS
    blocks = []
    for start in range(0, mask.n_queries, rows):
        stop = min(start + rows, mask.n_queries)
        n_keys = mask.n_visible_keys(stop)
        part = q[:, :, start:stop], k[:, :, :n_keys], v[:, :, :n_keys], bias, mask, start, stop, scale, dropout
        blocks.append(checkpoint(_block, *part, use_reentrant=False) if bias.made_again else _block(*part))
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks, 2)


def _block(q, k, v, bias: Bias, mask: AttentionMask, start: int, stop: int, scale, dropout) -> Tensor:
    added = bias.block(start, stop)
    seen = mask.block(start, stop, causal=not bias.causal)
    if bias.flipped:
        q = q.flip(2)
        seen = seen if seen is None or seen.shape[-2] == 1 else seen.flip(-2)
    if added is not None and seen is not None:
        added = added.masked_fill(~seen, -torch.inf)
    out = sdpa(q, k, v, seen if added is None else added, scale, dropout)
    return out.flip(2) if bias.flipped else out


def sdpa(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float | None, dropout: float, **how) -> Tensor:
    """Torch's attention, with queries grouped where there are fewer key heads."""
    if mask is not None and q.is_cuda and mask.dtype not in (torch.bool, q.dtype):
        # Its kernels there want one format; rounded to bfloat16, far keys would fall together.
        wide = mask.dtype
        return sdpa(q.to(wide), k.to(wide), v.to(wide), mask, scale, dropout, **how).to(q.dtype)
    grouped = q.shape[1] != k.shape[1]
    return F.scaled_dot_product_attention(q, k, v, mask, dropout_p=dropout, scale=scale, enable_gqa=grouped, **how)


def check_bias(scheme: PositionScheme, bias: Tensor, q: Tensor, *sizes: int) -> None:
    """Raise ModelInputError unless it is "heads *sizes", or one number for several; a matrix may have a batch axis."""
    if not isinstance(bias, Tensor):
        raise ModelInputError(f"{type(scheme).__name__} gave a bias that is a {type(bias).__name__}; give a tensor")
    wanted = (q.shape[1], *sizes)
    batch, own = bias.shape[: -len(wanted)], bias.shape[-len(wanted) :]
    fits = len(own) == len(wanted) and len(batch) < len(sizes)
    if not fits or any(
        n not in (m, 1) for n, m in zip((*batch, *own), (*q.shape[:1][: len(batch)], *wanted), strict=True)
    ):
        axes = "heads, queries, keys" if len(sizes) == 2 else "heads, offsets"
        raise ModelInputError(
            f"{type(scheme).__name__} gave a bias of shape {tuple(bias.shape)}, but here it must be {wanted}: {axes}"
        )
