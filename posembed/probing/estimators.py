"""What the probes share: centred rows of one scale, centred targets, and what scikit-learn expects of a regressor."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data


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
    """A regression from scaled rows to centred targets, in float64. A subclass says which, and for a linear one how.

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

    def _fit(self, x: Float[np.ndarray, "n d_model"], y: Float[np.ndarray, "n n_outputs"]) -> None:
        self._weights = self._solve(x, y) if x.any() else np.zeros((x.shape[1], y.shape[1]))

    def _predict(self, x: Float[np.ndarray, "n d_model"]) -> Float[np.ndarray, "n n_outputs"]:
        return x @ self._weights

    def _solve(
        self, x: Float[np.ndarray, "n d_model"], y: Float[np.ndarray, "n n_outputs"]
    ) -> Float[np.ndarray, "d_model n_outputs"]:
        raise NotImplementedError
