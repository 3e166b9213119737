"""The bias of a scheme that knows of offsets alone, where positions are contiguous: one number a diagonal."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

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
    lowest, dtype = first_key - (first + mask.n_queries - 1), compute_dtype(q)
    which = scheme, lowest, mask.n_queries, mask.n_keys, mask.causal, q.shape[1], q.device
    if mask.n_queries > ROWS or mask.n_queries * mask.n_keys > ROWS**2:  # several blocks, or too much to keep
        return _diagonals(*which, dtype)
    if (table := scheme.bucket_table) is not None:
        return LookedUpBias(table.to(dtype), *_kept_index(*which))
    return (_kept_diagonals if scheme.constant_bias else _diagonals)(*which, dtype)


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


class LookedUpBias(Bias):
    """The bias of a single block, looked up in a table.

    Args:
        table: "buckets heads".
        ahead: one row more, minus infinity for keys ahead; None where there are none.
        index: which of all numbers, counted row by row, "1 heads query key".
    """

    def __init__(self, table: Tensor, ahead: Tensor | None, index: Tensor):
        self.table, self.ahead, self.index, self.causal = table, ahead, index, ahead is not None

    def block(self, start: int, stop: int) -> Tensor:
        """Look all of them up."""
        return (self.table if self.ahead is None else torch.cat((self.table, self.ahead))).take(self.index)


def _diagonals(
    scheme: PositionScheme,
    lowest: int,
    n_queries: int,
    n_keys: int,
    causal: bool,
    n_heads: int,
    device: torch.device,
    dtype: torch.dtype,
) -> DiagonalBias | None:
    n_offsets = n_keys if causal else n_keys + n_queries - 1
    diagonals = scheme.bias_by_offset(torch.arange(lowest, lowest + n_offsets, device=device))
    if diagonals is None:
        return None
    _check(scheme, tuple(diagonals.shape), n_heads, n_offsets)
    return DiagonalBias(diagonals.to(dtype), AttentionMask(n_queries, n_keys, causal=causal))


# What no training changes is kept, because every layer of every step asks for the same. What is made in inference mode
# could not be used for a gradient later.


@lru_cache(maxsize=4)
def _kept_diagonals(*which: Any) -> DiagonalBias | None:
    with torch.inference_mode(False):
        return _diagonals(*which)


@lru_cache(maxsize=4)
def _kept_index(
    scheme: Any, lowest: int, n_queries: int, n_keys: int, causal: bool, n_heads: int, device: torch.device
) -> tuple[Tensor | None, Tensor]:
    n_buckets, n_table_heads = scheme.bucket_table.shape
    _check(scheme, (n_table_heads, n_keys), n_heads, n_keys)
    with torch.inference_mode(False):
        heads, query, key = (torch.arange(n, device=device) for n in (n_table_heads, n_queries, n_keys))
        rows, ahead = scheme.bucket(lowest + n_queries - 1 + key - query[:, None]), None
        if causal:
            ahead = torch.full((1, n_table_heads), -torch.inf, dtype=torch.float32, device=device)
            rows = rows.masked_fill(key > query[:, None] + n_keys - n_queries, n_buckets)
        return ahead, (rows * n_table_heads + heads[:, None, None])[None]


def _check(scheme: PositionScheme, shape: tuple[int, ...], n_heads: int, n_offsets: int) -> None:
    if shape not in ((n_heads, n_offsets), (1, n_offsets)):
        raise ModelInputError(
            f"{type(scheme).__name__} gave a bias of shape {shape}, but here it must be {(n_heads, n_offsets)}: "
            "heads, offsets"
        )


def _first(positions: Tensor) -> int | None:
    """The first of contiguous positions; None where they are not contiguous."""
    at = positions.tolist() if positions.ndim == 1 else []  # a list is compared sooner than a small tensor
    return at[0] if at and at == list(range(at[0], at[0] + len(at))) else None
