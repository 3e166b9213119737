"""SDPA alignment: is_causal counts queries from the first key, not the last.

Symptom: training is right, and generation with a cache repeats itself: a
    new token attends to the first token of the text alone.
Hint: pass an identity matrix as values, and look at the weights.
Property: the last queries, asked alone, answer as within the whole text; a
    query sees its own key and none after it.
Report: pytorch/pytorch#108108; as a user saw it: pytorch/pytorch#144858
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def broken(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend causally from the last queries of a text to all of its keys."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def mended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend causally from the last queries of a text to all of its keys."""
    n, m = q.shape[-2], k.shape[-2]
    seen = torch.ones(n, m, dtype=torch.bool).tril(m - n)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)


def check(candidate):
    """Assert that queries answer alone as in the text, and see no future."""
    q, k, v = torch.arange(288.0).square().sin().view(3, 1, 2, 6, 8)
    whole = candidate(q, k, v)
    for n in (1, 3):
        off = (candidate(q[:, :, -n:], k, v) - whole[:, :, -n:]).abs().max()
        assert off < 1e-5, (
            f"the last {n} of 6 queries, asked alone, are off by {off:.2f}: is "
            "query 0 held against key 0? Align the last query with the last key"
        )
    other = candidate(q, k, v + torch.eye(6)[:, 5:])  # another last value
    seen = (other - whole).abs().amax((0, 1, 3))
    assert seen[:-1].max() < 1e-5, "queries see later keys: mask the future"
    assert seen[-1] > 1e-3, "the last query misses its own key: let it see it"


def picture(candidate):
    """Show weights of the last 4 of 12 queries: row = query, column = key."""
    q, k = torch.zeros(1, 1, 4, 12), torch.zeros(1, 1, 12, 12)
    return candidate(q, k, torch.eye(12)[None, None])[0, 0]
