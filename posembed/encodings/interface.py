"""What a position scheme is: at most three places in a Transformer where it may act."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from jaxtyping import Float, Integer
from torch import Tensor, nn

from ..errors import EncodingInputError, shown
from .positions import offsets_between

CAUSAL, BIDIRECTIONAL = "causal", "bidirectional"
# score, batch, head, position of the query, position of the key -> score
ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
# The methods of which a scheme overrides one at least; `score_mod` is another form of its bias.
PLACES = ("add", "rotate", "rotate_keys", "bias", "bias_by_offset", "layer")
BIASES = {"bias", "bias_by_offset"}
HOOKS = (*PLACES, "gates", "score_mod")


class PositionScheme(nn.Module):
    """A way to tell a Transformer where its tokens stand. By itself it does nothing; a scheme overrides what it needs.

    A scheme acts in at most three places: it adds to the embeddings, it rotates queries and keys, or it adds a bias to
    the attention logits. Positions are always passed in, never guessed: offsets, caches and re-ordered tokens need no
    flag in any scheme. What may attend to what is not its business; masks belong to attention.

    Shapes: ``positions`` is "seq" or "batch seq" of integers ("... seq axes" where `n_axes` is set).

    Attributes:
        sizes: the names of the arguments that are sizes of the model, as in `Sizes`; where none are named, the
            arguments that have such a name.
        objectives: which of "causal" and "bidirectional" the scheme is defined for.
        shared: whether all layers use the same parameters; if not, `scheme` makes one part for each layer.
        reads_mask: whether `bias` also wants ``visible=``, "... query key", True where a query may see a key.
        n_axes: the number of coordinates of a position, or None where a position is one number.
        widens: by how much `rotate` and `rotate_keys` widen a head; values keep their width.
        blind: whether the scheme is meant to tell nothing, as `NoPos` is.

    Raises:
        EncodingInputError: a class that overrides none of these places, perhaps by a slip of the name; with a method
            that looks like such a slip; or that defines both `bias` and `bias_by_offset`, of which attention takes one.
            A scheme that hands both on to others says ``class Mine(PositionScheme, forwards=True)``.

    Example:
        >>> import torch
        >>> from posembed import PositionScheme
        >>> class Nearness(PositionScheme):
        ...     def bias_by_offset(self, offsets):
        ...         return -offsets.abs().float()[None]
        >>> q = k = torch.zeros(1, 1, 3, 4)
        >>> Nearness().bias(q, k, torch.arange(3), torch.arange(3))
        tensor([[[-0., -1., -2.],
                 [-1., -0., -1.],
                 [-2., -1., -0.]]])
    """

    sizes: tuple[str, ...] = ()
    objectives: frozenset[str] = frozenset({CAUSAL, BIDIRECTIONAL})
    shared: bool = True
    reads_mask: bool = False
    n_axes: int | None = None
    widens: int = 1
    blind: bool = False
    # The last bias by offset that a class or one that it inherits from has defined; off it `bias` is read.
    _by_offset: Any = None

    def __init_subclass__(cls, *, forwards: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        _refuse_slips(cls)
        own = BIASES & vars(cls).keys()
        if own == BIASES and not forwards:
            raise EncodingInputError(
                f"{cls.__name__} defines both bias and bias_by_offset, and attention takes one; "
                "leave bias out, which is read off bias_by_offset"
            )
        if "bias_by_offset" in own:
            cls._by_offset = cls.bias_by_offset
        # A subclass with another bias does not inherit that bias in its other forms.
        for name in ({"score_mod"} - vars(cls).keys()) | (BIASES - own if own else set()):
            setattr(cls, name, getattr(PositionScheme, name))

    def __init__(self) -> None:
        super().__init__()
        own = type(self)
        if not self.blind and all(getattr(own, place) is getattr(PositionScheme, place) for place in PLACES):
            raise EncodingInputError(
                f"{own.__name__} overrides none of {', '.join(PLACES)}, so no token would know its position; is one "
                "misspelt? Where nothing is meant, say blind = True in the class"
            )

    def add(self, x: Float[Tensor, "*batch seq d_model"], positions: Integer[Tensor, "..."]) -> Tensor:
        """Add to the embeddings, once, before the first layer; shape and dtype are kept."""
        return x

    def rotate(self, x: Float[Tensor, "*batch seq d_head"], positions: Integer[Tensor, "..."]) -> Tensor:
        """Turn queries, and keys before they go into a cache; shape, but for what `widens` says, and dtype are kept."""
        return x

    def rotate_keys(self, x: Float[Tensor, "*batch seq d_head"], positions: Integer[Tensor, "..."]) -> Tensor:
        """Turn keys, where that is not what `rotate` does (xPos)."""
        return self.rotate(x, positions)

    def bias(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads_kv key d_head"],
        positions: Integer[Tensor, "..."],
        key_positions: Integer[Tensor, "..."],
    ) -> Float[Tensor, "*batch heads query key"] | None:
        """Return what to add to the scaled attention logits, "heads query key", or None.

        A batch axis stands in front when the bias depends on q or k or when positions have one. Unless overridden, it
        is read off `bias_by_offset`, which wants neither q nor k: here they say the shapes.

        It is asked for a block of queries at a time, with all keys that these may see, those of a cache among them;
        both are rotated where the scheme rotates. What a scheme wants to know of the tokens themselves is what `gates`
        has read.
        """
        if self._by_offset is None:
            return None
        offsets = offsets_between(q, k, positions, key_positions)
        by_offset = self._by_offset(offsets.flatten())
        return None if by_offset is None else by_offset.unflatten(-1, offsets.shape).movedim(0, -3)

    def gates(self, x: Float[Tensor, "batch seq d_model"]) -> Float[Tensor, "batch heads seq"] | None:
        """Read off the tokens, as they enter a layer's attention, the numbers that `bias` needs of each; else None.

        Attention keeps them beside the keys, in a cache too, and hands those of all keys to `bias` as ``gates=``.
        """
        return None

    def bias_by_offset(self, offsets: Integer[Tensor, " offsets"]) -> Float[Tensor, "heads offsets"] | None:
        """Return the bias for each offset, key position minus query position, where nothing else matters; else None.

        With contiguous positions attention then needs one number a diagonal and never a whole matrix.
        """
        return None

    def score_mod(self) -> ScoreMod | None:
        """Return the bias as a FlexAttention hook of (score, batch, head, query position, key position), or None.

        A class that does not define it has none, whatever it inherits from: there attention goes in blocks.
        """
        return None

    def layer(self, index: int) -> PositionScheme:
        """Return the scheme that a layer uses: this one, if all layers share it.

        Raises:
            EncodingInputError: the scheme has parameters for one layer (``shared = False``), and there are more.
        """
        if index and not self.shared:
            raise EncodingInputError(
                f"{type(self).__name__} has parameters for one layer, and there is a layer {index}; "
                "give posembed.encodings.PerLayer a list with one for each layer"
            )
        return self

    @property
    def biased(self) -> bool:
        """Whether the scheme acts on the attention logits."""
        own = type(self)
        return own.bias is not PositionScheme.bias or own.bias_by_offset is not PositionScheme.bias_by_offset

    @property
    def gated(self) -> bool:
        """Whether the scheme reads the tokens that enter attention."""
        return type(self).gates is not PositionScheme.gates

    @property
    def adds(self) -> bool:
        """Whether the scheme, or a part of it, acts on the embeddings."""
        parts = [each for each in self.modules() if isinstance(each, PositionScheme) and each is not self]
        return any(each.adds for each in parts) if parts else type(self).add is not PositionScheme.add

    def check_objective(self, causal: bool, name: str | None = None) -> None:
        """Raise EncodingInputError when the scheme is not defined for a causal, or for a bidirectional, model."""
        wanted = CAUSAL if causal else BIDIRECTIONAL
        if wanted not in self.objectives:
            defined = " and ".join(sorted(self.objectives))
            raise EncodingInputError(
                f"{name or type(self).__name__} is not defined for a {wanted} model, only for a {defined} one"
            )

    def extra_repr(self) -> str:
        """Say what the scheme was made with, as far as it keeps that under the names of its arguments."""
        given = {name: getattr(self, name, None) for name in inspect.signature(type(self).__init__).parameters}
        kept = {name: value for name, value in given.items() if not isinstance(value, Tensor | nn.Module | None)}
        return ", ".join(f"{name}={value!r}" for name, value in kept.items())

    def __add__(self, other: PositionScheme) -> PositionScheme:
        from .composed import Composed

        return Composed(self, other) if isinstance(other, PositionScheme) else NotImplemented


def _refuse_slips(kind: type) -> None:
    """A method that looks like one of the hooks is called by nobody; beside that hook itself it may be a part of it."""
    for name in (name for name, its in vars(kind).items() if inspect.isfunction(its) and name not in HOOKS):
        near = [] if name.startswith("_") else difflib.get_close_matches(name, HOOKS, n=1, cutoff=0.85)
        if near and near[0] not in vars(kind):
            raise EncodingInputError(
                f"{kind.__name__}.{name} is called by nobody; is {near[0]} meant? Else give it another name"
            )


def layers_of(scheme: PositionScheme, n_layers: int) -> list[PositionScheme]:
    """The scheme that each layer of a model uses; one that was made for another number of layers is refused."""
    if (made_for := getattr(scheme, "n_layers", n_layers)) != n_layers:
        raise EncodingInputError(f"the scheme was made for {made_for} layers, and the model has {n_layers}")
    return [scheme.layer(index) for index in range(n_layers)]


def check_scheme(given: Any) -> None:
    """Raise EncodingInputError unless it is a scheme that is made."""
    if not isinstance(given, PositionScheme):
        made = "posembed.scheme('alibi', n_heads=8)"
        raise EncodingInputError(f"{shown(given)} is no scheme; give a PositionScheme that is made, such as {made}")
