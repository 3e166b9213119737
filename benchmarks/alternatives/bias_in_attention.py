"""A bias in attention: ALiBi.

For a bias that is known, and a text of this length (1,024 tokens), torch's attention with a matrix is all one needs.
x-transformers has the same as a switch of whole models (`Decoder(..., alibi_pos_bias=True)`), beside dozens of others:
the better choice for building one. posembed never makes the matrix, so its memory grows with the length and not with
its square.
"""

import torch

from ..case import largest_error

ABSENT = {
    "rotary_embedding_torch": "rotations alone",
    "transformer_lens": "not by itself: it adds to the scores of a whole model, as in the seventh task",
    "nnsight": "not by itself: it adds to the scores of a whole model, as in the seventh task",
}


def given(quick):
    """Queries, keys and values, "batch heads seq d_head"."""
    torch.manual_seed(0)
    return tuple(torch.randn(2, 8, 16 if quick else 1024, 64) for _ in range(3))


def posembed(q, k, v):
    """Attention with any scheme's bias, causal or not, with padding, packing and a cache; no matrix is stored."""
    import torch

    from posembed import scheme
    from posembed.models import attend

    positions = torch.arange(q.shape[2])
    alibi = scheme("alibi", n_heads=8)
    return attend(
        q,
        k,
        v,
        causal=True,
        scheme=alibi,
        positions=positions,
        key_positions=positions,
    )


def transformers(q, k, v):
    """Bloom's numbers, one a key: ALiBi where attention is causal, less exact far out; the mask is yours to add."""
    import torch
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    length = q.shape[2]
    alibi = build_alibi_tensor(torch.ones(1, length), 8, q.dtype)
    bias = alibi + torch.full((length, length), -torch.inf).triu(1)
    return torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=bias[None]
    )


def x_transformers(q, k, v):
    """Its own module of the bias, and its attention."""
    from x_transformers.attend import Attend
    from x_transformers.x_transformers import AlibiPositionalBias

    bias = AlibiPositionalBias(8)(q.shape[2], q.shape[2])
    return Attend(causal=True, flash=True)(q, k, v, attn_bias=bias)[0]


def plain(q, k, v):
    """The formula, for numbers of heads that are powers of two, and torch's attention."""
    import torch

    at = torch.arange(q.shape[2])
    slopes = 2.0 ** -torch.arange(1, 9)
    bias = slopes[:, None, None] * (at - at[:, None])
    bias = bias.masked_fill(at > at[:, None], -torch.inf)
    return torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=bias
    )


def shown(answer, inputs):
    """How far from the same in float64."""
    return f"error {_error(answer, inputs):.0e}"


def agree(answers, inputs):
    """The same up to rounding in float32, where Bloom's numbers, which grow with the position, lose a digit."""
    assert all(_error(answer, inputs) < 1e-4 for answer in answers.values())
    assert _error(answers["posembed"], inputs) < 1e-5


def _error(answer, inputs):
    return largest_error(answer, plain(*(each.double() for each in inputs)))
