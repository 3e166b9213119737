"""The probe `ridge`: least squares with a penalty whose strength is chosen on the training rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from ..errors import ProbeInputError
from ._estimators import LinearProbe, with_ones_lifted
from ._random import generator

# By default the strengths go from almost nothing to what leaves little but the mean, in decades, in units of the sum of
# squares of the scaled table, which is n_rows * d_model.
DECADES = tuple(10.0**power for power in range(-12, 3))


class Ridge(LinearProbe):
    """Ridge regression with a free intercept, its strength chosen by K folds of the rows it is fitted to.

    Rows are centred and divided by the root mean square of all their entries, never column by column. Each output
    chooses its own strength, by the mean absolute error of rows left out. All strengths and folds come from one
    eigendecomposition: with residuals r = y - H y of the fit to all rows, the errors of the rows F of a fold, had they
    been left out, are (I - H_FF)^-1 r_F. Ties go to the stronger penalty.

    Args:
        strengths: to choose from; in units of scikit-learn's `alpha` for the scaled rows. By default 1e-12, 1e-11, ...,
            100 times n_rows * d_model.
        n_folds: how many; with fewer rows, each row is left out by itself.
        seed: of the shuffled folds.

    Attributes:
        strength_: what was chosen; an array with one for each output where y has two axes.
        grid_end_: "weakest" or "strongest" where an end of the grid was chosen, which says that a strength beyond it
            might be better, else None; a list where y has two axes.
        left_out_errors_: of each row, what is left of its target after the prediction of the fit without its fold, at
            the strength chosen; "n" or "n n_outputs".
        coef_: change of the prediction for a change of an entry, "d_model" or "n_outputs d_model".
        intercept_: the prediction for a row of zeros.
        n_features_in_: the width of the table.

    Raises:
        ProbeInputError: on fitting: strengths that are not positive numbers, fewer than two folds.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.probing import Ridge
        >>> table = sinusoidal(64, 32).numpy()
        >>> probe = Ridge().fit(table[::2], range(0, 64, 2))
        >>> bool(abs(probe.predict(table[1::2]) - range(1, 64, 2)).mean() < 0.5)
        True
    """

    def __init__(
        self,
        strengths: Sequence[float] | Float[np.ndarray, " n_strengths"] | None = None,
        n_folds: int = 5,
        seed: int = 0,
    ):
        self.strengths = strengths
        self.n_folds = n_folds
        self.seed = seed

    def _solve(
        self, x: Float[np.ndarray, "n d_model"], y: Float[np.ndarray, "n n_outputs"]
    ) -> Float[np.ndarray, "d_model n_outputs"]:
        strengths = self._checked_strengths(x)
        folds = list(shuffled_folds(len(x), self.n_folds, self.seed))
        if not x.any():
            self._note(strengths, np.full(y.shape[1], len(strengths) - 1))
            self._keep_errors(_left_out(None, folds, y, 1.0))
            return np.zeros((x.shape[1], y.shape[1]))
        fits = _Fits(x, len(x) - max(map(len, folds)))
        left_out = np.stack([_left_out(fits, folds, y, strength) for strength in strengths])
        # The last of the smallest: argmin takes the first, so the grid is read from its strong end.
        chosen = len(strengths) - 1 - np.argmin(np.abs(left_out).mean(axis=1)[::-1], axis=0)
        self._keep_errors(left_out[chosen, :, np.arange(len(chosen))].T)
        self._note(strengths, chosen)
        return fits.weights(y, strengths[chosen])

    def _checked_strengths(self, x: np.ndarray) -> Float[np.ndarray, " n_strengths"]:
        if not isinstance(self.n_folds, int) or self.n_folds < 2:
            raise ProbeInputError(f"n_folds is {self.n_folds!r}; it must be a whole number of at least 2")
        if self.strengths is None:
            return np.array(DECADES) * x.size
        strengths = np.sort(np.asarray(self.strengths, dtype=np.float64))
        if strengths.ndim != 1 or not len(strengths) or not (np.isfinite(strengths) & (strengths > 0)).all():
            raise ProbeInputError(f"strengths are {self.strengths!r}; they must be positive numbers, at least one")
        return strengths

    def _keep_errors(self, errors: Float[np.ndarray, "n n_outputs"]) -> None:
        self.left_out_errors_: Any = errors[:, 0] if self._one_output else errors

    def _note(self, strengths: np.ndarray, chosen: np.ndarray) -> None:
        ends: dict[int, str] = {0: "weakest", len(strengths) - 1: "strongest"}
        names = [ends.get(int(index)) for index in chosen]
        self.strength_: Any = float(strengths[chosen[0]]) if self._one_output else strengths[chosen]
        self.grid_end_: Any = names[0] if self._one_output else names


class _Fits:
    """Fits of every strength to the same centred rows, from one eigendecomposition of their products.

    The products of rows with rows are taken where the rows left by a fold are no more than the columns. A weak penalty
    then leaves almost nothing of a fold, which the products of columns give as a difference, without correct digits.
    """

    def __init__(self, x: Float[np.ndarray, "n d_model"], n_left: int):
        self.x, self.by_rows = x, n_left <= x.shape[1]
        gram = x @ x.T if self.by_rows else x.T @ x
        if self.by_rows:
            # The largest eigenvalue is then that of the vector of ones, which is left to the intercept.
            gram = with_ones_lifted(gram, 2 * float(np.trace(gram)))
        values, vectors = np.linalg.eigh(gram)
        keep = slice(None, -1) if self.by_rows else slice(None)
        self.values, self.vectors = values[keep].clip(min=0), vectors[:, keep]
        # Along each: the rows in units of length one, or the rows as they are.
        self.along = self.vectors if self.by_rows else x @ self.vectors

    def residuals(self, y: np.ndarray, strength: float) -> Float[np.ndarray, "n n_outputs"]:
        """(I - H) y for centred targets."""
        if self.by_rows:
            return self.along @ (self._kept(strength)[:, None] * (self.along.T @ y))
        return y - self.along @ ((self.along.T @ y) / (self.values + strength)[:, None])

    def block(self, fold: Int[np.ndarray, " m"], strength: float) -> Float[np.ndarray, "m m"]:
        """(I - H)_FF, with the intercept in H."""
        rows = self.along[fold]
        if self.by_rows:
            # Not from I less H: with a weak penalty the two are all but equal.
            rows = rows * np.sqrt(self._kept(strength))
            return rows @ rows.T
        rows = rows / np.sqrt(self.values + strength)
        return np.eye(len(fold)) - rows @ rows.T - 1 / len(self.x)

    def weights(self, y: np.ndarray, strengths: np.ndarray) -> Float[np.ndarray, "d_model n_outputs"]:
        """The weights of each output under its own strength."""
        shrunk = (self.along.T @ y) / (self.values[:, None] + strengths)
        return self.x.T @ (self.vectors @ shrunk) if self.by_rows else self.vectors @ shrunk

    def _kept(self, strength: float) -> Float[np.ndarray, " r"]:
        """The part of a target along each eigenvector that the fit leaves over."""
        return strength / (self.values + strength)


def _left_out(
    fits: _Fits | None, folds: Sequence[np.ndarray], y: Float[np.ndarray, "n k"], strength: float
) -> Float[np.ndarray, "n k"]:
    """The errors of each row under a fit without its fold; of the mean alone where there are no fits."""
    residuals, errors = y if fits is None else fits.residuals(y, strength), np.empty_like(y)
    for fold in folds:
        # I - H of the mean alone; of a single row there is nothing else to take a mean of.
        block = np.eye(len(fold)) - (len(fold) < len(y)) / len(y) if fits is None else fits.block(fold, strength)
        errors[fold] = np.linalg.solve(block, residuals[fold])
    return errors


def shuffled_folds(n: int, n_folds: int, seed: int) -> Iterator[Int[np.ndarray, " m"]]:
    """Yield the rows of each fold in rising order; folds differ by one row at most.

    Example:
        >>> from posembed.probing.ridge import shuffled_folds
        >>> [len(fold) for fold in shuffled_folds(7, 3, seed=0)]
        [3, 2, 2]
    """
    order = generator(seed, "folds").permutation(n)
    for fold in np.array_split(order, min(n_folds, n)):
        yield np.sort(fold)
