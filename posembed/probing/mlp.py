"""The probe `mlp`: a regression with one hidden layer of rectified units."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from jaxtyping import Float

from .estimators import ScaledProbe


class MLP(ScaledProbe):
    """Two layers with ReLU between, fitted by L-BFGS to all rows at once.

    Rows are centred and divided by one root mean square, targets by their standard deviation; the networks are
    scikit-learn's `MLPRegressor`. Several outputs get a network each, so that none shares its hidden units with others.
    The default penalty is strong on purpose: with weak ones the same network errs more on rows it has not seen.

    Args:
        n_hidden: hidden units.
        penalty: on the squared weights, divided by twice the number of rows (scikit-learn's `alpha`).
        max_iter: steps of L-BFGS.
        seed: of the start.

    Attributes:
        n_iter_: the most steps that a network took; `max_iter` of them mean that it did not come to rest. It is used
            as it is.
        n_features_in_: the width of the table.

    Raises:
        ValueError: on fitting, by scikit-learn: a size, a penalty or a seed that cannot be meant.

    Example:
        >>> import numpy as np
        >>> from posembed.probing import MLP
        >>> rows = np.random.default_rng(0).normal(size=(200, 3))
        >>> probe = MLP(penalty=0.1).fit(rows[:100], abs(rows[:100, 0]))
        >>> bool(abs(probe.predict(rows[100:]) - abs(rows[100:, 0])).mean() < 0.1)
        True
    """

    def __init__(self, n_hidden: int = 64, penalty: float | int = 3.0, max_iter: int = 500, seed: int = 0):
        self.n_hidden = n_hidden
        self.penalty = penalty
        self.max_iter = max_iter
        self.seed = seed

    def _fit(self, x: Float[np.ndarray, "n d_model"], y: Float[np.ndarray, "n n_outputs"]) -> None:
        # Where targets or rows are all alike there is nothing to learn but the mean.
        self._spread = y.std(axis=0) * x.any()
        scaled = y / np.where(self._spread > 0, self._spread, 1)
        self._networks = [self._network(x, target) for target in scaled.T]
        self.n_iter_ = max(network.n_iter_ for network in self._networks)

    def _predict(self, x: Float[np.ndarray, "n d_model"]) -> Float[np.ndarray, "n n_outputs"]:
        return np.stack([network.predict(x) for network in self._networks], axis=1) * self._spread

    def _network(self, rows: np.ndarray, target: np.ndarray) -> Any:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor

        network = MLPRegressor(
            hidden_layer_sizes=(self.n_hidden,),
            solver="lbfgs",
            alpha=self.penalty,
            max_iter=self.max_iter,
            random_state=self.seed,
        )
        with warnings.catch_warnings():
            # Said by `n_iter_`.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return network.fit(rows, target)
