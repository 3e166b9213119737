"""PoPE: each column of a query or a key has a magnitude that says what, and a phase that says where."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Integer
from torch import Tensor, nn

from ..errors import EncodingInputError
from ..public import Count, Positive, public
from .angles import angles, frequencies
from .interface import PositionScheme
from .positions import check_positions, compute_dtype, for_heads


class PoPE(PositionScheme):
    """Polar coordinate position embedding (Gopalakrishnan et al. 2025).

    Column c of a query q at position t has the magnitude softplus(q_c) and the phase t w_c, that of a key k at s the
    magnitude softplus(k_c) and the phase s w_c + delta_c, with w_c = base^(-c / d_head). The product of the two is the
    sum over c of softplus(q_c) softplus(k_c) cos((s - t) w_c + delta_c). delta is learned for each head and column,
    begins at zero, and is held in -2 pi to 0 where it is read. Here queries turn back by delta, which gives the same
    product: in grouped-query attention keys are those of several heads, and each of these has its own.

    `rotate` gives the parts along the cosine of all columns and behind them those along the sine, twice the width of a
    head; values keep theirs, and attention scales by 1 / sqrt(d_head), of the head as it was.

    Args:
        d_head: the width of a head.
        n_heads: the number of query heads.
        base: the wavelengths go from 2 pi almost to 2 pi base.

    Raises:
        EncodingInputError: sizes below 1, a base that is not positive; queries of another number of heads.

    Example:
        >>> import torch
        >>> from posembed.encodings import PoPE
        >>> one, q, k = PoPE(4, n_heads=1), *torch.randn(2, 1, 1, 4, generator=torch.Generator().manual_seed(0))
        >>> at = lambda t, s: one.rotate(q, torch.tensor([t])) @ one.rotate_keys(k, torch.tensor([s])).mT
        >>> one.rotate(q, torch.tensor([3])).shape, torch.allclose(at(7, 1), at(1007, 1001))
        (torch.Size([1, 1, 8]), True)
    """

    shared = False
    widens = 2

    @public(EncodingInputError)
    def __init__(self, d_head: Count, n_heads: Count, *, base: Positive = 10000.0):
        super().__init__()
        self.d_head, self.n_heads, self.base = d_head, n_heads, base
        self.frequencies = frequencies(2 * d_head, base)
        self.delta = nn.Parameter(torch.zeros(n_heads, d_head))

    def rotate(
        self, x: Float[Tensor, "*batch heads seq d_head"], positions: Integer[Tensor, "..."]
    ) -> Float[Tensor, "*batch heads seq twice"]:
        """Give queries their magnitudes and phases, less delta, in float32 at least, rounded once."""
        check_positions(positions, x, width=self.d_head)
        if x.ndim < 3 or x.shape[-3] != self.n_heads:
            raise EncodingInputError(f"queries are {tuple(x.shape)}; they must be (..., {self.n_heads} heads, seq, d)")
        at = for_heads(angles(positions[..., None], self.frequencies), x)
        return _polar(x, at - self.delta.clamp(-2 * math.pi, 0).to(at.device).double()[:, None])

    def rotate_keys(
        self, x: Float[Tensor, "*batch seq d_head"], positions: Integer[Tensor, "..."]
    ) -> Float[Tensor, "*batch seq twice"]:
        """The same for keys, whose phases are those of their positions."""
        check_positions(positions, x, width=self.d_head)
        return _polar(x, for_heads(angles(positions[..., None], self.frequencies), x))


def _polar(x: Tensor, phases: Tensor) -> Tensor:
    size = F.softplus(x.to(compute_dtype(x)))
    parts = [size * part.to(size.dtype).to(x.device) for part in (phases.cos(), phases.sin())]
    return torch.cat(parts, -1).to(x.dtype)
