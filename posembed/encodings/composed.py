"""Several schemes in one, and schemes that differ from layer to layer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, cast

from torch import Tensor, nn

from ..errors import EncodingInputError
from ..public import Count, Whole, public
from .interface import PositionScheme, ScoreMod
from .nopos import NoPos


class Composed(PositionScheme, forwards=True):
    """Several schemes at once: additions and rotations one after the other, biases summed.

    It is defined for the objectives that all of its parts are defined for. A part that widens queries and keys turns
    them first, and beside it none may be made for the width of a head.

    Args:
        parts: the schemes; what is composed itself is taken apart.

    Raises:
        EncodingInputError: no objective is left; positions of one part have other axes than those of another; two
            parts that read gates; one that widens queries and keys beside another that reads their width.

    Example:
        >>> from posembed import scheme
        >>> both = scheme("learned+t5", d_model=8, n_heads=2, n_positions=16, causal=True)
        >>> [type(part).__name__ for part in both.parts]
        ['Learned', 'T5']
    """

    parts: nn.ModuleList

    def __init__(self, *parts: PositionScheme):
        super().__init__()
        flat = [leaf for part in parts for leaf in (part.parts if isinstance(part, Composed) else [part])]
        self.parts = nn.ModuleList(flat)
        self.objectives = frozenset.intersection(*(part.objectives for part in self))
        self.reads_mask = any(part.reads_mask for part in self)
        if not self.objectives:
            names = " and ".join(type(part).__name__ for part in self)
            raise EncodingInputError(f"{names} have no objective in common; choose schemes that do")
        if sum(part.gated for part in self) > 1:
            raise EncodingInputError("two of the schemes read gates of the tokens, and attention keeps those of one")
        wide = next((part for part in self if part.widens > 1), None)
        other = next((part for part in self if part is not wide and hasattr(part, "d_head")), None)
        if wide is not None and other is not None:
            raise EncodingInputError(
                f"{type(wide).__name__} makes queries and keys {wide.widens} times as wide, and {type(other).__name__} "
                "is made for the width of a head; join it with schemes that are not, such as alibi"
            )
        self.widens = math.prod(part.widens for part in self)
        # A scheme that does nothing with positions does not mind how many axes they have.
        axes = {part.n_axes for part in self if not isinstance(part, NoPos)} or {None}
        if len(axes) > 1:
            raise EncodingInputError("one of the schemes wants positions on several axes and another does not")
        (self.n_axes,) = axes

    def __iter__(self):
        return iter(cast(Iterable[PositionScheme], self.parts))

    def add(self, x: Tensor, positions: Tensor) -> Tensor:
        return reduce(lambda x, part: part.add(x, positions), self, x)

    def rotate(self, x: Tensor, positions: Tensor, *, seq_dim: int = -2) -> Tensor:
        x = x.transpose(seq_dim, -2)
        return reduce(lambda x, part: part.rotate(x, positions), self._turning(), x).transpose(seq_dim, -2)

    def rotate_keys(self, x: Tensor, positions: Tensor, *, seq_dim: int = -2) -> Tensor:
        x = x.transpose(seq_dim, -2)
        return reduce(lambda x, part: part.rotate_keys(x, positions), self._turning(), x).transpose(seq_dim, -2)

    def _turning(self) -> list[PositionScheme]:
        return sorted(self, key=lambda part: -part.widens)

    def gates(self, x: Tensor) -> Tensor | None:
        return next((part.gates(x) for part in self if part.gated), None)

    def bias(
        self, q: Tensor, k: Tensor, positions: Tensor, key_positions: Tensor, visible=None, gates=None
    ) -> Tensor | None:
        total = None
        for part in self:
            extra = {"visible": visible} if part.reads_mask else {}
            extra |= {"gates": gates} if part.gated else {}
            one = part.bias(q, k, positions, key_positions, **extra)
            total = one if total is None else total if one is None else total + one
        return total

    def bias_by_offset(self, offsets: Tensor) -> Tensor | None:
        biases = [part.bias_by_offset(offsets) for part in self if part.biased]
        if not biases or any(bias is None for bias in biases):
            return None
        return cast(Tensor, sum(biases))

    def score_mod(self) -> ScoreMod | None:
        offered = [part.score_mod() for part in self if part.biased]
        hooks = [hook for hook in offered if hook is not None]
        if not hooks or len(hooks) < len(offered):
            return None

        def chained(score, batch, head, query, key):
            for hook in hooks:
                score = hook(score, batch, head, query, key)
            return score

        return chained

    def layer(self, index: int) -> PositionScheme:
        layers = [part.layer(index) for part in self]
        return self if all(a is b for a, b in zip(layers, self, strict=True)) else Composed(*layers)

    @property
    def biased(self) -> bool:
        return any(part.biased for part in self)

    @property
    def gated(self) -> bool:
        return any(part.gated for part in self)


class _ByLayer(PositionScheme, forwards=True):
    """A scheme that acts on queries, keys and logits through its layers only."""

    of_layers: Sequence[Any]

    def _misused(self, *args: Any, **options: Any) -> Any:
        raise EncodingInputError("each layer has its own scheme here; take that of one, scheme.layer(i)")

    rotate = bias = bias_by_offset = _misused

    def layer(self, index: int) -> PositionScheme:
        if index not in range(len(self.of_layers)):
            raise EncodingInputError(f"there is no layer {index} in a model of {len(self.of_layers)}; count from 0")
        return cast(PositionScheme, self.of_layers[index])


class PerLayer(_ByLayer):
    """One scheme a layer, for schemes whose layers share no parameters.

    Args:
        layers: the scheme of each layer. What the first one adds to the embeddings is added.

    Raises:
        EncodingInputError: what is no list of schemes; or `layer` is asked for one that is not there.

    Example:
        >>> from posembed import scheme
        >>> shaw = scheme("shaw", d_model=8, n_heads=2, n_layers=3)
        >>> shaw.layer(0) is shaw.layer(1)
        False
    """

    @public(EncodingInputError)
    def __init__(self, layers: Sequence[PositionScheme]):
        super().__init__()
        self.layers, self.n_layers = nn.ModuleList(layers), len(layers)
        self.of_layers = layers
        self.objectives = frozenset.intersection(*(layer.objectives for layer in layers))
        self.n_axes = layers[0].n_axes

    def add(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.layer(0).add(x, positions)


class OnLayers(_ByLayer):
    """A scheme on some layers; the others see no positions, as in models that interleave both kinds.

    What the scheme adds to the embeddings is added as ever: all layers see it.

    Args:
        scheme: any scheme; one whose layers share nothing is made with n_layers.
        layers: the indices, from 0, of the layers that use it.
        n_layers: how many layers the model has.

    Raises:
        EncodingInputError: what is no scheme, no list; an index that the model has no layer for.

    Example:
        >>> from posembed import scheme
        >>> from posembed.encodings import OnLayers
        >>> mixed = OnLayers(scheme("rope", d_model=8, n_heads=2), [0, 1, 2], n_layers=4)
        >>> [type(mixed.layer(i)).__name__ for i in range(4)]
        ['RoPE', 'RoPE', 'RoPE', 'NoPos']
    """

    @public(EncodingInputError)
    def __init__(self, scheme: PositionScheme, layers: Iterable[Whole], *, n_layers: Count):
        super().__init__()
        self.scheme, self.layers, self.n_layers = scheme, tuple(sorted({*layers})), n_layers
        self.objectives, self.n_axes = scheme.objectives, scheme.n_axes
        if self.layers and self.layers[-1] >= n_layers:
            raise EncodingInputError(f"there is no layer {self.layers[-1]} in a model of {n_layers}; count from 0")
        self.of_layers = [scheme.layer(i) if i in self.layers else NoPos() for i in range(n_layers)]

    def add(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.scheme.add(x, positions)
