"""Packing leak: positions begin anew for each text, and the mask does not.

Symptom: texts are packed behind one another in a row, to save padding, and
    what a model says of one depends on those that stand before it.
Hint: change a token of the first text, and see which outputs change.
Property: a text in a pack gives what it gives alone.
Report: huggingface/nanoVLM#204; positions that go on counting:
    huggingface/nanoVLM#201
"""

import torch
from torch import Tensor


def numbers(*shape: int) -> Tensor:
    """Make numbers that look drawn at random and are the same everywhere."""
    return torch.arange(torch.Size(shape).numel()).square().sin().view(shape)


def frequencies(d: int, base: float = 10000.0) -> Tensor:
    """Return the angle by which each of d / 2 pairs turns in one step."""
    return base ** (-torch.arange(0, d, 2) / d)


def sinusoids(positions: Tensor, d_model: int) -> Tensor:
    """Make the sinusoidal row of each position."""
    angles = positions[..., None] * frequencies(d_model)
    return torch.cat([angles.sin(), angles.cos()], -1)


def attend(x: Tensor, seen: Tensor) -> Tensor:
    """Attend where seen; queries, keys and values are the tokens themselves."""
    logits = x @ x.mT / x.shape[-1] ** 0.5
    return logits.masked_fill(~seen, -torch.inf).softmax(-1) @ x


def broken(x: Tensor, text: Tensor) -> Tensor:
    """Attend causally in packed x, (time, d_model); text numbers the texts."""
    positions = torch.cat([torch.arange(n) for n in text.bincount()])
    seen = torch.ones(len(x), len(x)).tril() > 0
    return attend(x + sinusoids(positions, x.shape[1]), seen)


def mended(x: Tensor, text: Tensor) -> Tensor:
    """Attend causally in packed x, (time, d_model); text numbers the texts."""
    positions = torch.cat([torch.arange(n) for n in text.bincount()])
    seen = (text[:, None] == text).tril()
    return attend(x + sinusoids(positions, x.shape[1]), seen)


def check(candidate):
    """Assert that texts of a pack come out as alone, and that order counts."""
    x, text = numbers(12, 16), torch.tensor(5 * [0] + 4 * [1] + 3 * [2])
    alone = [candidate(x[text == n], text[text == n] - n) for n in range(3)]
    off = float((candidate(x, text) - torch.cat(alone)).abs().max())
    assert off < 1e-4, (
        f"a text in a pack is off by {off:.2f}: does it see the text before "
        "it, or do positions go on counting? Let both end with a text"
    )
    swapped = candidate(x[[1, 0, *range(2, 12)]], text)
    moved = (swapped - candidate(x, text))[4].abs().max()
    assert moved > 1e-3, "swapped tokens change nothing: add positions"


def picture(candidate):
    """Show what a change of a token changes: row = token, column = changed."""
    x, text = numbers(12, 16), torch.tensor(5 * [0] + 4 * [1] + 3 * [2])
    changed = [candidate(x + one[:, None], text) for one in torch.eye(12)]
    return (torch.stack(changed, 1) - candidate(x, text)[:, None]).norm(dim=-1)
