"""Scalable-softmax: logits that grow with the logarithm of the number of keys, so that weights do not flatten."""

from __future__ import annotations

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from ..errors import EncodingInputError
from ..public import Count, Positive, public
from .interface import CAUSAL, PositionScheme
from .positions import check_positions, compute_dtype, for_heads, known


class ScaledLogits(PositionScheme):
    """Scalable-softmax (Nakanishi 2025, Scalable-Softmax Is Superior for Attention).

    The products of a query with its keys are multiplied by s log n, with n the number of keys up to its own, its
    position + 1, and s learned for each head of each layer. It is done to the query, so that what other schemes make of
    the product is scaled too, and a bias that is added to it, as ALiBi's, is not. By itself it tells no key from
    another; join it with a scheme that does: "scaled_logits+rope".

    Args:
        n_heads: the number of query heads.
        start: what s is at first; by default that of the paper's figure 1. With 0.43 ten keys leave logits as they are.

    Raises:
        EncodingInputError: fewer than one head, a start that is not positive; queries of another number of heads;
            negative positions.

    Example:
        >>> import torch
        >>> from posembed.encodings import ScaledLogits
        >>> one, q = ScaledLogits(1, start=1.0), torch.ones(1, 1, 3, 2)
        >>> one.rotate(q, torch.tensor([0, 1, 7]))[0, 0, :, 0].detach()
        tensor([0.0000, 0.6931, 2.0794])
    """

    objectives = frozenset({CAUSAL})
    shared = False

    @public(EncodingInputError)
    def __init__(self, n_heads: Count, *, start: Positive = 0.43):
        super().__init__()
        self.n_heads, self.start = n_heads, start
        self.scale = nn.Parameter(torch.full((n_heads,), float(start)))

    def rotate(
        self, x: Float[Tensor, "*batch heads seq d_head"], positions: Integer[Tensor, "..."]
    ) -> Float[Tensor, "*batch heads seq d_head"]:
        """Multiply queries by s log n, in float32 at least."""
        check_positions(positions, x)
        if known(positions) and bool((positions.long() < 0).any()):
            raise EncodingInputError("a position is negative; keys are counted by positions here, so start at 0")
        if x.ndim < 3 or x.shape[-3] != self.n_heads:
            raise EncodingInputError(f"queries are {tuple(x.shape)}; they must be (..., {self.n_heads} heads, seq, d)")
        dtype = compute_dtype(x)
        counts = for_heads((positions.long() + 1).to(dtype).unsqueeze(-1), x)
        return (x.to(dtype) * self.scale.to(dtype)[:, None, None] * counts.log()).to(x.dtype)

    def rotate_keys(
        self, x: Float[Tensor, "*batch seq d_head"], positions: Integer[Tensor, "..."]
    ) -> Float[Tensor, "*batch seq d_head"]:
        """Leave keys as they are."""
        return x
