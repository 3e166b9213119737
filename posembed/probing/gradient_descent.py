"""The probe `gd`: least squares by gradient steps, as most published probes fit it."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.linalg import eigvalsh

from ..errors import ProbeInputError
from ._estimators import LinearProbe
from ._random import generator


class GradientDescent(LinearProbe):
    """A linear layer trained on the squared error by plain full-batch gradient descent, for comparison with `ols`.

    The layer starts as `torch.nn.Linear` does, uniformly within 1 / sqrt(d_model). The step is 1 / L with the largest
    curvature L, so no step overshoots. What the steps do not reach in directions of little variance stays
    as it started: after t steps a direction of curvature s keeps (1 - s / L)^t of its error. Targets are centred, so
    the intercept is at its best from the start.

    Args:
        n_steps: how many.
        seed: of the start; each output has its own.

    Attributes:
        coef_: change of the prediction for a change of an entry, "d_model" or "n_outputs d_model".
        intercept_: the prediction for a row of zeros.
        n_features_in_: the width of the table.

    Raises:
        ProbeInputError: on fitting: n_steps is not a whole number of at least 0.

    Example:
        >>> import numpy as np
        >>> from posembed.probing import GradientDescent
        >>> rows = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 3.0]])
        >>> GradientDescent(n_steps=1000).fit(rows, [0, 1, 2]).predict([[5.0, 0.0]]).round(6)
        array([5.])
    """

    def __init__(self, n_steps: int = 10_000, seed: int = 0):
        self.n_steps = n_steps
        self.seed = seed

    def _solve(
        self, x: Float[np.ndarray, "n d_model"], y: Float[np.ndarray, "n n_outputs"]
    ) -> Float[np.ndarray, "d_model n_outputs"]:
        if not isinstance(self.n_steps, int) or self.n_steps < 0:
            raise ProbeInputError(f"n_steps is {self.n_steps!r}; it must be a whole number of at least 0")
        if not x.any():
            return np.zeros((x.shape[1], y.shape[1]))
        reach = x.shape[1] ** -0.5
        start = generator(self.seed, "start").uniform(-reach, reach, size=(y.shape[1], x.shape[1])).T
        # The same steps either way, up to rounding: kept as weights, or as the residuals that the weights leave.
        descend = _by_residuals if len(x) < x.shape[1] else _by_weights
        return descend(x, y, start, self.n_steps)


def _by_weights(x: np.ndarray, y: np.ndarray, start: np.ndarray, n_steps: int) -> np.ndarray:
    """W <- W - X^T (X W - Y) / L."""
    gram, wanted = x.T @ x, x.T @ y
    step = 1 / _largest_eigenvalue(gram)
    gram, wanted, weights = gram * step, wanted * step, start.copy()
    gradient = np.empty_like(weights)
    for _ in range(n_steps):
        np.matmul(gram, weights, out=gradient)
        gradient -= wanted
        weights -= gradient
    return weights


def _by_residuals(x: np.ndarray, y: np.ndarray, start: np.ndarray, n_steps: int) -> np.ndarray:
    """R <- R - X X^T R / L. The weights have moved by X^T times the sum of all residuals before, over L."""
    gram = x @ x.T
    step = 1 / _largest_eigenvalue(gram)
    gram *= step
    residual = y - x @ start
    total, change = np.zeros_like(residual), np.empty_like(residual)
    for _ in range(n_steps):
        total += residual
        np.matmul(gram, residual, out=change)
        residual -= change
    return start + x.T @ (total * step)


def _largest_eigenvalue(gram: np.ndarray) -> float:
    last = len(gram) - 1
    return float(eigvalsh(gram, subset_by_index=(last, last))[0])
