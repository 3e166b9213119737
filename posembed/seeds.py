"""One seed, a stream of random numbers for each purpose."""

from __future__ import annotations

import zlib

import numpy as np
import torch


def generator(seed: int, purpose: str) -> np.random.Generator:
    """A stream that depends on both: folds drawn like the labels that are to be permuted would not be independent."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode())])


def torch_generator(seed: int, purpose: str) -> torch.Generator:
    """The same for torch's numbers."""
    return torch.Generator().manual_seed(int(generator(seed, purpose).integers(2**63)))
