"""FIRE: a small network reads the distance, relative to how far back the query could look."""

from __future__ import annotations

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from ..errors import EncodingInputError
from ..public import Count, Positive, public
from .interface import CAUSAL, PositionScheme
from .positions import compute_dtype, known, offsets_between, without_autocast

# Added to the divisor, as in the authors' code.
EPSILON = 1e-6


class FIRE(PositionScheme):
    """Functional interpolation for relative positions (Li et al. 2024, FIRE).

    The bias is f(psi(i - j) / psi(max(L, i))) with psi(x) = log(abs(c) x + 1) and f a network with one hidden layer of
    ReLU units. However far a query at i looks back, what f reads stays between 0 and 1. c and L are learned.

    Args:
        n_heads: the number of heads.
        width: of the hidden layer.
        threshold: L at the start.
        log_scale: c at the start.

    Raises:
        EncodingInputError: sizes below 1, a threshold or log_scale that is not positive; negative positions.

    Example:
        >>> import torch
        >>> from posembed.encodings import FIRE
        >>> q = k = torch.zeros(1, 2, 3, 4)
        >>> tuple(FIRE(2).bias(q, k, torch.arange(3), torch.arange(3)).shape)
        (2, 3, 3)
    """

    objectives = frozenset({CAUSAL})
    shared = False

    @public(EncodingInputError)
    def __init__(self, n_heads: Count, *, width: Count = 32, threshold: Positive = 512, log_scale: Positive = 0.1):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, n_heads))
        self.log_scale = nn.Parameter(torch.tensor(float(log_scale)))
        # L is learned as a multiple of where it starts: a step of the optimiser is small beside 512.
        self.start = float(threshold)
        self.multiplier = nn.Parameter(torch.tensor(1.0))

    def bias(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads_kv key d_head"],
        positions: Integer[Tensor, "..."],
        key_positions: Integer[Tensor, "..."],
    ) -> Float[Tensor, "*batch heads query key"]:
        """Return the network's output for every query and key; keys ahead count as if they were as far behind."""
        distances = offsets_between(q, k, positions, key_positions).abs()
        positions, key_positions = positions.long(), key_positions.long()
        if known(positions) and bool((positions < 0).any() or (key_positions < 0).any()):
            raise EncodingInputError("a position is negative; FIRE measures distances against positions, so start at 0")
        # In float32 at least, whatever the weights' format: far shares differ in their sixth digit.
        dtype = compute_dtype(self.log_scale)
        reach = torch.maximum(positions.to(dtype), (self.multiplier.to(dtype) * self.start).abs())
        share = self._psi(distances.to(dtype)) / (self._psi(reach) + EPSILON)[..., :, None]
        first, first_bias, second, second_bias = (each.to(dtype) for each in self.mlp.parameters())
        hidden = (share[..., None] * first[:, 0] + first_bias).relu()
        with without_autocast(q):
            return (hidden @ second.T + second_bias).movedim(-1, -3)

    def _psi(self, distance: Tensor) -> Tensor:
        return torch.log1p(self.log_scale.to(distance.dtype).abs() * distance)
