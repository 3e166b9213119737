"""Keys and values of the tokens so far, so that a new token is attended to without reading the text again."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


class KeyValueCache:
    """The keys and values of one layer. Keys are kept rotated, with their positions beside them.

    Example:
        >>> import torch
        >>> from posembed.models import KeyValueCache
        >>> cache = KeyValueCache()
        >>> for step in range(3):
        ...     k, v, positions = cache.append(torch.ones(1, 2, 1, 4), torch.ones(1, 2, 1, 4), torch.tensor([step]))
        >>> len(cache), positions
        (3, tensor([0, 1, 2]))
    """

    def __init__(self):
        self._parts: tuple[Tensor, Tensor, Tensor] | None = None
        self._gates: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self._parts is None else self._parts[0].shape[-2]

    def append(
        self,
        k: Float[Tensor, "batch heads seq d_head"],
        v: Float[Tensor, "batch heads seq d_value"],
        positions: Int[Tensor, "..."],
        *,
        position_axis: int = -1,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Add the keys, values and positions of new tokens, and return all so far.

        Args:
            k: the new keys, rotated.
            v: the new values.
            positions: theirs.
            position_axis: the axis of `positions` that holds the tokens; -2 where positions have coordinates.
        """
        if self._parts is not None:
            old_k, old_v, old_positions = self._parts
            k, v = torch.cat([old_k, k], -2), torch.cat([old_v, v], -2)
            positions = torch.cat([old_positions, positions], position_axis)
        self._parts = k, v, positions
        return self._parts

    def append_gates(self, gates: Float[Tensor, "batch heads seq"]) -> Float[Tensor, "batch heads key"]:
        """Add what a scheme reads of the new tokens (`PositionScheme.gates`), and return it of all so far."""
        self._gates = gates if self._gates is None else torch.cat([self._gates, gates], -1)
        return self._gates
