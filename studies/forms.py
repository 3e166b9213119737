"""Frozen biases, each of which violates one property in one way.

Runs name this file by its hash: to change it is to run the study anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import brentq

from posembed.encodings import FrozenBias

NEAR = 8.0
Form = Callable[[np.ndarray, float], np.ndarray]


def _distances(at: np.ndarray) -> np.ndarray:
    return abs(at - at[:, None])


def _stretched(at: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Minus the distance between places whose steps are given, one for each place."""
    return -_distances(np.concatenate([[0.0], steps[:-1].cumsum()]))


def _one_sided(at: np.ndarray, more: float) -> np.ndarray:
    """What a distance is multiplied by: 1 + more ahead, 1 - more behind."""
    return 1 + more * np.sign(at - at[:, None])


# Each form by its name: the property that it violates, the bias at an amount, and the largest amount.
FORMS: dict[str, tuple[str, Form, float]] = {
    # It turns round beyond a distance and rises as fast as it fell.
    "far rise": (
        "monotonicity",
        lambda at, share: np.where(
            _distances(at) <= at[-1] * (1 - share), -_distances(at), _distances(at) - 2 * at[-1] * (1 - share)
        ),
        1.0,
    ),
    # It rises up to a distance of at most 8 and falls beyond it.
    "near peak": ("monotonicity", lambda at, turn: -abs(_distances(at) - turn), NEAR),
    # Up to a distance of 8 even distances are lifted and odd ones lowered.
    "near ripple": (
        "monotonicity",
        lambda at, lift: (
            -_distances(at) + lift * np.where(_distances(at) <= NEAR, np.where(_distances(at) % 2 == 1, -1, 1), 0)
        ),
        32.0,
    ),
    # Steps between neighbours grow from the first to the last.
    "drift": (
        "translation_invariance",
        lambda at, growth: _stretched(at, np.exp(growth * at / at[-1])),
        16.0,
    ),
    # Steps between neighbours are long at both ends and short in the middle.
    "wave": (
        "translation_invariance",
        lambda at, depth: _stretched(at, 1 + depth * np.cos(2 * np.pi * (at + 0.5) / at[-1])),
        0.99,
    ),
    # It falls faster ahead than behind.
    "one side": ("symmetry", lambda at, more: -_distances(at) * _one_sided(at, more), 0.99),
    # Ahead it falls as before, behind steeply at first and then hardly.
    "curve": (
        "symmetry",
        lambda at, bend: np.where(
            at >= at[:, None], -_distances(at), -at[-1] * (_distances(at) / at[-1]) ** (1 - bend)
        ),
        0.95,
    ),
}


def amount(form: str, degrees: float, length: int) -> float:
    """How much of a form is an angle of so many degrees to minus the distance, both less the means of their rows."""
    at = np.arange(length, dtype=float)
    _, make, most = FORMS[form]
    undosed = make(at, 0.0)
    found: float = brentq(lambda x: _angle(make(at, x), undosed) - degrees, 0.0, most, xtol=1e-13)
    return found


def bias_of(form: str | None, degrees: float, sided: float, length: int) -> np.ndarray:
    """The bias of a form, on top of a one-sided one where `sided` degrees are not 0, at the norm of minus the distance.

    Args:
        form: of `FORMS`; None for minus the distance.
        degrees: the angle of the form by itself.
        sided: the angle by which the bias is one-sided before the form is put on it.
        length: of texts.
    """
    at = np.arange(length, dtype=float)
    undosed = -_distances(at)
    bias = undosed if form is None else FORMS[form][1](at, amount(form, degrees, length))
    if sided:
        bias = bias * _one_sided(at, amount("one side", sided, length))
    return bias * (_norm(undosed) / _norm(bias))


class FormBias(FrozenBias):
    """A form in place of learned positions; the slope of each head is half that of the one before."""

    def __init__(self, n_heads: int, n_positions: int, *, form: str | None = None, degrees: float = 0.0, sided=0.0):
        matrix = torch.from_numpy(bias_of(form, degrees, sided, n_positions))
        super().__init__(matrix, 0.5 ** torch.arange(n_heads))


def _centred(bias: np.ndarray) -> np.ndarray:
    return bias - bias.mean(axis=1, keepdims=True)


def _norm(bias: np.ndarray) -> float:
    return float(np.linalg.norm(_centred(bias)))


def _angle(bias: np.ndarray, other: np.ndarray) -> float:
    cosine = float((_centred(bias) * _centred(other)).sum()) / (_norm(bias) * _norm(other))
    return math.degrees(math.acos(max(-1.0, min(1.0, cosine))))
