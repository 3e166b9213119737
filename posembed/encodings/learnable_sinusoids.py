"""Sines and cosines whose frequencies are trained."""

from __future__ import annotations

from typing import Any, Literal

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from ..errors import EncodingInputError
from ._angles import arrange, frequencies
from ._checks import check_positions, check_positive
from ._positions import compute_dtype, for_heads
from .interface import PositionScheme, Sizes


class LearnableSinusoidal(PositionScheme):
    """The sinusoidal encoding with trained frequencies (Wang et al. 2021, On Position Embeddings in BERT, section 4).

    They start at base^(-2i / d_model), those of the 2017 paper. A model has d_model / 2 numbers to learn for any number
    of positions.

    Args:
        d_model: the width; an odd one goes without the last cosine.
        base: of the frequencies at the start.
        layout: "interleaved" or "concat", as for `sinusoidal`.

    Raises:
        EncodingInputError: a width below 1, an unknown layout; positions of a wrong dtype or shape.

    Example:
        >>> import torch
        >>> from posembed.encodings import LearnableSinusoidal
        >>> LearnableSinusoidal(4).frequencies
        Parameter containing:
        tensor([1.0000, 0.0100], requires_grad=True)
    """

    def __init__(
        self, d_model: int, *, base: float = 10000.0, layout: Literal["interleaved", "concat"] = "interleaved"
    ):
        super().__init__()
        if layout not in ("interleaved", "concat"):
            raise EncodingInputError(f"layout is {layout!r}; choose among interleaved, concat")
        check_positive("base", base)
        Sizes(d_model=d_model)
        self.d_model, self.layout = d_model, layout
        self.frequencies = nn.Parameter(frequencies(d_model, base).to(torch.get_default_dtype()))

    @classmethod
    def build(cls, sizes: Sizes, **options: Any) -> LearnableSinusoidal:
        (d_model,) = sizes.need("learnable_sinusoidal", "d_model")
        return cls(d_model, **options)

    def add(self, x: Float[Tensor, "*batch seq d_model"], positions: Integer[Tensor, "..."]) -> Tensor:
        """Add each position's row. The sum is taken in float32 at least and rounded once."""
        if x.shape[-1] != self.d_model:
            raise EncodingInputError(f"x is {x.shape[-1]} wide, but this scheme was made for {self.d_model}")
        check_positions(positions, x)
        dtype = compute_dtype(x)
        return (x.to(dtype) + for_heads(self.rows(positions), x).to(dtype)).to(x.dtype)

    def rows(self, positions: Integer[Tensor, "*shape"]) -> Float[Tensor, "*shape d_model"]:
        """Return the row of each position, which may be negative, with gradients to the frequencies; in float64."""
        # float64 also where the parameter is bfloat16: its rounding moves a frequency, but never merges two positions.
        exact = torch.device("cpu") if positions.device.type == "mps" else positions.device
        angles = positions.to(exact)[..., None].double() * self.frequencies.to(exact).double()
        return arrange(angles.sin(), angles.cos(), self.d_model, self.layout).to(positions.device)

    def extra_repr(self) -> str:
        return f"{self.d_model}, layout={self.layout!r}"
