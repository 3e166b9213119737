"""The small probes, as scikit-learn's regressors, and what a score is to be compared with.

Each probe is fitted to centred rows of one scale and to centred targets. The network is scikit-learn's. Ridge is not:
its `RidgeCV` chooses one strength for all targets, or one for each but then without folds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils.validation import check_is_fitted, validate_data

from ..errors import ProbeInputError
from ..public import Count, Seed, public
from ..seeds import generator
from .rows import N_FOLDS, shuffled_folds

# Strengths of ridge, from almost nothing to what leaves little but the mean, in decades, in units of the sum of squares
# of the scaled table, which is n_rows * d_model.
DECADES = tuple(10.0**power for power in range(-12, 3))


class Scaling(NamedTuple):
    """What was subtracted and divided by, to do the same to other rows; rows that are all equal have the scale zero."""

    centre: Float[np.ndarray, " d_model"]
    scale: float

    def apply(self, x: Float[np.ndarray, "n d_model"]) -> Float[np.ndarray, "n d_model"]:
        """Centre and divide rows as the fitted ones were; all become zeros where the scale is zero."""
        return (x - self.centre) / self.scale if self.scale else np.zeros_like(x)


def fitted_scaling(x: Float[np.ndarray, "n d_model"]) -> Scaling:
    """The column means and the one root mean square of all centred entries.

    Columns are not divided by their own spread: that blows up those which hold nothing but noise (GPT-2's first 512
    rows are read with an error of 8 positions then, and of 1 without).
    """
    # Less the first row before the mean is taken: equal rows then give zeros, not the rounding of a mean.
    moved = x - x[0]
    mean = moved.mean(axis=0)
    moved -= mean
    # In units of the largest entry, whose square may be too large or too small for its format.
    largest = float(np.abs(moved).max())
    scale = largest * float(np.sqrt(np.mean((moved / largest) ** 2))) if largest > 0 else 0.0
    return Scaling(x[0] + mean, scale)


class ScaledProbe(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """A regression from scaled rows to centred targets, in float64. A subclass fits it; a linear one says its weights.

    Attributes:
        n_features_in_: the width of the table.
    """

    def fit(self, x: Any, y: Any) -> Any:
        """Fit to rows.

        Args:
            x: "n d_model", any numbers.
            y: "n" or "n n_outputs".

        Returns:
            The probe itself.
        """
        x, y = validate_data(self, x, y, multi_output=True, y_numeric=True, dtype=np.float64)
        y = np.asarray(y, dtype=np.float64)
        self._scaling, self._mean = fitted_scaling(x), y.mean(axis=0)
        self._fit(self._scaling.apply(x), (y - self._mean).reshape(len(y), -1))
        return self

    def predict(self, x: Any) -> Float[np.ndarray, "..."]:
        """Predict for rows: "n" or, fitted to several outputs, "n n_outputs"."""
        check_is_fitted(self)
        rows = validate_data(self, x, reset=False, dtype=np.float64)
        return self._predict(self._scaling.apply(rows)).reshape(len(rows), *np.shape(self._mean)) + self._mean

    def _predict(self, x: Float[np.ndarray, "n d_model"]) -> Float[np.ndarray, "n n_outputs"]:
        return x @ self._weights


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

    def _fit(self, x: Float[np.ndarray, "n d_model"], y: Float[np.ndarray, "n n_outputs"]) -> None:
        self._weights = np.linalg.lstsq(x, y, rcond=None)[0]


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
        left_out = np.tile(y, (len(strengths), 1, 1))  # where one row is all there is, nothing is predicted of it
        for fold in shuffled_folds(len(x), N_FOLDS, self.seed) if len(x) > 1 else ():
            rest = np.delete(np.arange(len(x)), fold)
            centre, mean = x[rest].mean(axis=0), y[rest].mean(axis=0)
            weights = _ridge(x[rest] - centre, y[rest] - mean)
            left_out[:, fold] = [y[fold] - mean - (x[fold] - centre) @ weights(strength) for strength in strengths]
        # The last of the smallest: argmin takes the first, so the grid is read from its strong end.
        chosen = len(strengths) - 1 - np.argmin(np.abs(left_out).mean(axis=1)[::-1], axis=0)
        self.strength_: Any = strengths[chosen]
        self.left_out_errors_: Any = left_out[chosen, :, np.arange(len(chosen))].T
        self._weights = _ridge(x, y)(self.strength_)


def _ridge(
    x: Float[np.ndarray, "n d_model"], y: Float[np.ndarray, "n n_outputs"]
) -> Callable[[Any], Float[np.ndarray, "d_model n_outputs"]]:
    """The weights under any one strength, or one for each output, from one eigendecomposition of centred rows."""
    by_rows = len(x) <= x.shape[1]
    values, vectors = np.linalg.eigh(x @ x.T if by_rows else x.T @ x)
    along = vectors.T @ (y if by_rows else x.T @ y)
    basis = x.T @ vectors if by_rows else vectors
    return lambda strengths: basis @ (along / (values.clip(min=0)[:, None] + strengths))


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

    def _fit(self, x: Float[np.ndarray, "n d_model"], y: Float[np.ndarray, "n n_outputs"]) -> None:
        reach = x.shape[1] ** -0.5
        start = generator(self.seed, "start").uniform(-reach, reach, size=(y.shape[1], x.shape[1])).T
        left, values, right = np.linalg.svd(x, full_matrices=False)
        gone = 1 - (1 - (values / (values[0] or 1.0)) ** 2) ** self.n_steps
        missing = left.T @ (y - x @ start)
        rates = np.divide(gone, values, out=np.zeros_like(gone), where=values > 0)
        self._weights = start + right.T @ (rates[:, None] * missing)


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
            self._networks = MultiOutputRegressor(network).fit(x, scaled)
        self.n_iter_ = max(each.n_iter_ for each in self._networks.estimators_)

    def _predict(self, x: Float[np.ndarray, "n d_model"]) -> Float[np.ndarray, "n n_outputs"]:
        return self._networks.predict(x) * self._spread


@public(ProbeInputError)
def permuted_labels(
    labels: Shaped[np.ndarray, " n"], n_permutations: Count, *, seed: Seed = 0
) -> Shaped[np.ndarray, "n k"]:
    """Deal the labels out among the rows at random: a control task (Hewitt and Liang 2019).

    A probe that does as well on these shows nothing of the table: it has learned rows by heart, or nothing.

    Args:
        labels: one for each row.
        n_permutations: how many times.
        seed: of the permutations.

    Returns:
        A column for each permutation.

    Raises:
        ProbeInputError: less than one permutation; labels that are no array with one axis.

    Example:
        >>> import numpy as np
        >>> from posembed.probing import permuted_labels
        >>> bool((np.sort(permuted_labels(np.arange(9.0), 4), axis=0).T == np.arange(9)).all())
        True
    """
    rng = generator(seed, "permuted labels")
    return np.stack([rng.permutation(labels) for _ in range(n_permutations)], axis=1)


@public(ProbeInputError)
def random_tables_like(
    x: Float[np.ndarray, "n d_model"], n_draws: Count, *, seed: Seed = 0
) -> Iterator[Float[np.ndarray, "n d_model"]]:
    """Yield tables of independent normal entries with the mean of each column and the one overall spread of a table.

    Args:
        x: the table.
        n_draws: how many.
        seed: of the entries.

    Yields:
        A table of the same size. Where all rows of `x` are equal its spread is 1.

    Raises:
        ProbeInputError: what is no table or no number of draws.

    Example:
        >>> import numpy as np
        >>> from posembed.probing import random_tables_like
        >>> (table,) = random_tables_like(np.arange(2000.0).reshape(1000, 2), 1)
        >>> bool(abs(table.std() / np.arange(2000.0).std() - 1) < 0.05)
        True
    """
    scaling, rng = fitted_scaling(x), generator(seed, "random tables")
    for _ in range(n_draws):
        yield rng.normal(size=x.shape) * (scaling.scale or 1.0) + scaling.centre


def constant_guess(train: Shaped[np.ndarray, " n_train"]) -> float:
    """The guess with the least mean absolute error on the training rows: their median.

    Example:
        >>> import numpy as np
        >>> from posembed.probing import constant_guess
        >>> constant_guess(np.array([0, 2, 10]))
        2.0
    """
    return float(np.median(train))
