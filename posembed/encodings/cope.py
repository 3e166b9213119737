"""CoPE: positions counted by what the keys say, not by where they stand."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor, nn

from ..errors import EncodingInputError
from ..public import Count, public
from .interface import CAUSAL, PositionScheme
from .positions import compute_dtype, without_autocast


class CoPE(PositionScheme):
    """Contextual position encoding (Golovneva et al. 2024).

    The gate of a query i and a key j is sigmoid(q_i . k_j / sqrt(d_head)); the position of j as seen from i is the sum
    of the gates from j to i, at most n_positions - 1. Between whole positions the bias q_i . e[p] is interpolated.
    Positions given from outside are not used. A query counts the keys that it may see, so `bias` must be told which.

    Args:
        d_head: the width of a head.
        n_positions: how many positions can be told apart.

    Raises:
        EncodingInputError: sizes below 1.

    Example:
        >>> import torch
        >>> from posembed.encodings import CoPE
        >>> cope, q = CoPE(4, n_positions=8), torch.ones(1, 1, 3, 4)
        >>> causal = torch.ones(3, 3).tril().bool()
        >>> cope.counted(q, 100 * q, causal)[0, 0]  # every gate is open: each visible key counts as one
        tensor([[1., 0., 0.],
                [2., 1., 0.],
                [3., 2., 1.]])
    """

    sizes = ("d_head",)
    objectives = frozenset({CAUSAL})
    shared = False
    reads_mask = True

    @public(EncodingInputError)
    def __init__(self, d_head: Count, *, n_positions: Count = 64):
        super().__init__()
        self.d_head, self.n_positions = d_head, n_positions
        # Zero, as in the authors' code: at first all positions are alike.
        self.weight = nn.Parameter(torch.zeros(n_positions, d_head))

    def bias(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads_kv key d_head"],
        positions: Integer[Tensor, "..."],
        key_positions: Integer[Tensor, "..."],
        visible: Bool[Tensor, "... query key"] | None = None,
    ) -> Float[Tensor, "batch heads query key"]:
        """Return q_i . e[p_ij] for every query and key, interpolated between whole positions."""
        if visible is None or visible.dtype != torch.bool:
            raise EncodingInputError("cope counts the keys that a query may see; pass visible=, True where it may")
        counted = self.counted(q, k, visible).clamp(max=self.n_positions - 1)
        below = counted.floor().long()
        above = (below + 1).clamp(max=self.n_positions - 1)
        logits = (q @ self.weight.to(q.dtype).T).to(counted.dtype)
        return torch.lerp(logits.gather(-1, below), logits.gather(-1, above), counted - below)

    def counted(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads_kv key d_head"],
        visible: Bool[Tensor, "... query key"],
    ) -> Float[Tensor, "batch heads query key"]:
        """Return the contextual position of every key for every query: the open gates from the key on."""
        k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
        # In float32 at least: a sum of many gates in bfloat16 stops growing at 256.
        dtype = compute_dtype(q)
        with without_autocast(q):
            gates = (q.to(dtype) @ k.to(dtype).mT / math.sqrt(self.d_head)).sigmoid() * visible
        return gates.flip(-1).cumsum(-1).flip(-1)
