"""A Transformer layer without positions that counts its tokens, with every weight written down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..errors import ModelInputError
from ..models import MultiHeadAttention, attend
from ..public import Count, public

# What each of the three channels of a hidden state holds.
MARK, SHARE, COUNT = range(3)
# The word that carries the mark.
BOS = 0


@dataclass(frozen=True, eq=False)
class CountingSteps:
    """What happens inside a `CountingTransformer`, token by token.

    Attributes:
        attention: row t spreads itself evenly over the first t tokens.
        share: how much of it the first token gets, 1/t.
        hidden: the units of the hidden layer; unit s, from 2 on, holds ``max(s share - 1, 0)``.
        count: what comes out, t.

    Example:
        >>> import torch
        >>> from posembed.mechanisms import CountingTransformer
        >>> CountingTransformer(4).steps(torch.tensor([[0, 1, 1, 1]])).hidden[0].round(decimals=2)
        tensor([[1.0000, 2.0000, 3.0000],
                [0.0000, 0.5000, 1.0000],
                [0.0000, 0.0000, 0.3300],
                [0.0000, 0.0000, 0.0000]], dtype=torch.float64)
    """

    attention: Float[Tensor, "batch seq seq"]
    share: Float[Tensor, "batch seq"]
    hidden: Float[Tensor, "batch seq units"]
    count: Float[Tensor, "batch seq"]


class CountingTransformer(nn.Module):
    """One causal layer without positions that tells each token how many there are up to it.

    Kazemnejad et al. (2023) prove that the first layer of a causal model without positions can find them where the
    text begins with a token of its own; the weights here are our own, all of them whole numbers:

    - Words: the first token carries a mark of 1, all others carry 0.
    - Attention: queries and keys are zero, so token t spreads itself evenly over the t tokens it sees. Values are the
      marks: what arrives is the share 1/t of the one that is marked.
    - Feed-forward: a piecewise linear function through the points (1/t, t) for t = 1, ..., T,
      ``T - (T - 1) relu(T u - 1) + 2 sum of relu(s u - 1) over s = 2, ..., T - 1`` with u the share.

    At 1/t that is t, by arithmetic; in float64 rounding leaves less than 1e-9 at T = 1024. Beyond T every unit is at
    zero and the layer says T for ever: shares lie between 0 and 1, where any continuous function is bounded, so no
    feed-forward network of a fixed size could count on. There is no LayerNorm, which would divide by the spread.

    Args:
        n_positions: up to where it counts, T; two or more.
        vocab_size: the number of words. Every text begins with word 0, which stands nowhere else.

    Raises:
        ModelInputError: sizes that cannot be meant; ids with the first word missing or a second time.

    Example:
        >>> import torch
        >>> from posembed.mechanisms import CountingTransformer
        >>> model = CountingTransformer(5)
        >>> model(torch.tensor([[0, 1, 1, 1, 1, 1, 1]])).round(decimals=9)
        tensor([[1., 2., 3., 4., 5., 5., 5.]], dtype=torch.float64)
        >>> model.feed_forward[2].weight[2]
        tensor([ 2.,  2.,  2., -4.], dtype=torch.float64)
    """

    @public(ModelInputError)
    def __init__(self, n_positions: Count, *, vocab_size: Count = 2):
        super().__init__()
        self.words = nn.Embedding(vocab_size, 3)
        self.attention = MultiHeadAttention(3, 1, "nopos", causal=True)
        self.feed_forward = nn.Sequential(nn.Linear(3, n_positions - 1), nn.ReLU(), nn.Linear(n_positions - 1, 3))
        self.double().requires_grad_(False)
        self._write_weights(n_positions)

    def forward(self, ids: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch seq"]:
        """Return the position of each token, counted from 1."""
        x = self._attended(ids)
        return (x + self.feed_forward(x))[..., COUNT]

    def steps(self, ids: Int[Tensor, "batch seq"]) -> CountingSteps:
        """Return what happens on the way."""
        x = self._attended(ids)
        words = self.words(ids)
        q, k = (each(words)[:, None] for each in (self.attention.query, self.attention.key))
        # Values that are the rows of the identity: what comes out are the weights.
        identity = torch.eye(ids.shape[1], dtype=x.dtype, device=x.device).expand(len(ids), 1, -1, -1)
        return CountingSteps(
            attention=attend(q, k, identity, causal=True)[:, 0],
            share=x[..., SHARE],
            hidden=self.feed_forward[:2](x),
            count=self(ids),
        )

    def _attended(self, ids: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch seq 3"]:
        first = ids == BOS
        if not bool(first[:, 0].all()) or bool(first[:, 1:].any()):
            raise ModelInputError(f"a text must begin with word {BOS}, its mark, and have it nowhere else")
        words = self.words(ids)
        return words + self.attention(words)

    def _write_weights(self, n_positions: int) -> None:
        for parameter in self.parameters():
            parameter.zero_()
        self.words.weight[BOS, MARK] = 1
        self.attention.value.weight[SHARE, MARK] = 1
        self.attention.output.weight[SHARE, SHARE] = 1
        first: Any = self.feed_forward[0]
        last: Any = self.feed_forward[2]
        first.weight[:, SHARE] = torch.arange(2, n_positions + 1)
        first.bias.fill_(-1)
        last.weight[COUNT] = 2
        last.weight[COUNT, -1] = 1 - n_positions
        last.bias[COUNT] = n_positions
