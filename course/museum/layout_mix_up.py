"""Layout mix-up: the angles of one RoPE layout meet the pairs of the other.

Symptom: nothing crashes, and the model is worse than it should be. (Each
    layout by itself is right. Weights trained with one and used with the
    other are the second form of this bug: no property of the code can see
    that one, only a comparison with the original model's output.)
Hint: move query and key by the same amount and compare their product.
Property: the product of a query and a key depends on their offset alone.
Report: huggingface/transformers#47328; the second form:
    pytorch/torchtitan#335
"""

import torch
from torch import Tensor


def broken(x: Tensor, positions: Tensor) -> Tensor:
    """Turn the pairs of columns of x, (time, d_head), by their positions."""
    frequencies = 10000.0 ** (-torch.arange(0, x.shape[1], 2) / x.shape[1])
    angles = positions[:, None] * frequencies
    angles = torch.cat([angles, angles], -1)
    quarter_turn = torch.stack([-x[:, 1::2], x[:, 0::2]], -1).flatten(1)
    return x * angles.cos() + quarter_turn * angles.sin()


def mended(x: Tensor, positions: Tensor) -> Tensor:
    """Turn the pairs of columns of x, (time, d_head), by their positions."""
    frequencies = 10000.0 ** (-torch.arange(0, x.shape[1], 2) / x.shape[1])
    angles = positions[:, None] * frequencies
    angles = torch.stack([angles, angles], -1).flatten(1)
    quarter_turn = torch.stack([-x[:, 1::2], x[:, 0::2]], -1).flatten(1)
    return x * angles.cos() + quarter_turn * angles.sin()


def check(candidate):
    """Assert that products are the same along diagonals, and not everywhere."""
    products = picture(candidate)
    off = float((products[1:, 1:] - products[:-1, :-1]).abs().max())
    assert off < 1e-4, (
        f"a product changes by {off:.2f} when query and key move together: do "
        "the angles and the turned columns pair in different ways? Let both "
        "pair 2i with 2i + 1, or both i with i + d / 2"
    )
    assert products.std() > 1e-3, "no product depends on positions: turn x"


def picture(candidate):
    """Show products of one query and one key: row, column = their positions."""
    q, k = torch.arange(32.0).square().sin().view(2, 1, 16)
    at = torch.arange(32)
    return candidate(q.expand(32, 16), at) @ candidate(k.expand(32, 16), at).T
