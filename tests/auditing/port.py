"""A small language model as somebody would port it, right, or with one of the faults that were reported."""

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, WIDTH, HEADS, ROWS = 40, 32, 4, 64


class Port(nn.Module):
    """Two layers of attention with rotary angles, or with a table of positions.

    Args:
        fault: what is wrong with it; empty for nothing.
        scheme: "rope" or "table".
        causal: whether tokens see only themselves and those before them.
        window: how many keys a token sees.
    """

    def __init__(self, fault="", *, scheme="rope", causal=True, window=None):
        super().__init__()
        self.fault, self.scheme, self.causal, self.window = fault, scheme, causal, window
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.words = nn.Embedding(VOCABULARY, WIDTH)
            self.wpe = nn.Embedding(ROWS, WIDTH) if scheme == "table" else None
            self.mix = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(2))
            self.out = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))
            self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids, positions=None, mask=None, cache=None):
        past = 0 if cache is None else cache[0][0].shape[2]
        positions = self.positions(ids, positions, mask, past)
        x = self.words(ids)
        if self.wpe is not None:
            x = x + self.wpe(self.row(positions))
        kept = []
        for layer, (mix, out) in enumerate(zip(self.mix, self.out, strict=True)):
            q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in mix(x).chunk(3, -1))
            if self.scheme == "rope":
                q, k = self.turned(q, positions), self.turned(k, positions)
            if cache is not None:
                k, v = torch.cat([cache[layer][0], k], 2), torch.cat([cache[layer][1], v], 2)
            kept.append((k, v))
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=self.seen(q, k, mask))
            x = x + out(mixed.transpose(1, 2).flatten(2))
        return self.head(x), kept

    def positions(self, ids, positions, mask, past):
        if positions is None or self.fault == "positions are ignored":
            start = 0 if self.fault == "restarts" else past + (self.fault == "cache off by one" and past > 0)
            if mask is not None and mask.ndim == 2 and self.fault != "counts padding":
                counted = (mask.long().cumsum(1) - 1).clamp(min=0)[:, past:]
                if past == 0 or self.fault != "counts padding behind a cache":
                    return counted
            return torch.arange(start, start + ids.shape[1]).expand_as(ids)
        return positions[:, :1] + torch.arange(ids.shape[1]) if self.fault == "taken for contiguous" else positions

    def row(self, positions):
        if self.fault == "wraps":
            return positions % ROWS
        if self.fault == "cut":
            return positions.clamp(max=ROWS - 1)
        return positions + 1 if self.fault == "skips a row" else positions

    def turned(self, x, positions):
        half = x.shape[-1] // 2
        frequencies = 100.0 ** -(torch.arange(half, dtype=torch.float64) / half)
        if self.fault == "heads and sequence exchanged":
            angles = torch.arange(x.shape[1])[:, None, None] * frequencies
        else:
            angles = positions[:, None, :, None] * frequencies
        if self.fault == "bfloat16":
            angles = (positions[:, None, :, None].bfloat16() * frequencies.bfloat16()).double()
        cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        one, two = x[..., :half], x[..., half:]
        if self.fault == "two layouts":
            cosine, sine = (torch.cat([part, part], -1) for part in (cosine, sine))
            quarter = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
            return x * cosine + quarter * sine
        return torch.cat([one * cosine - two * sine, two * cosine + one * sine], -1)

    def seen(self, q, k, mask):
        n, m = q.shape[2], k.shape[2]
        back = torch.arange(m - n, m)[:, None] - torch.arange(m)
        if self.fault == "top left":
            back = torch.arange(n)[:, None] - torch.arange(m)
        # Another mask than this one may part the texts, and say what is causal.
        seen = (
            torch.ones(1, n, m, dtype=torch.bool)
            if not self.causal or (mask is not None and mask.ndim == 3)
            else (back >= 0)[None]
        )
        if self.fault == "causality lost with a cache" and m > n:
            seen = torch.ones(1, n, m, dtype=torch.bool)
        if self.fault == "sees the next":
            seen = (back >= -1)[None]
        if self.window is not None:
            seen = seen & (back < self.window + (self.fault == "window off by one"))
        dropped = self.fault == "padding is seen" or (self.fault == "mask dropped with a cache" and m > n)
        if mask is None or (mask.ndim == 2 and dropped):
            return seen[:, None]
        if mask.ndim == 3 and self.fault == "packing leaks":
            return (seen & (back >= 0))[:, None]
        return (seen & (mask if mask.ndim == 3 else mask[:, None]))[:, None]


class BatchMates(Port):
    """The mean of the batch is taken off, as if it were that of the features."""

    def forward(self, ids, positions=None, mask=None, cache=None):
        logits, cache = super().forward(ids, positions, mask, cache)
        return logits - logits.mean(0, keepdim=True) / 2, cache
