"""The probe `ols`: least squares in closed form."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from .estimators import ScaledProbe


class LeastSquares(ScaledProbe):
    """Ordinary least squares with an intercept; of several exact solutions, the one with the smallest weights.

    With no more rows than columns almost any rows fit any labels exactly, so its training error says nothing. It is
    solved by singular values.

    Attributes:
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
        return np.linalg.lstsq(x, y, rcond=None)[0]
