"""Left padding: positions are counted from the padding, not from the text.

Symptom: a text's output in a batch differs from its output alone, and more
    so the shorter the text is beside the longest of the batch. (A scheme of
    offsets alone, such as RoPE or ALiBi, does not show this bug.)
Hint: run one text alone, then with padding in front of it.
Property: padding in front of a text or behind it changes nothing for the
    real tokens.
Report: huggingface/transformers#21080; the mend:
    huggingface/transformers#3021. Tokens that begin at another row:
    huggingface/sentence-transformers#3879, facebookresearch/fairseq#1187
"""

import torch
import torch.nn.functional as F
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


def broken(x: Tensor, mask: Tensor) -> Tensor:
    """Attend in x, (batch, time, d_model); mask is 1 for real tokens."""
    positions = torch.arange(x.shape[1])
    x = x + sinusoids(positions, x.shape[2])
    return attend(x, mask[:, None] == 1)


def mended(x: Tensor, mask: Tensor) -> Tensor:
    """Attend in x, (batch, time, d_model); mask is 1 for real tokens."""
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    x = x + sinusoids(positions, x.shape[2])
    return attend(x, mask[:, None] == 1)


def check(candidate):
    """Assert that padding changes no token, and that order counts."""
    change = picture(candidate).max()
    assert change < 1e-4, (
        f"padding changes the outputs of a text by up to {change:.2f}: do "
        "positions count the padding? Count the real tokens alone, from 0"
    )
    x, mask = numbers(1, 6, 16), torch.ones(1, 6, dtype=torch.long)
    off = (candidate(x.flip(1), mask).flip(1) - candidate(x, mask)).abs().max()
    assert off > 1e-3, "a reversed text changes nothing: add positions"


def picture(candidate):
    """Show the change by padding: row = pads in front of 8, column = token."""
    text, real = numbers(1, 6, 16), torch.ones(1, 6, dtype=torch.long)
    images = []
    for pads in range(9):
        x = F.pad(text, (0, 0, pads, 8 - pads), value=1.0)
        mask = F.pad(real, (pads, 8 - pads))
        images.append(candidate(x, mask)[0, pads : pads + 6])
    return (torch.stack(images) - candidate(text, real)).norm(dim=-1)
