"""A small language model that handles its positions in any of the usual ways: right, for a bug to change one method."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

VOCABULARY, WIDTH, HEADS, ROWS, N_LAYERS = 40, 48, 4, 64, 2
D_HEAD = WIDTH // HEADS
Cache = list[tuple[Tensor, Tensor, Tensor]]


class Reference(nn.Module):
    """Two layers of attention, with positions in them or before them.

    Its methods are the places where reports say that ports went wrong; a bug is a class that overrides one or two.

    Attributes:
        scheme: "table", "sinusoid", "rope", "alibi" or "t5".
        causal: whether tokens see only themselves and those before them.
        window: how many keys a token sees, itself among them; None for all.
        offset: how many rows of a table stand before position 0.
        base: of the angles, by layer.
        scale: what positions are divided by, by layer.
        rotary: how many columns of a head turn.
        heads: how many heads there are.
    """

    scheme = "rope"
    causal = True
    window: int | None = None
    offset = 0
    base: tuple[float, ...] = (100.0, 100.0)
    scale: tuple[float, ...] = (1.0, 1.0)
    rotary = D_HEAD
    heads = HEADS

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.words = nn.Embedding(VOCABULARY, WIDTH)
            # Where rows stand before position 0, the last of them is that of padding, as in RoBERTa.
            padding = self.offset - 1 if self.offset else None
            self.wpe = nn.Embedding(ROWS + self.offset, WIDTH, padding) if self.scheme == "table" else None
            self.buckets = nn.Embedding(8 if self.causal else 16, self.heads) if self.scheme == "t5" else None
            self.mix = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(N_LAYERS))
            self.out = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(N_LAYERS))
            self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(
        self,
        ids: Tensor,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> tuple[Tensor, Cache]:
        past = 0 if cache is None else cache[0][0].shape[2]
        at = self.positions(ids, mask, past) if positions is None else self.given(positions, past)
        x, kept = self.words(ids), []
        if self.scheme in ("table", "sinusoid"):
            x = x + self.rows(at)
        for layer in range(N_LAYERS):
            q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in self.mix[layer](x).chunk(3, -1))
            keys_at = at
            if self.scheme == "rope":
                q, k = self.turn(q, at, layer), self.turn(k, at, layer)
            if cache is not None:
                k, v, keys_at = self.joined(cache[layer], k, v, at)
            kept.append((k, v, keys_at))
            seen = self.seen(q.shape[2], k.shape[2], mask)
            logits = q @ k.transpose(-1, -2) * self.sharpness(layer) / math.sqrt(q.shape[-1])
            if self.scheme in ("alibi", "t5"):
                logits = logits + self.bias(at, keys_at)
            weights = logits.masked_fill(~seen, torch.finfo(logits.dtype).min).softmax(-1)
            x = x + self.out[layer]((weights @ v).transpose(1, 2).flatten(2))
        return self.head(x), kept

    def positions(self, ids: Tensor, mask: Tensor | None, past: int) -> Tensor:
        """Count the tokens, and no padding, from what the cache holds on."""
        n = ids.shape[1]
        if mask is not None and mask.ndim == 2:
            return (mask.long().cumsum(1) - 1).clamp(min=0)[:, -n:]
        return torch.arange(past, past + n).expand_as(ids)

    def given(self, positions: Tensor, past: int) -> Tensor:
        """Take positions as they are given."""
        return positions

    def joined(
        self, cached: tuple[Tensor, Tensor, Tensor], k: Tensor, v: Tensor, at: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Put new keys and values, with their positions, behind those of the cache."""
        return torch.cat([cached[0], k], 2), torch.cat([cached[1], v], 2), torch.cat([cached[2], at], 1)

    def rows(self, at: Tensor) -> Tensor:
        """What is added to the words."""
        if self.wpe is not None:
            return self.wpe(at + self.offset)
        return self.sinusoids(at)

    def sinusoids(self, at: Tensor) -> Tensor:
        """Sine and cosine side by side, from 1 to 1/10000."""
        angles = at[..., None] * 10000.0 ** -(torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH)
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2).to(self.words.weight.dtype)

    def frequencies(self, layer: int) -> Tensor:
        """The angle of each pair for one position."""
        return self.base[layer] ** -(torch.arange(0, self.rotary, 2, dtype=torch.float64) / self.rotary)

    def angles(self, at: Tensor, layer: int) -> Tensor:
        """The angle of each pair, "batch seq pairs"."""
        return at[..., None] / self.scale[layer] * self.frequencies(layer)

    def turn(self, x: Tensor, at: Tensor, layer: int) -> Tensor:
        """Turn queries or keys, "batch heads seq d_head", by their positions; column i goes with i + half."""
        angles = self.angles(at, layer)[:, None]
        cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        turned, rest = x[..., : self.rotary], x[..., self.rotary :]
        one, two = turned.chunk(2, -1)
        return torch.cat([one * cosine - two * sine, two * cosine + one * sine, rest], -1)

    def sharpness(self, layer: int) -> float:
        """What logits are multiplied by, beside the width."""
        return 1.0

    def slopes(self) -> Tensor:
        """Those of ALiBi's code: of the next lower power of two, then every second one of the next higher."""
        power = 2 ** int(math.log2(self.heads))
        first = 2.0 ** (-8 * torch.arange(1, power + 1) / power)
        more = 2.0 ** (-4 * torch.arange(1, 2 * power, 2) / power)
        return torch.cat([first, more])[: self.heads]

    def bias(self, queries: Tensor, keys: Tensor) -> Tensor:
        """What is added to the logits, "batch heads query key"."""
        back = queries[:, :, None] - keys[:, None]
        if self.buckets is None:
            return -self.slopes().to(self.head.weight.dtype)[:, None, None] * back.abs()[:, None]
        return self.buckets(self.bucket(back)).permute(0, 3, 1, 2)

    def bucket(self, back: Tensor) -> Tensor:
        """T5's: one for each small distance, wider ones beyond; with both directions, half of them for each."""
        side = 0 if self.causal else 8 * (back < 0).long()
        distance = back.clamp(min=0) if self.causal else back.abs()
        far = 4 + (torch.log(distance.clamp(min=1) / 4) / math.log(32 / 4) * 4).long()
        return side + torch.where(distance < 4, distance, far.clamp(max=7))

    def seen(self, n: int, m: int, mask: Tensor | None) -> Tensor:
        """Which keys a query may see, "batch 1 query key"; a mask of three axes says all by itself."""
        back = torch.arange(m - n, m)[:, None] - torch.arange(m)
        free = not self.causal or (mask is not None and mask.ndim == 3)
        seen = (torch.ones(n, m, dtype=torch.bool) if free else back >= 0)[None]
        if self.window is not None:
            seen = seen & (back < self.window)
        if mask is not None:
            seen = seen & (mask if mask.ndim == 3 else mask[:, None])
        return seen[:, None]


def settings(model: Reference) -> dict[str, Any]:
    """What `posembed.audit` is told of such a model."""
    relative = model.scheme in ("rope", "alibi", "t5")
    return {
        "vocab_size": VOCABULARY,
        "causal": model.causal,
        "n_positions": ROWS if model.scheme == "table" else None,
        "window": model.window,
        "n_layers": N_LAYERS,
        **({"relative": True} if relative else {}),
    }
