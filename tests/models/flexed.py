"""FlexAttention with hooks, uncompiled: in a process of its own, because the shape checks hide their signatures."""

import torch
from models.reference import D_HEAD, N_HEADS, attention, made

from posembed.encodings import Composed
from posembed.models import AttentionMask
from posembed.models.flex import flex_attend

HOOKED = [(name, causal) for name in ("alibi", "t5", "kerple", "alibi+t5") for causal in (True, False)]
# Without a compiler between the hook and the numbers; forward only, which is all that is asked here.
torch.nn.attention.flex_attention._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True


def hooked(name, causal):
    parts = [made(part, causal, dtype=torch.float32) for part in name.split("+")]
    return parts[0] if len(parts) == 1 else Composed(*parts)


def difference(name, causal, n_queries, n_keys, n_kv_heads=N_HEADS, keys=None, given=None):
    generator, one = torch.Generator().manual_seed(0), hooked(name, causal)
    draw = lambda heads, length: torch.randn(2, heads, length, D_HEAD, generator=generator)
    q, k, v = draw(N_HEADS, n_queries), draw(n_kv_heads, n_keys), draw(n_kv_heads, n_keys)
    keys = torch.arange(n_keys) + 100 if keys is None else keys
    positions = keys[..., n_keys - n_queries :]
    mask = AttentionMask(n_queries, n_keys, causal=causal, given=given, device=q.device)
    ours = flex_attend(q, k, v, one.score_mod(), positions, keys, mask, None, compiled=False)
    return float((ours - attention(q, k, v, one, positions, keys, causal, given)).abs().max())


def cases():
    """Each case with the largest difference from attention by whole matrices."""
    for name, causal in HOOKED:
        label = f"{name}, {'causal' if causal else 'bidirectional'}"
        for n_queries in (17, 3, 1):
            yield f"{label}, {n_queries} of 17", difference(name, causal, n_queries, 17)
        for n_kv_heads in (1, 2):
            yield f"{label}, {n_kv_heads} key heads", difference(name, causal, 9, 9, n_kv_heads)
        rows = torch.stack([torch.arange(9), torch.tensor([0, 0, 0, 1, 2, 3, 4, 5, 6])])
        for shape in ((2, 9), (2, 9, 9), (2, N_HEADS, 9, 9)):
            allowed = torch.rand(*shape, generator=torch.Generator().manual_seed(1)) > 0.3
            # Every query sees the first key at least: what it gets without any is the kernel's affair.
            allowed[..., 0] = True
            yield f"{label}, mask of {len(shape)} axes", difference(name, causal, 9, 9, keys=rows, given=allowed)
