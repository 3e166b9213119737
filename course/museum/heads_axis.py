"""Heads axis: positions are counted along the axis of the heads.

Symptom: nothing crashes, and the loss is that of a model without positions:
    within a head all tokens turn by one angle, which cancels.
Hint: move the query alone. Does its product with a key change?
Property: the product of a query and a key depends on their offset, and on
    nothing else.
Report: mlfoundations/open_lm#4; also elixir-nx/emlx#121. The same of a table
    that is read along the batch axis: cmu-l3/anlp-fall2025-code#1
"""

import torch
from torch import Tensor


def numbers(*shape: int) -> Tensor:
    """Make numbers that look drawn at random and are the same everywhere."""
    return torch.arange(torch.Size(shape).numel()).square().sin().view(shape)


def frequencies(d: int, base: float = 10000.0) -> Tensor:
    """Return the angle by which each of d / 2 pairs turns in one step."""
    return base ** (-torch.arange(0, d, 2) / d)


def turn(x: Tensor, angles: Tensor) -> Tensor:
    """Turn pair i of x, columns i and i + d / 2, by angles[..., i]."""
    (a, b), cosine, sine = x.chunk(2, -1), angles.cos(), angles.sin()
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1)


def broken(x: Tensor) -> Tensor:
    """Turn queries or keys, (batch, time, heads, d_head), by position."""
    positions = torch.arange(x.shape[-2])
    return turn(x, positions[..., None] * frequencies(x.shape[-1]))


def mended(x: Tensor) -> Tensor:
    """Turn queries or keys, (batch, time, heads, d_head), by position."""
    positions = torch.arange(x.shape[1])[:, None]
    return turn(x, positions[..., None] * frequencies(x.shape[-1]))


def check(candidate):
    """Assert that products change with the offset, and with nothing else."""
    products = picture(candidate)
    off = float((products[1:, 1:] - products[:-1, :-1]).abs().max())
    assert off < 1e-4, (
        f"a product changes by {off:.2f} when query and key move together: do "
        "angles and columns pair in different ways? Let both pair 2i with "
        "2i + 1, or both i with i + d / 2"
    )
    why = "no product depends on positions: are they counted along the heads?"
    assert products.std() > 1e-3, f"{why} Count the x.shape[1] places"
    one, other = candidate(numbers(1, 8, 1, 16).expand(1, 8, 2, 16)).unbind(2)
    why = "two heads turn by different angles: does the count go on from head"
    assert (one - other).abs().max() < 1e-5, f"{why} to head? Count places"


def picture(candidate):
    """Show products of one query and one key: row, column = their positions."""
    q, k = numbers(2, 1, 1, 1, 16).expand(2, 1, 32, 2, 16)
    return candidate(q)[0, :, 0] @ candidate(k)[0, :, 0].T
