"""Angles of positions: exact in float64, whatever the model's format, and remembered for the next layer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Integer
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor


def frequencies(width: int, base: float) -> Float[Tensor, " pairs"]:
    """Return base^(-2i / width) in float64 for each pair of columns; an odd width has half a pair more."""
    return torch.exp(-math.log(base) * torch.arange(0, width, 2, dtype=torch.float64) / width)


def cos_sin(
    positions: Integer[Tensor, "*shape"], frequencies: Float[Tensor, " pairs"], dtype: torch.dtype
) -> tuple[Float[Tensor, "*shape pairs"], Float[Tensor, "*shape pairs"]]:
    """Return cosine and sine of position times frequency, in `dtype`, on the device of `positions`.

    The product is taken in float64: in float32 a position of a million leaves an angle only four digits, in bfloat16
    neighbouring positions fall together from 256 on.
    """
    angles = positions.to(frequencies.device)[..., None].double() * frequencies
    return angles.cos().to(dtype).to(positions.device), angles.sin().to(dtype).to(positions.device)


def arrange(
    sines: Float[Tensor, "*batch pairs"], cosines: Float[Tensor, "*batch pairs"], d_model: int, layout: str
) -> Float[Tensor, "*batch d_model"]:
    """Put sines and cosines into the columns of a layout; of an odd width the last cosine is left out."""
    if layout == "interleaved":
        return torch.stack([sines, cosines], -1).flatten(-2)[..., :d_model]
    both = torch.cat([sines, cosines], -1)
    return both[..., :d_model] if both.shape[-1] >= d_model else F.pad(both, (0, 1))


def is_transformed(*tensors: Tensor) -> bool:
    """Whether vmap, grad or another transform of torch.func, or a fake mode, stands behind one of the tensors."""
    # There is no public way to ask; what such a tensor gives must not outlive the transform.
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    return any(wrapped(each) or isinstance(each, FakeTensor) for each in tensors)


class LastValues:
    """Remembers what was last computed from positions, for the layers and the keys that ask for the same again.

    Compared by value and on the CPU only: elsewhere a comparison would wait for the device. Never saved or copied.
    """

    def __init__(self):
        self._last: tuple[Tensor, tuple, Any] | None = None

    def get(self, positions: Tensor, key: tuple, compute: Callable[[], Any]) -> Any:
        """Return what `compute()` gives, or what it gave when positions and key were the same the last time."""
        if torch.compiler.is_compiling() or positions.device.type != "cpu" or is_transformed(positions):
            return compute()
        positions = positions.long()  # unsigned integers have no comparison
        # What inference mode made cannot be used where gradients are wanted.
        key = (*key, torch.is_inference_mode_enabled())
        last = self._last  # read once: another thread may replace it at any time
        if last is not None and last[1] == key and last[0].shape == positions.shape and torch.equal(last[0], positions):
            return last[2]
        values = compute()
        self._last = (positions.clone(), key, values)
        return values

    def __deepcopy__(self, memo):
        return LastValues()

    def __reduce__(self):
        return (LastValues, ())
