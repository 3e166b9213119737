"""Pieces of a corpus: at random for training, in order for measuring; and the same with some tokens hidden."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from ..errors import CorpusError
from ..public import Count, NotNegative, Whole, public
from .characters import Tokens


@public(CorpusError)
def random_windows(
    ids: Tokens, length: Count, n_windows: Count, generator: torch.Generator
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
    _check_length(ids, length)
    starts = torch.randint(len(ids) - length + 1, (n_windows,), generator=generator)
    return _pieces(ids, starts, length)


@public(CorpusError)
def windows_in_order(ids: Tokens, length: Count, n_windows: Count) -> Int64[Tensor, "windows length"]:
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
    _check_length(ids, length)
    n_windows = min(n_windows, len(ids) // length)
    starts = torch.linspace(0, len(ids) - length, n_windows, dtype=torch.float64).round().long()
    return _pieces(ids, starts, length)


@public(CorpusError)
def masked(
    ids: Int[Tensor, "windows length"], rate: NotNegative, mask_id: Whole, generator: torch.Generator
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
    if not 0 < rate < 1:
        raise CorpusError(f"the masking rate is {rate}; it must lie between 0 and 1")
    chances = torch.rand(ids.shape, generator=generator)
    # Where chance hides nothing a piece would teach nothing: its least number is hidden then.
    hidden = (chances < rate) | (chances == chances.amin(dim=1, keepdim=True))
    return ids.masked_fill(hidden, mask_id), hidden


def _pieces(ids: Tokens, starts: Tensor, length: int) -> Int64[Tensor, "windows length"]:
    return ids[starts[:, None] + torch.arange(length)].long()


def _check_length(ids: Tokens, length: int) -> None:
    if length > len(ids):
        raise CorpusError(f"pieces of {length} tokens cannot be cut from a corpus of {len(ids)}; make them shorter")
