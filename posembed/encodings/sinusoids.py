"""The sinusoidal encoding of the 2017 paper, in the three layouts that are in use: a table, and a scheme."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Integer
from torch import Tensor

from ..errors import EncodingInputError
from ..public import Count, Positive, Whole, public
from .angles import arrange, cos_sin, frequencies
from .interface import PositionScheme
from .positions import add_rows, axis_widths, check_positions, compute_dtype

Layout = Literal["interleaved", "concat", "tensor2tensor"]

# Positions at a time: a block of usual widths fits a processor's cache.
BLOCK = 128


@public(EncodingInputError)
def sinusoidal(
    n_positions: Whole,
    d_model: Count,
    *,
    base: Positive = 10000.0,
    layout: Layout = "interleaved",
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Float[Tensor, "n_positions d_model"]:
    """Make the table of sines and cosines (Vaswani et al. 2017, section 3.5).

    Row p holds sin(p w_i) and cos(p w_i) for the frequencies w_i = base^(-2i / d_model). They are computed in float64
    on the CPU and rounded once, so that rows of far positions stay as exact as those of near ones.

    Args:
        n_positions: how many rows; position p is row p.
        d_model: the width. An odd width keeps the exponent 2i / d_model and goes without the last cosine.
        base: of the frequencies. At an even width the longest wavelength is 2 pi base^(1 - 2 / d_model); in the layout
            "tensor2tensor" it is 2 pi base.
        layout: where sines and cosines stand. "interleaved" is the paper's, sin, cos, sin, cos, and so on; "concat" has
            all sines, then all cosines, of the same frequencies; "tensor2tensor" has all sines, then all cosines, of
            the frequencies base^(-i / (d_model // 2 - 1)), and a zero column where the width is odd.
        dtype: of the result; any floating-point format.
        device: of the result.

    Returns:
        The table.

    Raises:
        EncodingInputError: a negative number of positions, a width below 1, a base that
            is not a positive number, an unknown layout, a dtype that is not floating point.

    Example:
        >>> from posembed import sinusoidal
        >>> sinusoidal(2, 4)
        tensor([[0.0000, 1.0000, 0.0000, 1.0000],
                [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    if not dtype.is_floating_point:
        raise EncodingInputError(f"dtype is {dtype}; sines need a floating-point format, such as torch.float32")
    table = torch.empty(n_positions, d_model, dtype=dtype, device="cpu")
    # A sine costs many times a product, so they are taken for the starts of blocks and for one block only. With a for
    # the angle of the start and b for that within it, (sin a + i cos a)(cos b - i sin b) = sin(a + b) + i cos(a + b).
    speeds = _frequencies(d_model, base, layout)
    within = torch.arange(BLOCK, dtype=torch.float64, device="cpu")[:, None] * speeds
    starts = torch.arange(0, n_positions, BLOCK, dtype=torch.float64, device="cpu")[:, None] * speeds
    turn = torch.complex(within.cos(), -within.sin())
    # An empty table is one block without a start.
    for rows, start in zip(table.split(BLOCK), torch.complex(starts.sin(), starts.cos()), strict=False):
        block = start * turn[: len(rows)]
        if layout == "interleaved":  # in memory a complex number is its real part followed by its imaginary part
            rows.copy_(torch.view_as_real(block).flatten(1)[:, :d_model])
        else:
            rows.copy_(arrange(block.real, block.imag, d_model, layout))
    return table.to(device)


class Sinusoidal(PositionScheme):
    """The row of `sinusoidal` for each position, added to the embeddings (Vaswani et al. 2017, section 3.5).

    Nothing is stored, so any position works, also one beyond a million.

    Args:
        d_model: the width.
        base: as for `sinusoidal`.
        layout: as for `sinusoidal`; with axes that of each part.
        axes: for positions on several axes, such as the row and the column of an image's patch (Parmar et al. 2018):
            how many columns each axis gets, or only how many axes there are, for equal parts; positions then are
            "... seq axes". The columns of the first axis come first, those of a table of that width.

    Raises:
        EncodingInputError: as for `sinusoidal`; axes that do not add up; positions of a wrong dtype or shape.

    Example:
        >>> import torch
        >>> from posembed import sinusoidal
        >>> from posembed.encodings import Sinusoidal
        >>> added = Sinusoidal(6).add(torch.zeros(1, 2, 6), torch.tensor([3, 8]))
        >>> torch.allclose(added[0], sinusoidal(9, 6)[[3, 8]], atol=1e-7)
        True
        >>> patch = Sinusoidal(8, axes=2).add(torch.zeros(1, 1, 8), torch.tensor([[3, 8]]))  # row 3, column 8
        >>> torch.allclose(patch[0, 0], torch.cat([sinusoidal(9, 4)[3], sinusoidal(9, 4)[8]]), atol=1e-7)
        True
    """

    @public(EncodingInputError)
    def __init__(
        self,
        d_model: Count,
        *,
        base: Positive = 10000.0,
        layout: Layout = "interleaved",
        axes: Count | Sequence[Count] | None = None,
    ):
        super().__init__()
        self.d_model, self.base, self.layout = d_model, base, layout
        self.axes = None if axes is None else axis_widths(axes, d_model)
        self.n_axes = None if self.axes is None else len(self.axes)
        of_axes = [_frequencies(width, base, layout) for width in self.axes or (d_model,)]
        self.frequencies, self._n_of_axes = torch.cat(of_axes), [len(each) for each in of_axes]

    def add(self, x: Float[Tensor, "*batch seq d_model"], positions: Integer[Tensor, "..."]) -> Tensor:
        """Add each position's row. The sum is taken in float32 at least and rounded once."""
        check_positions(positions, x, width=self.d_model, n_axes=self.n_axes)
        return add_rows(x, self.rows(positions, compute_dtype(x)))

    def rows(
        self, positions: Integer[Tensor, "..."], dtype: torch.dtype = torch.float64
    ) -> Float[Tensor, "... d_model"]:
        """Return the row of each position, which may be negative."""
        coordinates = (positions if self.axes else positions[..., None]).unbind(-1)
        rows, of_axes = [], self.frequencies.split(self._n_of_axes)
        for each, of_axis, width in zip(coordinates, of_axes, self.axes or (self.d_model,), strict=True):
            cos, sin = cos_sin(each[..., None], of_axis, dtype)
            rows.append(arrange(sin, cos, width, self.layout))
        return torch.cat(rows, -1)


@public(EncodingInputError)
def convert_layout(
    table: Float[Tensor, "*batch d_model"], *, source: Layout, target: Layout
) -> Float[Tensor, "*batch d_model"]:
    """Re-order the columns of a sinusoidal table, or of anything that is added to one, between two layouts.

    Args:
        table: "... d_model", in the layout `source`.
        source: "interleaved" or "concat".
        target: "interleaved" or "concat".

    Returns:
        The same numbers in the layout `target`.

    Raises:
        EncodingInputError: no tensor with columns; an unknown layout, or "tensor2tensor" on one side only: it has other
            frequencies, so no order of columns turns one into the other.

    Example:
        >>> import torch
        >>> from posembed import sinusoidal
        >>> from posembed.encodings import convert_layout
        >>> paper, concat = sinusoidal(9, 6), sinusoidal(9, 6, layout="concat")
        >>> torch.equal(convert_layout(paper, source="interleaved", target="concat"), concat)
        True
    """
    if source == target:
        return table.clone()
    if "tensor2tensor" in (source, target):
        raise EncodingInputError(
            f"{source} and {target} have different frequencies; make the table anew with sinusoidal(layout=...)"
        )
    if target == "concat":
        return torch.cat([table[..., ::2], table[..., 1::2]], -1)
    sines, cosines = F.pad(table, (0, table.shape[-1] % 2)).chunk(2, -1)
    return arrange(sines, cosines, table.shape[-1], target)


def _frequencies(d_model: int, base: float, layout: Layout) -> Float[Tensor, " n_frequencies"]:
    if layout != "tensor2tensor":
        return frequencies(d_model, base)
    number = torch.arange(d_model // 2, dtype=torch.float64, device="cpu")
    return torch.exp(-math.log(base) * number / max(d_model // 2 - 1, 1))
