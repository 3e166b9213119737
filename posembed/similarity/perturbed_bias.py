"""Biases that violate one of the three properties by a dose, and keep the other two as they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import brentq
from torch import Tensor

from ..errors import PropertiesInputError
from ..public import Count, NotNegative, public


@public(PropertiesInputError)
def perturbed_bias(
    violated: Literal["monotonicity", "translation_invariance", "symmetry"], degrees: NotNegative, *, length: Count = 32
) -> Float[Tensor, "length length"]:
    """Make a bias that falls with the distance, turned by so many degrees towards the violation of one property.

    Undosed it is minus the distance, as ALiBi's (Press et al. 2022): monotone, translation invariant, symmetric. With
    one parameter each:

    - "monotonicity": beyond some distance it rises as fast as it fell before. It stays a function of the distance.
    - "translation_invariance": minus the distance between positions that are stretched, exponentially more towards the
      end. It still falls on both sides of each place, and is symmetric.
    - "symmetry": it falls faster ahead than behind, by one factor. It stays a function of the offset, and falls on both
      sides.

    A softmax does not see what all keys of a query have in common, so a dose is measured in rows less their means: it
    is the angle, in degrees, between the dosed bias and the undosed one, taken as vectors of all their entries. All
    have the undosed one's norm: a dose is another form, not another strength.

    Args:
        violated: "monotonicity", "translation_invariance" or "symmetry".
        degrees: the dose; 0 for none. How far it can go depends on the property and the length.
        length: the number of positions.

    Returns:
        The bias, in float64; `properties_of_matrix` says by how much the property is violated.

    Raises:
        PropertiesInputError: an unknown property, a dose below 0 or larger than the property allows.

    Example:
        >>> from posembed.similarity import perturbed_bias, properties_of_matrix
        >>> print(properties_of_matrix(perturbed_bias("symmetry", 0)))
        monotonicity 1.000, translation invariance 1.000, symmetry 1.000
        >>> print(properties_of_matrix(perturbed_bias("symmetry", 36)))
        monotonicity 1.000, translation invariance 1.000, symmetry 0.513
    """
    form, most = _FORMS[violated]
    at = np.arange(length, dtype=float)
    undosed = form(at, 0.0)
    largest = _angle(form(at, most), undosed)
    if degrees > largest:
        raise PropertiesInputError(
            f"degrees is {degrees}; {violated} with {length} positions allows doses from 0 to {math.floor(largest)}"
        )
    amount: Any = 0.0 if degrees == 0 else brentq(lambda x: _angle(form(at, x), undosed) - degrees, 0, most, xtol=1e-13)
    dosed = form(at, amount)
    return torch.from_numpy(dosed * (_norm(undosed) / _norm(dosed)))


def _rising(at: Float[np.ndarray, " n"], share: float) -> Float[np.ndarray, "n n"]:
    """It falls up to some distance and rises beyond it, over this share of all distances."""
    distance, turn = abs(at - at[:, None]), at[-1] * (1 - share)
    return np.where(distance <= turn, -distance, distance - 2 * turn)


def _drifting(at: Float[np.ndarray, " n"], growth: float) -> Float[np.ndarray, "n n"]:
    """Steps between neighbours grow by exp(growth) from the first to the last."""
    stretched = np.expm1(growth * at / at[-1]) if growth else at
    return -abs(stretched - stretched[:, None])


def _one_sided(at: Float[np.ndarray, " n"], more: float) -> Float[np.ndarray, "n n"]:
    """Ahead it falls 1 + more times as fast, behind 1 - more times."""
    offset = at - at[:, None]
    return -abs(offset) - more * offset


def _centred(bias: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    return bias - bias.mean(axis=1, keepdims=True)


def _norm(bias: Float[np.ndarray, "n n"]) -> float:
    return float(np.linalg.norm(_centred(bias)))


def _angle(bias: Float[np.ndarray, "n n"], other: Float[np.ndarray, "n n"]) -> float:
    cosine = float((_centred(bias) * _centred(other)).sum()) / (_norm(bias) * _norm(other))
    # Two that are one, or opposite, may be so but for a rounding.
    return math.degrees(math.acos(max(-1.0, min(1.0, cosine))))


# The form of each, and the largest value of its parameter: beyond 1 a side would rise.
_FORMS: dict[str, tuple[Callable[[Float[np.ndarray, " n"], float], Float[np.ndarray, "n n"]], float]] = {
    "monotonicity": (_rising, 1.0),
    "translation_invariance": (_drifting, 16.0),
    "symmetry": (_one_sided, 0.99),
}
