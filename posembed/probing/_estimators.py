"""What the probes share: centring, one scale, an intercept, and what scikit-learn expects of a regressor."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ._scaling import Scaling, fitted_scaling


class ScaledProbe(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """A regression from scaled rows to centred targets, in float64. A subclass says which.

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
        self._one_output = y.ndim == 1
        targets = y.reshape(len(y), -1)
        self._scaling, self._mean = fitted_scaling(x), targets.mean(axis=0)
        self._fit(self._scaling.apply(x), targets - self._mean)
        return self

    def predict(self, x: Any) -> Float[np.ndarray, "..."]:
        """Predict for rows: "n" or, fitted to several outputs, "n n_outputs"."""
        check_is_fitted(self)
        rows = self._scaling.apply(validate_data(self, x, reset=False, dtype=np.float64))
        predicted = self._predict(rows) + self._mean
        return predicted[:, 0] if self._one_output else predicted

    def _fit(self, x: Float[np.ndarray, "n d_model"], y: Float[np.ndarray, "n n_outputs"]) -> None:
        raise NotImplementedError

    def _predict(self, x: Float[np.ndarray, "n d_model"]) -> Float[np.ndarray, "n n_outputs"]:
        raise NotImplementedError


class LinearProbe(ScaledProbe):
    """A linear regression with an intercept. A subclass says how its weights are found.

    Attributes:
        coef_: change of the prediction for a change of an entry, "d_model" or "n_outputs d_model".
        intercept_: the prediction for a row of zeros.
        n_features_in_: the width of the table.
    """

    def _fit(self, x: Float[np.ndarray, "n d_model"], y: Float[np.ndarray, "n n_outputs"]) -> None:
        self._weights = self._solve(x, y)
        self._name_weights()

    def _predict(self, x: Float[np.ndarray, "n d_model"]) -> Float[np.ndarray, "n n_outputs"]:
        # By the centred rows, and not by coef_ and intercept_, which cancel where a table has a large mean.
        return x @ self._weights

    def _name_weights(self) -> None:
        """Give the weights the names and units that scikit-learn gives them."""
        scaling: Scaling = self._scaling
        weights = self._weights / scaling.scale if scaling.scale else self._weights
        intercept = self._mean - scaling.centre @ weights
        with np.errstate(over="ignore"):  # infinite for a table of entries below 1e-300; predictions are not
            coefficients = weights.T / scaling.unit
        self.coef_ = coefficients[0] if self._one_output else coefficients
        self.intercept_ = float(intercept[0]) if self._one_output else intercept

    def _solve(
        self, x: Float[np.ndarray, "n d_model"], y: Float[np.ndarray, "n n_outputs"]
    ) -> Float[np.ndarray, "d_model n_outputs"]:
        raise NotImplementedError


def with_ones_lifted(gram: Float[np.ndarray, "n n"], size: float) -> Float[np.ndarray, "n n"]:
    """Lift the eigenvalue of the vector of ones from zero to `size`, in place.

    The products of centred rows have it at zero, which would make them singular. No centred target has a part along it.
    """
    gram += size / len(gram)
    return gram
