"""Attention by the book: every logit, every bias and every mask as whole matrices, in the format it is given."""

import math

import torch

from posembed import PositionScheme, scheme

N_HEADS, D_HEAD = 4, 8
D_MODEL = N_HEADS * D_HEAD

# Each scheme, and combinations that act in several places. Learned parameters are drawn wide, so that they matter.
NAMES = [
    "nopos",
    "sinusoidal",
    "learned",
    "learnable_sinusoidal",
    "shaw",
    "t5",
    "alibi",
    "rope",
    "xpos",
    "pope",
    "kerple",
    "fire",
    "cope",
    "forgetting",
    "scaled_logits",
    "rope+alibi",
    "learned+t5",
    "shaw+alibi",
    "cope+rope",
    "forgetting+rope",
    "scaled_logits+rope",
    "alibi+pope",
    "user",
]
# Defined for causal models alone.
ONE_WAY = {"xpos", "fire", "cope", "forgetting", "scaled_logits"}
BIDIRECTIONAL = [name for name in NAMES if not ONE_WAY & set(name.split("+"))]
CASES = [(name, True) for name in NAMES] + [(name, False) for name in BIDIRECTIONAL]


class Nearness(PositionScheme):
    """A user's own: a penalty on the root of the distance, learned for each head."""

    def __init__(self, n_heads):
        super().__init__()
        self.slope = torch.nn.Parameter(torch.linspace(0.5, 1, n_heads))

    def bias_by_offset(self, offsets):
        return -self.slope[:, None] * offsets.abs().sqrt()


def made(name, causal, n_heads=N_HEADS, dtype=torch.float64):
    """A scheme with parameters drawn anew, in float64 unless told otherwise."""
    torch.manual_seed(0)
    if name == "user":
        return Nearness(n_heads).to(dtype)
    one = scheme(name, d_model=n_heads * D_HEAD, n_heads=n_heads, n_positions=64, causal=causal)
    for parameter in one.parameters():
        parameter.data = torch.rand_like(parameter) + 0.1
        if "pope" in name:  # whose phases are never positive
            parameter.data.neg_()
    return one.to(dtype)


def visible(n_queries, n_keys, causal, given=None):
    """Which query sees which key, "batch heads query key"."""
    seen = torch.ones(1, 1, n_queries, n_keys, dtype=torch.bool)
    if causal:
        seen = seen.tril(n_keys - n_queries)
    if given is None:
        return seen
    given = given.bool()
    return seen & {2: lambda m: m[:, None, None], 3: lambda m: m[:, None], 4: lambda m: m}[given.ndim](given)


def gates(one, batch, n_keys, dtype=torch.float64):
    """What a scheme reads of the tokens, or None; drawn, where no model makes it."""
    if not one.gated:
        return None
    return -torch.rand(batch, N_HEADS, n_keys, generator=torch.Generator().manual_seed(6), dtype=torch.float64).to(
        dtype
    )


def attention(q, k, v, one, positions, key_positions, causal, given=None, scale=None):
    """softmax(q k / sqrt(d) + bias) v, with the d of a head before it is widened; a query that sees nothing gets zeros."""
    seen = visible(q.shape[2], k.shape[2], causal, given)
    extra = {"visible": seen} if one.reads_mask else {}
    if one.gated:
        extra["gates"] = gates(one, k.shape[0], k.shape[2], k.dtype)
    bias = one.bias(q, k, positions, key_positions, **extra)
    k, v = (each.repeat_interleave(q.shape[1] // k.shape[1], 1) for each in (k, v))
    logits = q @ k.mT * (math.sqrt(one.widens / q.shape[-1]) if scale is None else scale)
    logits = (logits if bias is None else logits + bias).masked_fill(~seen, -math.inf)
    return logits.softmax(-1).nan_to_num(0.0) @ v
