"""How far each token's output moved, on a scale that shows rounding and real change at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Real
from torch import Tensor

from ..errors import FigureInputError
from .looks import looks_of
from .style import DescribedFigure, as_numbers, logarithmic, new_figure, styled


@styled
def token_differences(
    tokens: Sequence[str],
    differences: Mapping[str, Real[Tensor | np.ndarray, " tokens"]],
    *,
    alt: str | None = None,
) -> DescribedFigure:
    """Draw one difference for each token and condition, on a logarithmic axis.

    Args:
        tokens: the labels of the axis, in order.
        differences: for each condition, "tokens" numbers of zero or more. What is below the resolution of their
            dtype, zero included, is rounding and is drawn at that resolution.
        alt: the description; by default one of what is drawn, in words and numbers.

    Returns:
        The figure.

    Raises:
        FigureInputError: a condition has another number of values than there are tokens, or a negative one.

    Example:
        >>> import torch
        >>> from posembed.figures import token_differences
        >>> figure = token_differences(["I", "do"], {"zeroed": torch.tensor([1e-7, 0.0])}, alt="Two small differences.")
        >>> len(figure.axes[0].lines)
        1
    """
    figure, axes = new_figure(alt)
    for (label, values), look in zip(differences.items(), looks_of(differences), strict=True):
        numbers = as_numbers(values, 1)
        if len(numbers) != len(tokens) or not (numbers >= 0).all():
            raise FigureInputError(f"{label!r} needs {len(tokens)} differences of zero or more, one for each token")
        # Zero has no place on a logarithmic axis.
        shown = numbers.clip(min=_resolution(values))
        axes.plot(range(len(tokens)), shown, markersize=8, label=label, **look | {"linestyle": "none"})
    logarithmic(axes.yaxis)
    axes.set_xticks(range(len(tokens)), tokens)
    axes.set_ylabel("difference, in units of\nthe largest output")
    figure.legend(loc="outside upper center", ncols=len(differences))
    return figure


def _resolution(values: Real[Tensor | np.ndarray, " tokens"]) -> float:
    """Of the format of these numbers; of float64, where they are whole."""
    kind = torch.as_tensor(values).dtype
    return torch.finfo(kind if kind.is_floating_point else torch.float64).eps
