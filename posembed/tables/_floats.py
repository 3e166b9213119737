"""The numbers of a stored tensor, widened exactly to float32 or float64."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..errors import CheckpointError, PosembedError

# numpy's code of each kind; bfloat16 is the upper half of a float32 and comes as the integer of its bits.
_CODES = {"float64": "f8", "float32": "f4", "float16": "f2", "bfloat16": "u2"}


def checked_kind(kind: str, what: str, error: type[PosembedError] = CheckpointError) -> str:
    """Return the kind again if it is one whose numbers can be read; "float32", "bfloat16".

    Raises:
        CheckpointError: integers, 8-bit floats and the like: a table's numbers need a scale that is kept elsewhere. The
            caller may ask for another kind of error.
    """
    if kind not in _CODES:
        raise error(
            f"{what} is of {kind} numbers; quantised and integer tables have no scale here: give float32, float16, "
            "bfloat16 or float64, or the same model in one of them"
        )
    return kind


def item_size(kind: str) -> int:
    """Bytes of one number."""
    return int(_CODES[kind][1:])


def widen(data: bytes, kind: str, *, big_endian: bool = False) -> Tensor:
    """Return the numbers as a new one-dimensional tensor: float64 where stored so, else float32."""
    stored = np.frombuffer(data, dtype=(">" if big_endian else "<") + _CODES[kind])
    if kind == "bfloat16":
        return torch.from_numpy((stored.astype(np.uint32) << 16).view(np.float32))
    return torch.from_numpy(stored.astype(np.float64 if kind == "float64" else np.float32))


def kind_of(tensor: Tensor) -> str:
    """The name of a tensor's dtype: "float32"."""
    return str(tensor.dtype).removeprefix("torch.")


def widened(tensor: Tensor) -> Tensor:
    """Return a copy in the CPU's memory, without gradient: float64 stays, other floats become float32."""
    wide = torch.float64 if tensor.dtype == torch.float64 else torch.float32
    return tensor.detach().to(device="cpu", dtype=wide, copy=True, memory_format=torch.contiguous_format)
