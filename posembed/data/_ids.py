"""The ids of a text's tokens."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from jaxtyping import Integer
from torch import Tensor

from ..errors import CorpusError

# In memory, or in a file that is mapped and of which no more is read than is looked at.
Tokens = Integer[Tensor, " tokens"] | Integer[np.ndarray, " tokens"]


def checked(ids: Iterable[int] | Tokens, n: int) -> list[int]:
    """Ids as numbers, each of which is of a vocabulary of n tokens."""
    numbers = [int(each) for each in ids]
    for each in numbers:
        if not 0 <= each < n:
            raise CorpusError(f"id {each} is outside the vocabulary of {n} tokens")
    return numbers
