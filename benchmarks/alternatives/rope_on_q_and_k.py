"""RoPE on queries and keys: 1,024 positions from 100,000 on, where rounding shows.

All five have it in three or four lines, and in a model that you train in float32, at the usual lengths, we know of no
difference that matters: take the one of the library that the model is built with. In bfloat16 some of them round
positions, as {doc}`conformance` shows. rotary-embedding-torch has variants for pictures, lengths and learned
frequencies. posembed computes the angles in float64, which matters at positions far out, and has both layouts, which
matters for weights of another model.
"""

import torch

from ..rope import rotated

AT = 100_000
ABSENT = {
    "transformer_lens": "not by itself: its rotations are inside its models"
}


def given(quick):
    """Queries and keys, "batch heads seq d_head", and positions far out."""
    torch.manual_seed(0)
    length = 16 if quick else 1024
    return (
        torch.randn(2, 8, length, 64),
        torch.randn(2, 8, length, 64),
        torch.arange(AT, AT + length),
    )


def posembed(q, k, positions):
    """Either layout, any positions, several axes, four scalings; angles in float64."""
    from posembed.encodings import RoPE

    rope = RoPE(64, layout="interleaved")
    return rope.rotate(q, positions), rope.rotate(k, positions)


def transformers(q, k, positions):
    """Of Llama's function: the layout of halves, and scalings. Other models of its have the interleaved layout."""
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import (
        LlamaRotaryEmbedding,
        apply_rotary_pos_emb,
    )

    rotary = LlamaRotaryEmbedding(
        LlamaConfig(hidden_size=512, num_attention_heads=8)
    )
    return apply_rotary_pos_emb(q, k, *rotary(q, positions[None]))


def x_transformers(q, k, positions):
    """The interleaved layout; xPos and scalings."""
    from x_transformers.x_transformers import (
        RotaryEmbedding,
        apply_rotary_pos_emb,
    )

    angles, scale = RotaryEmbedding(64)(positions)
    return apply_rotary_pos_emb(q, angles, scale), apply_rotary_pos_emb(
        k, angles, scale
    )


def rotary_embedding_torch(q, k, positions):
    """The interleaved layout; xPos, pictures, learned frequencies."""
    from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

    angles = RotaryEmbedding(64)(positions)
    return apply_rotary_emb(angles, q), apply_rotary_emb(angles, k)


def plain(q, k, positions):
    """The interleaved layout, written out with complex numbers."""
    import torch

    angles = positions[:, None] * 10000.0 ** (-torch.arange(0, 64, 2) / 64)
    turn = torch.polar(torch.ones_like(angles), angles)
    return tuple(
        torch.view_as_real(
            torch.view_as_complex(x.unflatten(-1, (-1, 2))) * turn
        ).flatten(-2)
        for x in (q, k)
    )


def shown(answer, inputs):
    """How far from the formula in float64."""
    return f"error {_error(answer[0], *inputs):.0e}"


def agree(answers, inputs):
    """Each is the formula in its layout, up to angles of that size in float32."""
    assert all(_error(answer[0], *inputs) < 0.1 for answer in answers.values())
    assert _error(answers["posembed"][0], *inputs) < 1e-6


def _error(turned, q, _, positions):
    """In the nearer of the two layouts."""
    wanted = [
        rotated(q, positions, layout) for layout in ("half", "interleaved")
    ]
    return float(
        min((turned - each).abs().max() for each in wanted) / q.abs().max()
    )
