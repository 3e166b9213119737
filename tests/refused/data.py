"""Refused by texts and what is cut from them."""

import torch

from posembed.data import masked, perplexities, random_windows, windows_in_order
from posembed.errors import CorpusError

IDS = torch.ones(1, 3, dtype=torch.long)
CASES = {
    "truth values in place of tokens": (
        CorpusError,
        lambda: windows_in_order(torch.arange(9) > 4, 2, 1),
        "give a tensor, Integer[Tensor, 'tokens']",
    ),
    "a masking rate that is no share": (
        CorpusError,
        lambda: masked(IDS, 1.5, 1, torch.Generator()),
        "it must lie between 0 and 1",
    ),
    "a seed in place of a generator": (
        CorpusError,
        lambda: random_windows(torch.arange(99), 8, 2, 0),
        "generator is 0; give a Generator",
    ),
    "a loss that is no number": (CorpusError, lambda: perplexities("a", n_tokens=3, n_words=1), "loss_per_token"),
}
