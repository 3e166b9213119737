"""Multi-head attention over any position scheme, and its cache."""

from __future__ import annotations

from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..encodings import PositionScheme, scheme
from ..errors import ModelInputError
from ..public import Count, Positive, Share, public
from .attention import attend, rotated


class KeyValueCache:
    """The keys and values of one layer. Keys are kept rotated, with their positions beside them.

    Example:
        >>> import torch
        >>> from posembed.models import KeyValueCache
        >>> cache = KeyValueCache()
        >>> for step in range(3):
        ...     k, v, positions = cache.append(torch.ones(1, 2, 1, 4), torch.ones(1, 2, 1, 4), torch.tensor([step]))
        >>> len(cache), positions
        (3, tensor([0, 1, 2]))
    """

    def __init__(self):
        self._parts: tuple[Tensor, Tensor, Tensor] | None = None
        self._gates: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self._parts is None else self._parts[0].shape[-2]

    def append(
        self,
        k: Float[Tensor, "batch heads seq d_head"],
        v: Float[Tensor, "batch heads seq d_value"],
        positions: Int[Tensor, "..."],
        *,
        position_axis: int = -1,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Add the keys, values and positions of new tokens, and return all so far.

        Args:
            k: the new keys, rotated.
            v: the new values.
            positions: theirs.
            position_axis: the axis of `positions` that holds the tokens; -2 where positions have coordinates.
        """
        if self._parts is not None:
            old_k, old_v, old_positions = self._parts
            k, v = torch.cat([old_k, k], -2), torch.cat([old_v, v], -2)
            positions = torch.cat([old_positions, positions], position_axis)
        self._parts = k, v, positions
        return self._parts

    def append_gates(self, gates: Float[Tensor, "batch heads seq"]) -> Float[Tensor, "batch heads key"]:
        """Add what a scheme reads of the new tokens (`PositionScheme.gates`), and return it of all so far."""
        self._gates = gates if self._gates is None else torch.cat([self._gates, gates], -1)
        return self._gates


class MultiHeadAttention(nn.Module):
    """Self-attention of several heads (Vaswani et al. 2017, section 3.2) with any position scheme.

    The scheme rotates queries and keys and adds its bias to the logits; what it adds to the embeddings is added once,
    before the first layer, and so not here. One code serves whole texts, padded and packed ones, and texts that grow
    with a cache.

    Args:
        d_model: the width.
        n_heads: the number of query heads.
        position_scheme: a `PositionScheme`, for a layer of many ``scheme.layer(i)``; or a name for `scheme`.
        causal: whether a token sees only itself and those before it; "positions" where tokens do not stand in the order
            of their positions, as `attend` explains.
        n_kv_heads: the number of heads of keys and values; fewer than n_heads is grouped-query attention (Ainslie et
            al. 2023), one is multi-query attention.
        bias: whether the four projections have one.
        dropout: of the attention weights, in training.
        logit_scale: what the products of queries and keys are multiplied by; by default 1 / sqrt(d_head). T5 has 1.

    Raises:
        EncodingInputError: a width that the heads do not divide, a scheme that is not defined for the objective.
        EncodingInputError: a name that no scheme has.
        ModelInputError: sizes or options of another kind; as it is called, heads that the key heads do not divide, a
            mask that does not fit.

    Example:
        >>> import torch
        >>> from posembed.models import KeyValueCache, MultiHeadAttention
        >>> _ = torch.manual_seed(0)
        >>> attention = MultiHeadAttention(32, 4, "rope", causal=True, n_kv_heads=2).eval()
        >>> x, cache = torch.randn(1, 5, 32), KeyValueCache()
        >>> steps = [attention(x[:, [i]], cache=cache) for i in range(5)]
        >>> torch.allclose(torch.cat(steps, 1), attention(x), atol=1e-6)
        True
    """

    @public(ModelInputError)
    def __init__(
        self,
        d_model: Count,
        n_heads: Count,
        position_scheme: PositionScheme | str = "nopos",
        *,
        causal: bool | Literal["positions"],
        n_kv_heads: Count | None = None,
        bias: bool = True,
        dropout: Share = 0.0,
        logit_scale: Positive | None = None,
    ):
        super().__init__()
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        self.position_scheme = scheme(position_scheme, d_model=d_model, n_heads=n_heads, causal=bool(causal))
        self.n_heads, self.n_kv_heads, self.d_head = n_heads, n_kv_heads, d_model // n_heads
        self.causal, self.dropout, self.logit_scale = causal, dropout, logit_scale
        self.query = nn.Linear(d_model, d_model, bias=bias)
        self.key = nn.Linear(d_model, n_kv_heads * self.d_head, bias=bias)
        self.value = nn.Linear(d_model, n_kv_heads * self.d_head, bias=bias)
        self.output = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        x: Float[Tensor, "batch seq d_model"],
        positions: Int[Tensor, "..."] | None = None,
        *,
        attention_mask: Any = None,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "batch seq d_model"]:
        """Attend.

        Args:
            x: the tokens; with a cache, the new ones.
            positions: theirs, "seq" or "batch seq"; by default they go on from the cache, or from 0.
            attention_mask: True, or 1, where attention is allowed: "batch key" (padding; with a cache, for all keys so
                far), "batch query key" or "batch heads query key".
            cache: of this layer; it is added to.
        """
        if positions is None:
            start = 0 if cache is None else len(cache)
            positions = torch.arange(start, start + x.shape[1], device=x.device)
        q, k, v = (self._heads(x, each) for each in (self.query, self.key, self.value))
        q, k = rotated(self.position_scheme, q, k, positions, positions)
        key_positions, gates = positions, self.position_scheme.gates(x)
        if cache is not None:
            axis = -1 if self.position_scheme.n_axes is None else -2
            k, v, key_positions = cache.append(k, v, positions, position_axis=axis)
            gates = None if gates is None else cache.append_gates(gates)
        mixed = attend(
            q,
            k,
            v,
            scheme=self.position_scheme,
            positions=positions,
            key_positions=key_positions,
            gates=gates,
            causal=self.causal,
            attention_mask=attention_mask,
            scale=self.logit_scale,
            dropout=self.dropout if self.training else 0.0,
        )
        return self.output(mixed.transpose(1, 2).flatten(2))

    def _heads(self, x: Tensor, projection: nn.Linear) -> Float[Tensor, "batch heads seq d_head"]:
        return projection(x).unflatten(-1, (-1, self.d_head)).transpose(1, 2)
