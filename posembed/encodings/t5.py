"""T5's bias: one learned number for each head and bucket of offsets."""

from __future__ import annotations

import bisect

import torch
import torch.nn.functional as F
from jaxtyping import Float, Integer
from torch import Tensor, nn

from ..errors import EncodingInputError
from ..public import Count, public
from .interface import CAUSAL, PositionScheme, ScoreMod


class T5(PositionScheme):
    """Relative position buckets (Raffel et al. 2020, section 2.1, and the authors' code).

    Offsets share a bucket: about half of the buckets hold one distance each, the last one all beyond `max_distance` and
    some before it, and those between ranges that widen about as the distance does: 3, 2, 3, 3, 4, ..., 14 distances in
    a causal model. Where a model is bidirectional, the past and the future have half of the buckets each (and bucket
    n_buckets / 2 stays empty, as in T5); where it is causal, the past has all of them.

    T5 itself does not divide its logits by the root of the head width; attention does, unless told otherwise.

    Args:
        n_heads: the number of heads.
        causal: whether only the past is attended to.
        n_buckets: the number of buckets, even where the model is bidirectional.
        max_distance: from here on all share the last bucket, which begins a little before: at 113 for 128 in a causal
            model.
        table: "buckets heads" to start from instead, copied, such as ``relative_attention_bias.weight`` of a
            checkpoint.

    Raises:
        EncodingInputError: a table of other sizes; too few buckets, an odd number of them in a bidirectional model, a
            max_distance that leaves no range for the wider buckets.

    Example:
        >>> import torch
        >>> from posembed.encodings import T5
        >>> T5(8, causal=True).bucket(torch.tensor([0, -1, -15, -16, -128, -10**6]))
        tensor([ 0,  1, 15, 16, 31, 31])

        The bias of a T5 of transformers, here one that nobody has trained, and its properties, a head at a time. Of a
        checkpoint on the hub ``load_table(source, name="encoder.block.0...relative_attention_bias.weight", offset=0)``
        reads this tensor alone.

        >>> from transformers import T5Config, T5EncoderModel
        >>> from posembed import load_table, properties
        >>> model = T5EncoderModel(T5Config(vocab_size=9, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2))
        >>> name = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        >>> bias = T5(2, causal=False, table=load_table(model, name=name, offset=0).weight)
        >>> [head.translation_invariance for head in properties(bias, n=64)]
        [1.0, 1.0]
    """

    @public(EncodingInputError)
    def __init__(
        self,
        n_heads: Count,
        *,
        causal: bool,
        n_buckets: Count = 32,
        max_distance: Count = 128,
        table: Float[Tensor, "buckets heads"] | None = None,
    ):
        super().__init__()
        self.n_heads, self.causal, self.n_buckets, self.max_distance = n_heads, causal, n_buckets, max_distance
        # The buckets of one side: a causal model has one side, the other kind two.
        self.side = n_buckets if causal else n_buckets // 2
        if n_buckets < 2 or (not causal and (n_buckets < 4 or n_buckets % 2)):
            raise EncodingInputError(
                f"n_buckets is {n_buckets}; it must be at least 2, in a bidirectional model at least 4 and even"
            )
        if max_distance <= self.side // 2:
            raise EncodingInputError(
                f"max_distance is {max_distance}; with {n_buckets} buckets it must be above {self.side // 2}"
            )
        if causal:
            self.objectives = frozenset({CAUSAL})
        self.weight = nn.Parameter(torch.empty(n_buckets, n_heads))
        if table is None:
            nn.init.normal_(self.weight, std=0.02)
        elif table.shape == self.weight.shape:
            self.weight.data.copy_(table)
        else:
            raise EncodingInputError(
                f"table is {tuple(table.shape)}; it must be {(n_buckets, n_heads)}: buckets, heads"
            )
        # On the CPU also inside `with torch.device("meta")`: no weights replace it.
        self.first_distances = torch.tensor(_first_distances(self.side, max_distance), device="cpu")

    def bucket(self, offsets: Integer[Tensor, "*shape"]) -> Integer[Tensor, "*shape"]:
        """Return the bucket of each offset, key position minus query position."""
        distances = (-offsets).clamp(min=0) if self.causal else offsets.abs()
        buckets = torch.bucketize(distances, self.first_distances.to(offsets.device), right=True) - 1
        return buckets if self.causal else buckets + self.side * (offsets > 0)

    def bias_by_offset(self, offsets: Integer[Tensor, " offsets"]) -> Float[Tensor, "heads offsets"]:
        """Return the learned number of each offset's bucket, for each head."""
        return F.embedding(self.bucket(offsets), self.weight).T

    def score_mod(self) -> ScoreMod:
        far = self.max_distance
        by_offset = self.bias_by_offset(torch.arange(-far, far + 1, device=self.weight.device))

        def hook(score, batch, head, query, key):
            return score + by_offset[head, (key - query).clamp(-far, far) + far]

        return hook


def _first_distances(n_buckets: int, max_distance: int) -> list[int]:
    """The smallest distance in each bucket of one side.

    Distance n is in bucket exact + floor(log(n / exact) / log(max / exact) * wide). With whole numbers the bound of the
    k-th wide bucket, n^wide >= exact^(wide - k) max^k, is decided without rounding.
    """
    exact = n_buckets // 2
    wide = n_buckets - exact
    candidates = range(exact, max_distance + 1)
    bounds = [exact ** (wide - k) * max_distance**k for k in range(wide)]
    return [*range(exact), *(candidates[bisect.bisect_left(candidates, b, key=lambda n: n**wide)] for b in bounds)]
