"""A bias that is given and never trained: for experiments that change what positions offer, and nothing else."""

from __future__ import annotations

from jaxtyping import Float, Integer
from torch import Tensor, nn

from ..errors import PositionOutOfRangeError
from .interface import PositionScheme
from .positions import check_pair


class FrozenBias(PositionScheme):
    """One number for each pair of positions, the same in every layer, times a slope for each head.

    Args:
        matrix: row i holds what a query at position i gives each key, "positions positions".
        slopes: what each head multiplies it by.

    Raises:
        EncodingInputError: positions of a wrong dtype or shape.
        PositionOutOfRangeError: a position without a row.

    Example:
        >>> import torch
        >>> from posembed.encodings import FrozenBias
        >>> at, q = torch.arange(3), torch.zeros(1, 2, 3, 4)
        >>> FrozenBias(-(at - at[:, None]).abs().double(), torch.tensor([1.0, 0.5])).bias(q, q, at, at)[1]
        tensor([[-0.0000, -0.5000, -1.0000],
                [-0.5000, -0.0000, -0.5000],
                [-1.0000, -0.5000, -0.0000]])
    """

    def __init__(self, matrix: Float[Tensor, "n n"], slopes: Float[Tensor, " heads"]):
        super().__init__()
        # Given, not learned: a checkpoint has no need of it.
        self.biases = nn.Buffer((slopes.double()[:, None, None] * matrix.double()).float(), persistent=False)

    def bias(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads_kv key d_head"],
        positions: Integer[Tensor, "..."],
        key_positions: Integer[Tensor, "..."],
    ) -> Float[Tensor, "*batch heads query key"]:
        """Return the number of every query and key."""
        check_pair(q, k, positions, key_positions)
        n = self.biases.shape[-1]
        for each in (positions, key_positions):
            if each.numel() and not 0 <= int(each.min()) <= int(each.max()) < n:
                raise PositionOutOfRangeError(f"this bias has positions 0 to {n - 1}; shorten the texts")
        pairs = self.biases[:, positions[..., :, None].long(), key_positions[..., None, :].long()]
        return pairs.movedim(0, -3)
