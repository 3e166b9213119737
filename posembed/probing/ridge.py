"""The probe `ridge`: least squares with a penalty whose strength is chosen on the training rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from .estimators import ScaledProbe
from .rows import N_FOLDS, shuffled_folds

# The strengths go from almost nothing to what leaves little but the mean, in decades, in units of the sum of
# squares of the scaled table, which is n_rows * d_model.
DECADES = tuple(10.0**power for power in range(-12, 3))


class Ridge(ScaledProbe):
    """Ridge regression with a free intercept, its strength chosen by five folds of the rows it is fitted to.

    Rows are centred and divided by the root mean square of all their entries, never column by column. Each output
    chooses its own strength among 1e-12, 1e-11, ..., 100 times n_rows * d_model, in units of scikit-learn's `alpha` for
    the scaled rows, by the mean absolute error of rows left out. Ties go to the stronger penalty.

    Args:
        seed: of the shuffled folds.

    Attributes:
        strength_: what was chosen for each output.
        left_out_errors_: of each row, what is left of its targets after the prediction of the fit without its fold, at
            the strength chosen; "n n_outputs".
        n_features_in_: the width of the table.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.probing import Ridge
        >>> table = sinusoidal(64, 32).numpy()
        >>> probe = Ridge().fit(table[::2], range(0, 64, 2))
        >>> bool(abs(probe.predict(table[1::2]) - range(1, 64, 2)).mean() < 0.5)
        True
    """

    def __init__(self, seed: int = 0):
        self.seed = seed

    def _fit(self, x: Float[np.ndarray, "n d_model"], y: Float[np.ndarray, "n n_outputs"]) -> None:
        strengths = np.array(DECADES) * x.size
        left_out = np.empty((len(strengths), *y.shape))
        for fold in shuffled_folds(len(x), N_FOLDS, self.seed):
            rest = np.delete(np.arange(len(x)), fold)
            left_out[:, fold] = _errors(x, y, rest, fold, strengths)
        # The last of the smallest: argmin takes the first, so the grid is read from its strong end.
        chosen = len(strengths) - 1 - np.argmin(np.abs(left_out).mean(axis=1)[::-1], axis=0)
        self.strength_: Any = strengths[chosen]
        self.left_out_errors_: Any = left_out[chosen, :, np.arange(len(chosen))].T
        self._weights = _Path(x, y).weights(self.strength_)


class _Path:
    """The fits of every strength to the same centred rows, from one eigendecomposition of their products."""

    def __init__(self, x: Float[np.ndarray, "n d_model"], y: Float[np.ndarray, "n n_outputs"]):
        by_rows = len(x) <= x.shape[1]
        values, vectors = np.linalg.eigh(x @ x.T if by_rows else x.T @ x)
        self.values, self.along = values.clip(min=0), vectors.T @ (y if by_rows else x.T @ y)
        self.basis = x.T @ vectors if by_rows else vectors

    def weights(self, strengths: Any) -> Float[np.ndarray, "d_model n_outputs"]:
        """The weights under one strength, or under one for each output."""
        return self.basis @ (self.along / (self.values[:, None] + strengths))


def _errors(
    x: Float[np.ndarray, "n d_model"],
    y: Float[np.ndarray, "n n_outputs"],
    rest: np.ndarray,
    fold: np.ndarray,
    strengths: Float[np.ndarray, " n_strengths"],
) -> Float[np.ndarray, "n_strengths m n_outputs"]:
    """What fits to the rest leave of the targets of a fold; where there is no rest, nothing is predicted."""
    if not len(rest):
        return np.broadcast_to(y[fold], (len(strengths), *y[fold].shape))
    centre, mean = x[rest].mean(axis=0), y[rest].mean(axis=0)
    path = _Path(x[rest] - centre, y[rest] - mean)
    return np.stack([y[fold] - mean - (x[fold] - centre) @ path.weights(strength) for strength in strengths])
