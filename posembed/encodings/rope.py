"""Rotary positions: each pair of columns of a query or a key turns with its position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from ..errors import EncodingInputError, shown
from ..public import Count, Positive, Share, public
from .angles import cos_sin, frequencies, rotate_pairs
from .interface import PositionScheme
from .positions import axis_widths, check_positions, compute_dtype, for_heads
from .rope_config import rotation_of
from .rope_scaling import Scaling, agreed, said_by

RotaryLayout = Literal["half", "interleaved"]
PairLayout = Literal["first", "proportional"]
AxesLayout = Literal["sliced", "interleaved"]


class RoPE(PositionScheme):
    """Rotary position embedding (Su et al. 2021, RoFormer, section 3.2.2, equation 15).

    Tokens stand on the last axis but one, as in "batch heads seq d_head"; of "batch seq heads d_head" say seq_dim=1,
    for where there are as many heads as tokens nothing tells them apart.

    The pair i of a query or key at position p turns by the angle p base^(-2i / width). The product of a query and a key
    then depends on their offset alone, and norms are kept (a YaRN scaling multiplies them).

    Args:
        d_head: the width of a head.
        base: without a scaling the longest wavelength is 2 pi base^(1 - 2 / width), of the width that turns on an axis.
            By default the ``rope_theta`` of the scaling, else 10000.
        layout: which columns form pair i. "half": i and i + width / 2, as in GPT-NeoX and transformers' Llama;
            "interleaved": 2i and 2i + 1, as in the paper, GPT-J and Llama as Meta released it. `convert_rope_layout`
            carries weights from one to the other.
        fraction: the share of the columns that turn (partial rotary); by default the ``partial_rotary_factor`` of the
            scaling, else 1.
        pairs: which columns these are. "first": the first ones, a smaller head with all frequencies of its own
            (GPT-NeoX, Phi); "proportional": of the whole head's pairs those with the highest frequencies, and the
            others stand still (p-RoPE, Barbero et al. 2024, arXiv 2410.06205, as in Gemma 4).
        axes: for positions on several axes, how many columns each axis gets, or only how many axes there are, for equal
            parts; positions then are "... seq axes". The pairs of the first axis come first.
        mrope: by default each axis has all frequencies of a head of its width. In M-RoPE the axes share those of the
            whole head: "sliced", the first pairs for the first axis and so on, as in Qwen2-VL (Wang et al. 2024, arXiv
            2409.12191); "interleaved", dealt out in turn, and what is left to the first axis, as in Qwen3-VL.
        scaling: how to stretch the angles for texts longer than the training's: one of `LinearScaling`, `NTKScaling`,
            `YaRNScaling`, `Llama3Scaling` and `LongRoPEScaling`, or a mapping in the form of transformers'
            ``rope_scaling`` or its whole ``rope_parameters``. `from_config` reads all of a config.

    Raises:
        EncodingInputError: a width that is not even, a fraction outside 0 to 1, axes that do not add up, an unknown
            layout or scaling, mrope without axes, a base or fraction that the scaling contradicts; positions of a wrong
            dtype or shape.

    Example:
        >>> import torch
        >>> from posembed.encodings import RoPE
        >>> q, k = torch.randn(2, 1, 8, generator=torch.Generator().manual_seed(0))
        >>> score = lambda m, n: RoPE(8).rotate(q, torch.tensor([m])) @ RoPE(8).rotate(k, torch.tensor([n])).T
        >>> torch.allclose(score(3, 1), score(103, 101))
        True
    """

    @public(EncodingInputError)
    def __init__(
        self,
        d_head: Count,
        *,
        base: Positive | None = None,
        layout: RotaryLayout = "half",
        fraction: Share | None = None,
        pairs: PairLayout | None = None,
        axes: Count | Sequence[Count] | None = None,
        mrope: AxesLayout | None = None,
        scaling: Scaling | Mapping[str, Any] | None = None,
    ):
        super().__init__()
        self.d_head, self.layout = d_head, layout
        self.scaling, its_base, its_fraction, its_pairs = said_by(scaling)
        self.base = agreed("base", base, its_base, 10000.0)
        fraction = agreed("fraction", fraction, its_fraction, 1.0)
        proportional = agreed("pairs", pairs, its_pairs, "first") == "proportional"
        self.width = _rotated_width(d_head, 1.0 if proportional else fraction)
        # Said where they are not as usual: by what it says of itself one rotation is told from another.
        self.fraction = None if fraction == 1.0 else fraction
        self.pairs, self.mrope = "proportional" if proportional else None, mrope
        self.axes = None if axes is None else axis_widths(axes, self.width, even=True)
        self.n_axes = None if self.axes is None else len(self.axes)
        if mrope is not None and self.axes is None:
            raise EncodingInputError("mrope shares the pairs of a head among axes; give axes=, the columns of each")
        widths = (self.width,) if self.axes is None or mrope is not None else self.axes
        make = frequencies if self.scaling is None else self.scaling.frequencies
        ladders = [make(width, self.base) for width in widths]
        if proportional:
            for width, ladder in zip(widths, ladders, strict=True):
                ladder[int(fraction * width + 1e-6) // 2 :] = 0.0
        self.frequencies = torch.cat(ladders)
        self._axis_of_pairs = None if self.axes is None else _axis_of_pairs(self.axes, mrope == "interleaved")

    @classmethod
    @public(EncodingInputError)
    def from_config(cls, config: Any, layer: int | None = None, *, length: int | None = None) -> RoPE:
        """Make the rotation of a layer as transformers computes it from the model's config.

        Args:
            config: a config of transformers, or the content of a config.json as a mapping; of a model of text and
                images, that of the text. Speeds, the share of a head that turns, the factor of queries and keys and
                which columns make a pair are what the model's own code in transformers makes of it.
            layer: the number of the layer, from 0, for models whose layers differ, such as Gemma 3.
            length: the longest text, in tokens, for the two kinds whose angles depend on it: "dynamic" beyond the
                config's longest text, and "longrope" beyond the longest of the training. By default not.

        Returns:
            The rotation, which turns queries and keys by the cos and sin that transformers has of a text. What else a
            model does to its scores is none of it, such as the larger scale of DeepSeek's attention under YaRN.

        Raises:
            EncodingInputError: a model or a layer that does not rotate, or not by a position alone (rows and columns
                of an image; one head of several), layers that differ where none is named, an unknown rope_type,
                fields that contradict each other, a config that transformers cannot read.

        Example:
            >>> from posembed.encodings import RoPE
            >>> config = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 8, "rope_theta": 500000.0}
            >>> RoPE.from_config(config).base
            500000.0
        """
        arguments = rotation_of(config, layer, length)
        if arguments is None:
            raise EncodingInputError(f"layer {layer} of this config does not turn: it has no positions; use NoPos()")
        return cls(**arguments)

    def rotate(
        self, x: Float[Tensor, "*batch seq d_head"], positions: Integer[Tensor, "..."], *, seq_dim: int = -2
    ) -> Tensor:
        """Turn the pairs of x by the angles of its positions, on the axis `seq_dim`.

        The arithmetic is float32 at least, rounded once. Turns add up, so keys of a cache, which are turned already,
        move on by d with ``rotate(keys, torch.full((seq,), d))``, d below 0 where the first tokens were dropped; divide
        by ``scaling.attention_factor`` where a scaling has one, for the keys have it once.
        """
        return self._turned(x.transpose(seq_dim, -2), positions).transpose(seq_dim, -2)

    def rotate_keys(
        self, x: Float[Tensor, "*batch seq d_head"], positions: Integer[Tensor, "..."], *, seq_dim: int = -2
    ) -> Tensor:
        """Turn keys as queries are turned."""
        return self.rotate(x, positions, seq_dim=seq_dim)

    def _turned(self, x: Tensor, positions: Tensor) -> Tensor:
        check_positions(positions, x, width=self.d_head, n_axes=self.n_axes)
        of_pairs = positions[..., None] if self._axis_of_pairs is None else positions[..., self._axis_of_pairs]
        cos, sin = cos_sin(of_pairs, self.frequencies, compute_dtype(x))
        if self.scaling is not None:
            cos, sin = cos * self.scaling.attention_factor, sin * self.scaling.attention_factor
        return rotate_pairs(x, for_heads(cos, x), for_heads(sin, x), self.layout)


def _axis_of_pairs(axes: Sequence[int], dealt: bool) -> list[int]:
    """The axis by which each pair turns: the first pairs by the first one and so on, or dealt out in turn."""
    if not dealt:
        return [axis for axis, width in enumerate(axes) for _ in range(width // 2)]
    axis_of_pair = [0] * (sum(axes) // 2)
    for axis, width in enumerate(axes[1:], start=1):
        for pair in range(axis, min(width // 2 * len(axes), len(axis_of_pair)), len(axes)):
            axis_of_pair[pair] = axis
    counts = [2 * axis_of_pair.count(axis) for axis in range(len(axes))]
    if counts != list(axes):
        raise EncodingInputError(
            f"axes are {shown(axes)}, but dealt out in turn they get {counts} columns; use these, or in a config's "
            f"mrope_section {[each // 2 for each in counts]} pairs"
        )
    return axis_of_pair


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
        EncodingInputError: an unknown layout.

    Example:
        >>> import torch
        >>> from posembed.encodings import convert_rope_layout
        >>> convert_rope_layout(torch.arange(8.0), n_heads=2, source="half", target="interleaved")
        tensor([0., 2., 1., 3., 4., 6., 5., 7.])
    """
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
