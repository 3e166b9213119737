"""Keys and values of the tokens so far, so that a new token is attended to without reading the text again."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..errors import ModelInputError


class KeyValueCache:
    """The keys and values of one layer. Keys are kept rotated, with their positions beside them.

    Room is doubled when it runs out, so a new token costs the same however many there are. Where gradients are wanted
    the parts are joined instead, because what a gradient needs must not be written over.

    Raises:
        ModelInputError: keys of another batch, head count or width than those that are there.

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
        self._room: list[Tensor] = []
        self._axes = (-2, -2, -1)
        self._length = 0

    def __len__(self) -> int:
        return self._length

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
        self._check(k, v, positions)
        new = [k, v, positions]
        if not self._room:
            self._room, self._axes = new, (-2, -2, position_axis)
        elif torch.is_grad_enabled() and any(each.requires_grad for each in (*new, *self._room)):
            self._room = [torch.cat(pair, axis) for *pair, axis in zip(self.parts(), new, self._axes, strict=True)]
        else:
            self._write(new)
        self._length += k.shape[-2]
        return self.parts()

    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return keys, values and positions so far."""
        k, v, positions = (e.narrow(axis, 0, self._length) for e, axis in zip(self._room, self._axes, strict=True))
        return k, v, positions

    def reorder(self, rows: Int[Tensor, " rows"]) -> None:
        """Choose rows of the batch anew, as beam search does after each step."""
        k, v, positions = self._room
        batched = positions.ndim > -self._axes[2]
        self._room = [k.index_select(0, rows), v.index_select(0, rows)]
        self._room.append(positions.index_select(0, rows) if batched else positions)

    def _write(self, new: list[Tensor]) -> None:
        end = self._length + new[0].shape[-2]
        if end > self._room[0].shape[-2]:
            self._room = [_grown(e, a, self._length, 2 * end) for e, a in zip(self._room, self._axes, strict=True)]
        for each, part, axis in zip(self._room, new, self._axes, strict=True):
            each.narrow(axis, self._length, part.shape[axis]).copy_(part)

    def _check(self, k: Tensor, v: Tensor, positions: Tensor) -> None:
        if not self._room:
            return
        for name, old, new in zip(("keys", "values"), self._room, (k, v), strict=False):
            if old.shape[:2] != new.shape[:2] or old.shape[3] != new.shape[3]:
                raise ModelInputError(
                    f"new {name} have shape {tuple(new.shape)} and those in the cache {tuple(old.shape)}; a cache "
                    "belongs to one batch and one layer"
                )
        axis = self._axes[2]
        if _without(self._room[2].shape, axis) != _without(positions.shape, axis):
            raise ModelInputError("new positions have another batch than those in the cache; keep to one form")


def _without(shape: torch.Size, axis: int) -> list[int]:
    sizes = list(shape)
    del sizes[axis]
    return sizes


def _grown(part: Tensor, axis: int, length: int, room: int) -> Tensor:
    shape = list(part.shape)
    shape[axis] = room
    grown = part.new_empty(shape)
    grown.narrow(axis, 0, length).copy_(part.narrow(axis, 0, length))
    return grown
