"""Shaw's relative positions: a vector for each offset, met by the query."""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Integer
from torch import Tensor, nn

from ..errors import EncodingInputError
from ..public import Count, NotNegative, public
from .interface import PositionScheme
from .learnable_sinusoids import LearnableSinusoidal
from .positions import offsets_between
from .sinusoids import Sinusoidal

Vectors = Literal["learned", "sinusoidal", "learnable_sinusoidal"]


class Shaw(PositionScheme):
    """Relative position representations (Shaw et al. 2018, equations 4 and 5), on the key side only.

    A query at i and a key at j add q_i . a_(j - i) / sqrt(d_head) to their logit, with one vector a for each offset
    clipped to -max_distance .. max_distance, the same for all heads of a layer. The vectors that the paper also adds to
    the values are left out.

    Args:
        d_head: the width of a head.
        max_distance: offsets beyond it share the vector of the last one. None, for sinusoidal vectors only: no limit.
        vectors: "learned"; "sinusoidal", the rows of the sinusoidal encoding at the offsets; "learnable_sinusoidal",
            those with trained frequencies.
        std: of the normal distribution that learned vectors are drawn from.

    Raises:
        EncodingInputError: a max_distance below 1, or none for learned vectors; an unknown kind of vectors.

    Example:
        >>> import torch
        >>> from posembed.encodings import Shaw
        >>> shaw, q, k = Shaw(4, max_distance=2), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4)
        >>> tuple(shaw.bias(q, k, torch.arange(5), torch.arange(5)).shape)
        (1, 2, 5, 5)
    """

    shared = False

    @public(EncodingInputError)
    def __init__(
        self, d_head: Count, *, max_distance: Count | None = 16, vectors: Vectors = "learned", std: NotNegative = 0.02
    ):
        super().__init__()
        if max_distance is None and vectors == "learned":
            raise EncodingInputError("learned vectors need a max_distance; beyond it offsets share one")
        self.d_head, self.max_distance, self.vectors = d_head, max_distance, vectors
        if vectors == "learned" and max_distance is not None:
            self.weight = nn.Parameter(torch.empty(2 * max_distance + 1, d_head))
            nn.init.normal_(self.weight, std=std)
        else:
            self.sinusoids = (Sinusoidal if vectors == "sinusoidal" else LearnableSinusoidal)(d_head)

    def bias(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads_kv key d_head"],
        positions: Integer[Tensor, "..."],
        key_positions: Integer[Tensor, "..."],
    ) -> Float[Tensor, "batch heads query key"]:
        """Return q_i . a_(j - i) / sqrt(d_head) for every query and key."""
        offsets = offsets_between(q, k, positions, key_positions)
        if self.max_distance is None:  # each offset that there is, and where
            each, index = offsets.unique(return_inverse=True)
        else:
            far = self.max_distance
            each = torch.arange(-far, far + 1, device=q.device)
            index = offsets.clamp(-far, far) + far
        by_offset = F.linear(q, self.relative_vectors(each).to(q.dtype)) / math.sqrt(self.d_head)
        return by_offset.gather(-1, (index[:, None] if index.ndim > 2 else index).expand(*q.shape[:-1], -1))

    def relative_vectors(self, offsets: Integer[Tensor, " offsets"]) -> Float[Tensor, "offsets d_head"]:
        """Return the vector of each offset, key position minus query position."""
        if self.max_distance is not None:
            offsets = offsets.clamp(-self.max_distance, self.max_distance)
        if self.vectors == "learned":
            return F.embedding(offsets + len(self.weight) // 2, self.weight)
        return self.sinusoids.rows(offsets)
