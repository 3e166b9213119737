"""The bias of a scheme that knows of offsets alone, where positions are contiguous: one number a diagonal."""

from __future__ import annotations

import torch
from torch import Tensor

from ..encodings.interface import PositionScheme
from ..encodings.positions import compute_dtype, known
from ..errors import ModelInputError
from .blockwise_attention import ROWS, Bias
from .masks import AttentionMask


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
    if tuple(diagonals.shape) not in ((q.shape[1], n_offsets), (1, n_offsets)):
        raise ModelInputError(
            f"{type(scheme).__name__} gave a bias of shape {tuple(diagonals.shape)}, but here it must be "
            f"{(q.shape[1], n_offsets)}: heads, offsets"
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
