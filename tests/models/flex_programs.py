"""FlexAttention compiled, with more hooks than the compiler allows a function by itself."""

import torch

from posembed import scheme
from posembed.models import AttentionMask
from posembed.models.flex import flex_attend


def cases():
    """How many programs were made, and how many of the calls were given up by the compiler."""
    torch._dynamo.config.recompile_limit = 1
    q, at = torch.randn(1, 4, 64, 16), torch.arange(64)
    for name in ("alibi", "kerple"):
        mask = AttentionMask(64, 64, causal=True, given=None, device=q.device)
        with torch.no_grad():
            flex_attend(q, q, q, scheme(name, d_model=64, n_heads=4).score_mod(), at, at, mask, None)
    frames = torch._dynamo.utils.counters["frames"]
    yield "programs", frames["ok"]
    yield "given up", frames["total"] - frames["ok"]
