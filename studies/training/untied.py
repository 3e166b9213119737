"""A first token that is untied from positions: what attends to it does so by a number of its own."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from posembed.encodings.interface import PositionScheme, check_scheme


class Untied(PositionScheme):
    """A scheme whose bias is replaced where the token at position 0 takes part (Ke et al. 2021, TUPE, section 3.2).

    Each head learns what all tokens add to their logit for the first one, wherever they stand. The first one adds the
    same to all of its logits, which no softmax sees: 0. What the scheme adds to embeddings and rotates stays.

    Args:
        scheme: of one layer, with a bias.
        n_heads: the number of heads.

    Raises:
        EncodingInputError: what is no scheme.

    Example:
        >>> import torch
        >>> from posembed.encodings import ALiBi
        >>> from studies.training.untied import Untied
        >>> q, at = torch.zeros(1, 1, 3, 4), torch.arange(3)
        >>> Untied(ALiBi(1), 1).bias(q, q, at, at).detach().tolist()
        [[[0.0, 0.0, 0.0], [0.0, -0.0, -0.00390625], [0.0, -0.00390625, -0.0]]]
    """

    def __init__(self, scheme: PositionScheme, n_heads: int):
        super().__init__()
        check_scheme(scheme)
        self.scheme, self.objectives, self.n_axes = scheme, scheme.objectives, scheme.n_axes
        self.to_first = nn.Parameter(torch.zeros(n_heads, 1, 1))

    def add(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.scheme.add(x, positions)

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.scheme.rotate(x, positions)

    def rotate_keys(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.scheme.rotate_keys(x, positions)

    def bias(self, q: Tensor, k: Tensor, positions: Tensor, key_positions: Tensor) -> Tensor:
        bias = self.scheme.bias(q, k, positions, key_positions)
        total = q.new_zeros(()) if bias is None else bias
        query, key = (each[..., None, :] == 0 for each in (positions, key_positions))
        total = torch.where(key[..., None, :], self.to_first, total)
        return total.masked_fill(query[..., :, None], 0.0)
