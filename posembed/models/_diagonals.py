"""A bias that depends on the offset alone, as one number a diagonal."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ._blocks import Bias
from .masks import AttentionMask


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
        self.wants_gradient = diagonals.requires_grad and torch.is_grad_enabled()
        if mask.causal:
            ahead = torch.arange(diagonals.shape[1], device=diagonals.device) > mask.n_keys - 1
            diagonals = diagonals.masked_fill(ahead, -torch.inf)
        self.diagonals = diagonals.contiguous()

    def block(self, start: int, stop: int) -> Tensor:
        first = self.mask.n_queries - stop
        return _Hankel.apply(self.diagonals, first, stop - start, self.mask.n_visible_keys(stop))


class _Hankel(torch.autograd.Function):
    """The matrix whose entry (i, j) is numbers[first + i + j], as a view; its gradient sums along the diagonals."""

    @staticmethod
    def forward(ctx, numbers, first, rows, columns):
        ctx.shape, ctx.first = numbers.shape, first
        heads = numbers.shape[0]
        offset = numbers.storage_offset() + first
        return numbers.as_strided((1, heads, rows, columns), (0, numbers.stride(0), 1, 1), offset)

    @staticmethod
    def backward(ctx, gradient):
        rows, columns = gradient.shape[2:]
        padded = F.pad(gradient.sum(0), (0, rows)).flatten(1)[:, : rows * (columns + rows - 1)]
        sums = padded.unflatten(1, (rows, columns + rows - 1)).sum(1)
        total = gradient.new_zeros(ctx.shape)
        total[:, ctx.first : ctx.first + columns + rows - 1] = sums
        return total, None, None, None
