"""No positions at all."""

from .interface import PositionScheme


class NoPos(PositionScheme):
    """No positions at all, the baseline (Haviv et al. 2022, Transformer Language Models without Positional Encodings).

    A bidirectional model is then blind to the order of its tokens; a causal one is not, because its mask breaks the
    symmetry.

    Example:
        >>> import torch
        >>> from posembed import scheme
        >>> x = torch.ones(1, 3, 4)
        >>> scheme("nopos").add(x, torch.arange(3)) is x
        True
    """

    blind = True
