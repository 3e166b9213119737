"""Cache offset: with a key-value cache each new token stands at position 0.

Symptom: the loss is right and generated text is babble, or loops; without
    the cache the same model writes well.
Hint: feed one text whole, then token by token, and compare the outputs.
Property: a text in parts through a cache gives what it gives as a whole.
Report: ml-explore/mlx-lm#93; also keras-team/keras-hub#2977 and
    lucidrains/rotary-embedding-torch#11
"""

import torch
from torch import Tensor


def sinusoids(positions: Tensor, d_model: int) -> Tensor:
    """Make the sinusoidal row of each position."""
    frequencies = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    angles = positions[..., None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], -1)


def attend(new: Tensor, all_so_far: Tensor) -> Tensor:
    """Attend causally; queries, keys and values are the tokens themselves."""
    n, m = len(new), len(all_so_far)
    logits = new @ all_so_far.T / new.shape[1] ** 0.5
    ahead = torch.ones(n, m, dtype=torch.bool).triu(m - n + 1)
    return logits.masked_fill(ahead, -torch.inf).softmax(-1) @ all_so_far


def broken(x: Tensor, cache: list) -> Tensor:
    """Attend from the new tokens x, (time, d_model); keep them in the cache."""
    positions = torch.arange(len(x))
    cache.append(x + sinusoids(positions, x.shape[1]))
    return attend(cache[-1], torch.cat(cache))


def mended(x: Tensor, cache: list) -> Tensor:
    """Attend from the new tokens x, (time, d_model); keep them in the cache."""
    positions = torch.arange(len(x)) + sum(len(part) for part in cache)
    cache.append(x + sinusoids(positions, x.shape[1]))
    return attend(cache[-1], torch.cat(cache))


def check(candidate):
    """Assert that parts give the whole, and that the order of tokens counts."""
    off = float(picture(candidate).max())
    assert off < 1e-4, (
        f"outputs change by {off:.2f} when a text comes in parts: do positions "
        "start from 0 again? Start them from the number of tokens in the cache"
    )
    x = torch.arange(128.0).square().sin().view(8, 16)
    swapped = candidate(x[[1, 0, 2, 3, 4, 5, 6, 7]], [])
    moved = (swapped - candidate(x, []))[-1].abs().max()
    assert moved > 1e-3, "swapped tokens change nothing: add positions"


def picture(candidate):
    """Show the error when 4, 1, 1 and 2 tokens come: row = token."""
    x = torch.arange(128.0).square().sin().view(8, 16)
    cache = []
    parts = [candidate(part, cache) for part in x.split([4, 1, 1, 2])]
    return (torch.cat(parts) - candidate(x, [])).abs()
