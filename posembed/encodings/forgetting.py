"""The Forgetting Transformer: each token says how much of all before it is kept."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Bool, Float, Integer
from torch import Tensor, nn

from ..errors import EncodingInputError
from ..public import Count, public
from .interface import CAUSAL, PositionScheme
from .positions import compute_dtype, without_autocast


class Forgetting(PositionScheme):
    """Forgetting attention (Lin et al. 2025, Forgetting Transformer).

    Each token x_t has a gate f_t = sigmoid(w . x_t + b) for each head. The bias of a query i and a key j is the sum of
    log f_t for t from j + 1 to i: a gate is a factor on the weight of every key before its token. A gate that is the
    same for all tokens gives ALiBi, with the slope -log f. Only the keys that the query may see are counted, and
    positions given from outside are not used.

    Args:
        d_model: the width of what enters the layer's attention.
        n_heads: the number of heads.

    Raises:
        EncodingInputError: sizes below 1.

    Example:
        >>> import torch
        >>> from posembed.encodings import Forgetting
        >>> one, visible = Forgetting(4, n_heads=1), torch.ones(3, 3).tril().bool()
        >>> at, q, gates = torch.arange(3), torch.zeros(1, 1, 3, 4), torch.tensor([[[-0.5, -1.0, -2.0]]])
        >>> one.bias(q, q, at, at, visible=visible, gates=gates)[0, 0].tril()
        tensor([[ 0.,  0.,  0.],
                [-1.,  0.,  0.],
                [-3., -2.,  0.]])
    """

    objectives = frozenset({CAUSAL})
    shared = False
    reads_mask = True

    @public(EncodingInputError)
    def __init__(self, d_model: Count, n_heads: Count):
        super().__init__()
        self.d_model, self.n_heads = d_model, n_heads
        # As in the authors' code, small weights and no bias: at first half is kept at each token.
        self.gate = nn.Linear(d_model, n_heads)
        nn.init.normal_(self.gate.weight, std=0.02)
        nn.init.zeros_(self.gate.bias)

    def gates(self, x: Float[Tensor, "batch seq d_model"]) -> Float[Tensor, "batch heads seq"]:
        """Return log f of every token and head, in float32 at least: sums of many are taken."""
        dtype = compute_dtype(x)
        with without_autocast(x):
            return F.logsigmoid(F.linear(x.to(dtype), *(each.to(dtype) for each in self.gate.parameters()))).mT

    def bias(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads_kv key d_head"],
        positions: Integer[Tensor, "..."],
        key_positions: Integer[Tensor, "..."],
        visible: Bool[Tensor, "... query key"] | None = None,
        gates: Float[Tensor, "batch heads key"] | None = None,
    ) -> Float[Tensor, "batch heads query key"]:
        """Return the sum of the log gates of all visible keys behind each key."""
        if visible is None or gates is None:
            raise EncodingInputError(
                "forgetting sums the log gates of the keys that a query may see; pass visible=, True where it may, and "
                "gates=scheme.gates(x), of all keys"
            )
        seen = gates[..., None, :] * visible
        return seen.flip(-1).cumsum(-1).flip(-1) - seen
