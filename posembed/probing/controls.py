"""What a score is to be compared with: the best constant, labels that mean nothing, a table that holds nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Shaped

from ..errors import ProbeInputError
from ..public import Count, Seed, public
from ..seeds import generator
from .estimators import fitted_scaling


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
