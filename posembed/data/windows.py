"""Pieces of a corpus: at random for training, in order for measuring; and the same with some tokens hidden."""

from __future__ import annotations

from numbers import Real
from typing import Any

import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from ..checks import check_kind, check_whole
from ..errors import CorpusError, shown
from .characters import Tokens


def random_windows(
    ids: Tokens, length: int, n_windows: int, generator: torch.Generator
) -> Int64[Tensor, "windows length"]:
    """Draw pieces that start anywhere.

    Args:
        ids: the corpus.
        length: of each piece.
        n_windows: how many.
        generator: of the random numbers.

    Raises:
        CorpusError: no ids, no whole numbers; the corpus is shorter than a piece.

    Example:
        >>> import torch
        >>> from posembed.data import random_windows
        >>> random_windows(torch.arange(10), 3, 2, torch.Generator().manual_seed(0)).shape
        torch.Size([2, 3])
    """
    _check(ids, length, n_windows)
    check_kind("generator", generator, torch.Generator, "a torch.Generator", CorpusError)
    starts = torch.randint(len(ids) - length + 1, (n_windows,), generator=generator)
    return _pieces(ids, starts, length)


def windows_in_order(ids: Tokens, length: int, n_windows: int) -> Int64[Tensor, "windows length"]:
    """Cut pieces at equal distances over the whole corpus; they overlap only where it is too short for them.

    Args:
        ids: the corpus.
        length: of each piece.
        n_windows: how many at most.

    Raises:
        CorpusError: no ids, no whole numbers; the corpus is shorter than a piece.

    Example:
        >>> import torch
        >>> from posembed.data import windows_in_order
        >>> windows_in_order(torch.arange(10), 3, 2)
        tensor([[0, 1, 2],
                [7, 8, 9]])
    """
    _check(ids, length, n_windows)
    n_windows = min(n_windows, len(ids) // length)
    starts = torch.linspace(0, len(ids) - length, n_windows, dtype=torch.float64).round().long()
    return _pieces(ids, starts, length)


def masked(
    ids: Int[Tensor, "windows length"], rate: float, mask_id: int, generator: torch.Generator
) -> tuple[Int[Tensor, "windows length"], Bool[Tensor, "windows length"]]:
    """Hide tokens at random, each with the same probability, at least one in each piece.

    Args:
        ids: the tokens.
        rate: the probability, above 0 and below 1.
        mask_id: what stands in a hidden token's place.
        generator: of the random numbers.

    Returns:
        The tokens with some hidden, and which are.

    Raises:
        CorpusError: a rate outside its range; ids, a mask_id or a generator that are not so.

    Example:
        >>> import torch
        >>> from posembed.data import masked
        >>> seen, hidden = masked(torch.arange(2, 8)[None], 0.3, 1, torch.Generator().manual_seed(0))
        >>> bool((seen[hidden] == 1).all())
        True
    """
    if not isinstance(rate, Real) or not 0 < rate < 1:
        raise CorpusError(f"the masking rate is {shown(rate)}; it must lie between 0 and 1")
    check_whole("mask_id", mask_id, CorpusError, least=0)
    if not isinstance(ids, Tensor) or ids.ndim != 2 or ids.is_floating_point():
        raise CorpusError(f"ids are {_described(ids)}; give a tensor of whole numbers, windows and tokens")
    check_kind("generator", generator, torch.Generator, "a torch.Generator", CorpusError)
    chances = torch.rand(ids.shape, generator=generator)
    # Where chance hides nothing a piece would teach nothing: its least number is hidden then.
    hidden = (chances < rate) | (chances == chances.amin(dim=1, keepdim=True))
    return ids.masked_fill(hidden, mask_id), hidden


def _pieces(ids: Tokens, starts: Tensor, length: int) -> Int64[Tensor, "windows length"]:
    return ids[starts[:, None] + torch.arange(length)].long()


def _described(ids: Any) -> str:
    return f"{ids.dtype} of {tuple(ids.shape)}" if isinstance(ids, Tensor) else f"a {type(ids).__name__}"


def _check(ids: Any, length: int, n_windows: int) -> None:
    if not isinstance(ids, Tensor) or ids.ndim != 1 or ids.is_floating_point() or ids.dtype == torch.bool:
        raise CorpusError(
            f"ids are {_described(ids)}; give a tensor of whole numbers on one axis, such as torch.tensor(ids)"
        )
    check_whole("length", length, CorpusError)
    check_whole("n_windows", n_windows, CorpusError)
    if length > len(ids):
        raise CorpusError(f"pieces of {length} tokens cannot be cut from a corpus of {len(ids)}; make them shorter")
