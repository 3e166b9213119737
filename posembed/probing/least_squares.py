"""The probe `ols`: least squares in closed form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpocon

from ._estimators import LinearProbe, with_ones_lifted

# The products of rows have the square of the rows' condition. Where its reciprocal is above this, two corrections from
# the rows themselves bring the answer to what a factorisation of the rows would give; below it one is used.
SMALLEST_RECIPROCAL_CONDITION = 1e-11
CORRECTIONS = 2


class LeastSquares(LinearProbe):
    """Ordinary least squares with an intercept; of several exact solutions, the one with the smallest weights.

    With no more rows than columns any labels are fitted exactly, so its training error says nothing. It is solved by
    Cholesky's factorisation of the smaller matrix of products, with corrections from the rows (Björck 1987, Stability
    analysis of the method of seminormal equations), and by singular values where that matrix is close to singular.

    Attributes:
        coef_: change of the prediction for a change of an entry, "d_model" or "n_outputs d_model".
        intercept_: the prediction for a row of zeros.
        n_features_in_: the width of the table.

    Example:
        >>> import numpy as np
        >>> from posembed.probing import LeastSquares
        >>> rows = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 3.0]])
        >>> LeastSquares().fit(rows, [0, 1, 2]).predict([[5.0, 0.0]]).round(6)
        array([5.])
    """

    def _solve(
        self, x: Float[np.ndarray, "n d_model"], y: Float[np.ndarray, "n n_outputs"]
    ) -> Float[np.ndarray, "d_model n_outputs"]:
        solve = _by_products(x)
        if solve is None:
            return np.linalg.lstsq(x, y, rcond=None)[0]
        weights = solve(y)
        for _ in range(CORRECTIONS):
            weights += solve(y - x @ weights)
        return weights


def _by_products(x: Float[np.ndarray, "n d_model"]) -> Callable[[np.ndarray], np.ndarray] | None:
    """A solver from the smaller matrix of products; None where that is too close to singular."""
    by_rows = len(x) <= x.shape[1]
    gram = x @ x.T if by_rows else x.T @ x
    if by_rows:
        gram = with_ones_lifted(gram, float(np.trace(gram)) / max(len(x) - 1, 1))
    size = float(np.abs(gram).sum(axis=0).max())
    try:
        factor = cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    if not _reciprocal_condition(factor[0], size) > SMALLEST_RECIPROCAL_CONDITION:
        return None
    if by_rows:
        return lambda y: x.T @ cho_solve(factor, y, check_finite=False)
    return lambda y: cho_solve(factor, x.T @ y, check_finite=False)


def _reciprocal_condition(factor: Float[np.ndarray, "n n"], size: float) -> float:
    """LAPACK's estimate from a Cholesky factor and the largest column sum of what was factorised."""
    estimate, _ = dpocon(factor, size, uplo="L")
    return float(estimate)
