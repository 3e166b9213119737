"""Sines and cosines whose frequencies are trained."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from ..errors import EncodingInputError
from ..public import Count, Positive, public
from .angles import angles, arrange, frequencies
from .interface import PositionScheme
from .positions import add_rows, check_positions


class LearnableSinusoidal(PositionScheme):
    """The sinusoidal encoding with trained frequencies (Wang et al. 2021, On Position Embeddings in BERT, section 4).

    They start at base^(-2i / d_model), those of the 2017 paper. A model learns d_model / 2 numbers, rounded up, for any
    number of positions. Keep the scheme in float32 for long texts: cast to bfloat16 or float16, its frequencies are
    rounded, and far rows drift. In bfloat16, 64 wide, the row of position 4000 comes nearest to 4001's in float32.

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

    @public(EncodingInputError)
    def __init__(
        self, d_model: Count, *, base: Positive = 10000.0, layout: Literal["interleaved", "concat"] = "interleaved"
    ):
        super().__init__()
        self.d_model, self.layout = d_model, layout
        self.frequencies = nn.Parameter(
            frequencies(d_model, base).to(torch.get_default_device(), torch.get_default_dtype())
        )

    def add(self, x: Float[Tensor, "*batch seq d_model"], positions: Integer[Tensor, "..."]) -> Tensor:
        """Add each position's row. The sum is taken in float32 at least and rounded once, of frequencies as stored."""
        check_positions(positions, x, width=self.d_model)
        return add_rows(x, self.rows(positions))

    def rows(self, positions: Integer[Tensor, "*shape"]) -> Float[Tensor, "*shape d_model"]:
        """Return the row of each position, which may be negative, with gradients to the frequencies; in float64."""
        # float64 also where the parameter is bfloat16: its rounding moves a frequency, but never merges two positions.
        at = angles(positions[..., None], self.frequencies)
        return arrange(at.sin(), at.cos(), self.d_model, self.layout).to(positions.device)
