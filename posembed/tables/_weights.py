"""What is known of a checkpoint's tensors before one of them is read."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor


@dataclass(frozen=True)
class Entry:
    """A tensor in a file.

    Attributes:
        name: in the file.
        shape: its sizes.
        kind: what its numbers are: "float32", "bfloat16", "int8".
        file: the file's name.
        place: where its numbers stand in the file: the same for tensors that are one and the same.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    file: str
    place: Hashable


@runtime_checkable
class TensorFile(Protocol):
    """A file of tensors, whatever its format."""

    @property
    def entries(self) -> Mapping[str, Entry]:
        """Every tensor, by name."""

    def read(self, name: str) -> Tensor:
        """Return one tensor in float32 or float64, and raise CheckpointError where that is not possible."""
