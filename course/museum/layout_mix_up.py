"""Layout mix-up: the angles of one RoPE layout meet the pairs of the other.

Symptom: nothing crashes, and the model is worse than it should be. (Each
    layout by itself is right. Weights trained with one and used with the
    other are the second form of this bug: no property of the code can see
    that one, only a comparison with the original model's output.)
Hint: move query and key by the same amount and compare their product.
Property: the product of a query and a key depends on their offset, and on
    nothing else.
Report: huggingface/transformers#47328; the second form:
    pytorch/torchtitan#335
"""

import torch
from torch import Tensor


def numbers(*shape: int) -> Tensor:
    """Make numbers that look drawn at random and are the same everywhere."""
    return torch.arange(torch.Size(shape).numel()).square().sin().view(shape)


def frequencies(d: int, base: float = 10000.0) -> Tensor:
    """Return the angle by which each of d / 2 pairs turns in one step."""
    return base ** (-torch.arange(0, d, 2) / d)


def broken(x: Tensor) -> Tensor:
    """Turn queries or keys, (batch, time, heads, d_head), by position."""
    positions = torch.arange(x.shape[1])[:, None]
    angles = positions[..., None] * frequencies(x.shape[-1])
    angles = torch.cat([angles, angles], -1)
    turned = torch.stack([-x[..., 1::2], x[..., 0::2]], -1).flatten(-2)
    return x * angles.cos() + turned * angles.sin()


def mended(x: Tensor) -> Tensor:
    """Turn queries or keys, (batch, time, heads, d_head), by position."""
    positions = torch.arange(x.shape[1])[:, None]
    angles = positions[..., None] * frequencies(x.shape[-1])
    angles = angles.repeat_interleave(2, -1)
    turned = torch.stack([-x[..., 1::2], x[..., 0::2]], -1).flatten(-2)
    return x * angles.cos() + turned * angles.sin()


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
