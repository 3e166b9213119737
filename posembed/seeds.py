"""One seed, a stream of random numbers for each purpose."""

from __future__ import annotations

import zlib
from numbers import Integral

import numpy as np
import torch

from .errors import ProbeInputError, shown


def generator(seed: int, purpose: str) -> np.random.Generator:
    """A stream that depends on both: folds drawn like the labels that are to be permuted would not be independent."""
    return np.random.default_rng([checked_seed(seed), zlib.crc32(purpose.encode())])


def torch_generator(seed: int, purpose: str) -> torch.Generator:
    """The same for torch's numbers."""
    return torch.Generator().manual_seed(int(generator(seed, purpose).integers(2**63)))


def checked_seed(seed: int, error: type[Exception] = ProbeInputError) -> int:
    """Refuse what no generator takes."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= seed < 2**32:
        raise error(f"seed is {shown(seed)}; it must be a whole number from 0 to 2^32 - 1")
    return int(seed)
