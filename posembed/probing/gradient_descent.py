"""The probe `gd`: least squares by gradient steps, as most published probes fit it."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from ..checks import check_whole
from ..errors import ProbeInputError
from ..seeds import generator
from .estimators import ScaledProbe


class GradientDescent(ScaledProbe):
    """A linear layer trained on the squared error by plain full-batch gradient descent, for comparison with `ols`.

    The layer starts as `torch.nn.Linear` does, uniformly within 1 / sqrt(d_model). The step is 1 / L with the largest
    curvature L, so no step overshoots. What the steps do not reach in directions of little variance stays
    as it started: after t steps a direction of curvature s keeps (1 - s / L)^t of its error, and that is how all steps
    are taken at once. Targets are centred, so the intercept is at its best from the start.

    Args:
        n_steps: how many.
        seed: of the start; each output has its own.

    Attributes:
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
        check_whole("n_steps", self.n_steps, ProbeInputError, least=0)
        reach = x.shape[1] ** -0.5
        start = generator(self.seed, "start").uniform(-reach, reach, size=(y.shape[1], x.shape[1])).T
        left, values, right = np.linalg.svd(x, full_matrices=False)
        gone = 1 - (1 - (values / values[0]) ** 2) ** self.n_steps
        missing = left.T @ (y - x @ start)
        return start + right.T @ (np.divide(gone, values, out=np.zeros_like(gone), where=values > 0)[:, None] * missing)
