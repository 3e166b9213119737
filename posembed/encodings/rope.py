"""Rotary positions: each pair of columns of a query or a key turns with its position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from ..errors import EncodingInputError
from ..public import Count, Positive, Share, public
from .angles import cos_sin, frequencies, rotate_pairs
from .interface import PositionScheme
from .positions import check_positions, compute_dtype, for_heads
from .rope_scaling import Scaling, as_scaling
from .sizes import axis_widths

RotaryLayout = Literal["half", "interleaved"]


class RoPE(PositionScheme):
    """Rotary position embedding (Su et al. 2021, RoFormer, section 3.2.2, equation 15).

    Tokens stand on the last axis but one, as in "batch heads seq d_head"; of "batch seq heads d_head" say seq_dim=1,
    for where there are as many heads as tokens nothing tells them apart.

    The pair i of a query or key at position p turns by the angle p base^(-2i / width). The product of a query and a key
    then depends on their offset alone, and norms are kept (a YaRN scaling multiplies them).

    Args:
        d_head: the width of a head.
        base: without a scaling the longest wavelength is 2 pi base^(1 - 2 / width), of the width that turns on an axis.
        layout: which columns form pair i. "half": i and i + width / 2, as in GPT-NeoX and transformers' Llama;
            "interleaved": 2i and 2i + 1, as in the paper, GPT-J and Llama as Meta released it. `convert_rope_layout`
            carries weights from one to the other.
        fraction: the share of the columns that turn, the first ones (partial rotary, as in GPT-NeoX and Phi).
        axes: for positions on several axes, how many columns each axis gets, or only how many axes there are, for equal
            parts; positions then are "... seq axes". The pairs of the first axis come first.
        scaling: how to stretch the angles for texts longer than the training's: one of `LinearScaling`, `NTKScaling`,
            `YaRNScaling` and `Llama3Scaling`, or a mapping in the form of transformers' ``rope_scaling``.

    Raises:
        EncodingInputError: a width that is not even, a fraction outside 0 to 1, axes that do not add up, an unknown
            layout or scaling; positions of a wrong dtype or shape.

    Example:
        >>> import torch
        >>> from posembed.encodings import RoPE
        >>> q, k = torch.randn(2, 1, 8, generator=torch.Generator().manual_seed(0))
        >>> score = lambda m, n: RoPE(8).rotate(q, torch.tensor([m])) @ RoPE(8).rotate(k, torch.tensor([n])).T
        >>> torch.allclose(score(3, 1), score(103, 101))
        True
    """

    sizes = ("d_head",)

    @public(EncodingInputError)
    def __init__(
        self,
        d_head: Count,
        *,
        base: Positive = 10000.0,
        layout: RotaryLayout = "half",
        fraction: Share = 1.0,
        axes: Count | Sequence[Count] | None = None,
        scaling: Scaling | Mapping[str, Any] | None = None,
    ):
        super().__init__()
        self.d_head, self.base, self.layout = d_head, base, layout
        self.width = _rotated_width(d_head, fraction)
        self.axes = None if axes is None else axis_widths(axes, self.width, least=2, even=True)
        self.n_axes = None if self.axes is None else len(self.axes)
        self.scaling = as_scaling(scaling)
        make = frequencies if self.scaling is None else self.scaling.frequencies
        self.frequencies = torch.cat([make(width, base) for width in self.axes or (self.width,)])

    def rotate(
        self, x: Float[Tensor, "*batch seq d_head"], positions: Integer[Tensor, "..."], *, seq_dim: int = -2
    ) -> Tensor:
        """Turn the pairs of x by the angles of its positions, on the axis `seq_dim`.

        The arithmetic is float32 at least, rounded once.
        """
        return self._turned(x.transpose(seq_dim, -2), positions).transpose(seq_dim, -2)

    def rotate_keys(
        self, x: Float[Tensor, "*batch seq d_head"], positions: Integer[Tensor, "..."], *, seq_dim: int = -2
    ) -> Tensor:
        """Turn keys as queries are turned."""
        return self.rotate(x, positions, seq_dim=seq_dim)

    def _turned(self, x: Tensor, positions: Tensor) -> Tensor:
        check_positions(positions, x, width=self.d_head, n_axes=self.n_axes)
        cos, sin = _axial_cos_sin(positions, self.frequencies, self.axes, compute_dtype(x))
        if self.scaling is not None:
            cos, sin = cos * self.scaling.attention_factor, sin * self.scaling.attention_factor
        return rotate_pairs(x, for_heads(cos, x), for_heads(sin, x), self.layout)


def _axial_cos_sin(
    positions: Integer[Tensor, "..."],
    frequencies: Float[Tensor, " pairs"],
    axes: Sequence[int] | None,
    dtype: torch.dtype,
) -> tuple[Float[Tensor, "... pairs"], Float[Tensor, "... pairs"]]:
    """Cosine and sine for each pair; with axes, the pairs of an axis turn by the coordinate on it."""
    if axes is None:
        return cos_sin(positions, frequencies, dtype)
    pairs = frequencies.split([width // 2 for width in axes])
    parts = [cos_sin(positions[..., axis], each, dtype) for axis, each in enumerate(pairs)]
    cosines, sines = zip(*parts, strict=True)
    return torch.cat(cosines, -1), torch.cat(sines, -1)


@public(EncodingInputError)
def convert_rope_layout(
    weight: Float[Tensor, " out *rest"],
    *,
    n_heads: Count,
    source: RotaryLayout,
    target: RotaryLayout,
    fraction: Share = 1.0,
) -> Float[Tensor, " out *rest"]:
    """Re-order the rows of a query or key projection, so that a model of one layout works in the other.

    Args:
        weight: the weight "n_heads * d_head ..." or the bias "n_heads * d_head" of the projection.
        n_heads: its number of heads; for keys of grouped-query attention, that of the keys.
        source: the layout it was trained in.
        target: the layout it is wanted for.
        fraction: the share of a head's columns that turn; the others stay where they are.

    Returns:
        The same numbers in another order.

    Raises:
        EncodingInputError: an unknown layout, or heads that do not divide the rows.

    Example:
        >>> import torch
        >>> from posembed.encodings import convert_rope_layout
        >>> convert_rope_layout(torch.arange(8.0), n_heads=2, source="half", target="interleaved")
        tensor([0., 2., 1., 3., 4., 6., 5., 7.])
    """
    if weight.shape[0] % n_heads:
        raise EncodingInputError(f"a projection of {weight.shape[0]} rows has no {n_heads} equal heads")
    heads = weight.unflatten(0, (n_heads, -1))
    width = _rotated_width(heads.shape[1], fraction)
    turned, rest = heads[:, :width], heads[:, width:]
    if source != target:
        pairs = (2, width // 2) if source == "half" else (width // 2, 2)
        turned = turned.unflatten(1, pairs).transpose(1, 2).flatten(1, 2)
    return torch.cat([turned, rest], 1).flatten(0, 1)


def _rotated_width(d_head: int, fraction: float) -> int:
    """How many columns of a head turn, checked to be even."""
    # A share such as 0.58 of 100 is a little less than 58 in floating point.
    width = int(d_head * fraction + 1e-6)
    if width % 2 or width < 2:
        what = (
            f"the head width is {d_head}" if fraction == 1 else f"{fraction} of a head of {d_head} is {width} columns"
        )
        raise EncodingInputError(f"{what}; rope turns pairs of columns, so it must be even and at least 2")
    return width
