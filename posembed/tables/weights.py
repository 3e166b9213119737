"""The named tensors of a checkpoint or of a model, each read when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import CheckpointError

# What a tensor is called that was saved by itself.
ALONE = "the tensor"


@dataclass(frozen=True)
class Entry:
    """A tensor that was not read yet.

    Attributes:
        name: in the file or the model.
        shape: its sizes.
        kind: what its numbers are: "float32", "bfloat16", "int8".
        place: where its numbers stand: the same for tensors that are one and the same.
        read: returns it, in the kind in which it is stored.
        file: the file's name, None for what is in memory.
        before: returns how many rows stand before position 0, where a live model says so itself.
        shown: what a live model calls the module that looks it up, where one does.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    place: Hashable
    read: Callable[[], Tensor]
    file: str | None = None
    before: Callable[[], int] | None = None
    shown: str = ""

    @property
    def matrix(self) -> tuple[int, ...]:
        """Its sizes without the one that only stands for the batch: 1 x positions x width, or positions x 1 x width."""
        batch = self.shape.index(1) if len(self.shape) == 3 and 1 in self.shape[:2] else None
        return tuple(size for place, size in enumerate(self.shape) if place != batch)

    @property
    def is_table(self) -> bool:
        """Whether its shape is positions x width, perhaps with a 1 for the batch, and not empty."""
        return min(self.shape, default=0) > 0 and len(self.matrix) == 2


@dataclass
class Weights:
    """The tensors of a checkpoint or of a model by their names; of shards, each is opened when it is needed.

    Attributes:
        source: what errors call the checkpoint or the model.
        config: config.json, or a live model's settings; empty where there are none.
        seen: the tensors of which the shape is known.
        shards: the file of each tensor, where there are several.
        opened: gives the tensors of such a file.
        schemes: the names of those that are tables whatever they are called.
        widths: those of the vectors that a module looks up.
        call: how errors say that one is chosen.
    """

    source: str
    config: Mapping[str, Any]
    seen: dict[str, Entry]
    shards: Mapping[str, str] = field(default_factory=dict)
    opened: Callable[[str], dict[str, Entry]] | None = None
    schemes: Collection[str] = (ALONE,)
    widths: Collection[int] = ()
    call: str = "load_table(..., name={!r}, offset=0)"

    @property
    def names(self) -> Collection[str]:
        """Every tensor's name."""
        return self.shards.keys() or self.seen.keys()

    def __getitem__(self, name: str) -> Entry:
        if name not in self.seen and self.opened is not None:
            self.seen |= self.opened(self.shards[name])
        if name not in self.seen:
            raise CheckpointError(f"{name!r} should be in {self.shards[name]}, which lacks it")
        return self.seen[name]


def tensor_entry(name: str, tensor: Tensor, place: Hashable = None, **more: Any) -> Entry:
    """What is in memory already, or is mapped to it."""
    return Entry(name, tuple(tensor.shape), kind_of(tensor.dtype), place, lambda: tensor, **more)


def tensor_of(array: np.ndarray) -> Tensor:
    """The same numbers in this machine's byte order, of which torch knows no other."""
    return torch.from_numpy(np.array(array, array.dtype.newbyteorder("=")))


def kind_of(dtype: torch.dtype) -> str:
    """The name of a dtype: "float32"."""
    return str(dtype).removeprefix("torch.")
