"""What a table, a bias or an attention map says about distance: three properties of positions, and locality.

Wang et al. (2021, On Position Embeddings in BERT) name the three and measure how far each is violated. Their formulas
could not be read, so the numbers here are our own; `Properties` defines them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.stats import kendalltau
from torch import Tensor

from ..dense_tensors import float64_array
from ..encodings import Composed, Learned, PositionScheme
from ..encodings.interface import CAUSAL
from ..errors import PropertiesInputError
from ..public import Count, public
from ..serialization import Record
from ..tables import RowChoice, check_finite_rows, load_table, row_positions
from ..tables.table import warn_of_grid

# Two similarities of a row count as tied up to this part of the largest that its norm allows. A dot product of a
# thousand numbers in float64 is off by 1e-14 of that, and numbers stored in float32 mean nothing below 1e-8 of it.
TIED = 1e-12
# Of more rows not all similarities are formed, and monotonicity is that of about so many.
MOST_ROWS, N_SIMILARITIES = 4096, 2**21
# Below this share of their mean square the variance of the similarities of more rows is rounding.
ROUNDING = 1e-12
# What masks hold in place of minus infinity is less: -10,000 with logits added, the lowest of float16, -1e9.
HIDDEN = -5000.0
# The rows of an attention map sum to one within the larger of this and eight roundings of its format.
SUM_TOLERANCE, ROUNDINGS = 1e-5, 8


@dataclass(frozen=True, repr=False)
class Properties(Record):
    """What a matrix A of similarities, biases or attention weights says about positions; NaN where it says nothing.

    Attributes:
        monotonicity: over every row i and each side, the share of offset pairs 0 < m < n <= max_offset with
            ``A[i, i±m] > A[i, i±n]``; ties count one half. 1 falls with distance everywhere; no order gives 0.5. Of
            causal maps the past side only. NaN where no row has two offsets on a side.
        translation_invariance: 1 - (variance left inside the signed diagonals) / (total variance), the main diagonal
            left out of both; of causal maps the past side only. 1 is Toeplitz: the signed distance says all. NaN where
            nothing varies.
        symmetry: ``1 - ||A - A^T||^2 / (4 ||A - mean(A)||^2)``. 1 is symmetric, 0.5 independent noise, 0 antisymmetric.
            NaN where nothing varies, and of causal maps.
        locality: the mean over the rows of ``sum_j A_ij 2^-|i-j|``, of attention maps (Chen et al. 2023, The Locality
            and Symmetry of Positional Encodings). NaN unless no entry is negative and every row sums to one.

    Printed, locality is left out where it is undefined: only of attention maps is it asked.

    Example:
        >>> from posembed.similarity import Properties
        >>> print(Properties(0.992, 0.801, 1.0, float("nan")))
        monotonicity 0.992, translation invariance 0.801, symmetry 1.000
    """

    monotonicity: float
    translation_invariance: float
    symmetry: float
    locality: float

    def __str__(self) -> str:
        found = {name: value for name, value in self.to_dict().items() if (name, value) != ("locality", None)}
        said = {name: "undefined" if value is None else f"{value:.3f}" for name, value in found.items()}
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in said.items())


@public(PropertiesInputError)
def properties(
    table: Any,
    *,
    n: Count | None = None,
    part: str | None = None,
    similarity: Literal["dot", "cosine"] = "dot",
    max_offset: Count | None = None,
    rows: RowChoice = None,
) -> Any:
    """Measure how the similarity of a position table's rows, or the bias of a scheme, depends on their distance.

    Similarities are computed in float64. Two of a row that differ by less than 1e-12 of the largest that its norm
    allows count as tied, because rounding alone would order them. A table's similarities with itself are symmetric, so
    symmetry says nothing here: it is 1, or NaN where nothing varies.

    Of more than 4,096 rows monotonicity is estimated from some of them, evenly spread, compared with all others: from
    about two million similarities, with a standard error of 0.0005 at most; a warning says so.

    A table of patches is measured as one line, class tokens first, and a warning says so.

    Of a scheme whose bias the offset decides (ALiBi, T5, KERPLE) each head's bias at n positions is measured; of one
    that is defined for causal models alone, the past side.

    Args:
        table: what `posembed.load_table` takes: a tensor or an array "n_positions d_model", a model, a checkpoint. Or a
            scheme of `posembed.scheme`, with n.
        n: of a scheme, the number of positions.
        part: of a model with several tables, as for `load_table`.
        similarity: "dot", or "cosine", in which a row of zeros is orthogonal to all.
        max_offset: the largest offset that monotonicity compares; by default all.
        rows: which to take: the first so many, a (start, stop), a slice or a range. Offsets count the rows taken.

    Returns:
        The properties; locality is NaN. Of a scheme's bias a list, one a head.

    Raises:
        PositionTableError: a row holds NaN or infinity, or what is no table; and the other errors of `load_table`.
        PropertiesInputError: an unknown similarity, a max_offset that is not a whole number of at least 1, or rows that
            the table does not have; a scheme without n, one whose bias depends on queries, keys or more than the
            offset, one that acts in several places or has a scheme for each layer, one that has neither bias nor
            rows (RoPE), or a choice of rows or similarity for a bias.

    Example:
        >>> import torch
        >>> from posembed import sinusoidal
        >>> from posembed.similarity import properties
        >>> print(properties(sinusoidal(64, 16, dtype=torch.float64), max_offset=2))
        monotonicity 1.000, translation invariance 1.000, symmetry 1.000

        Of a scheme, a head at a time:

        >>> from posembed import scheme
        >>> [head.monotonicity for head in properties(scheme("alibi", n_heads=2), n=64)]
        [1.0, 1.0]
    """
    if isinstance(table, PositionScheme) and not (n is None and isinstance(table, Learned)):
        return _of_scheme(table, n, max_offset, part, {"similarity": similarity, "rows": rows})
    if n is not None:
        raise PropertiesInputError("n= is the number of positions of a scheme; of a table choose rows=")
    found = load_table(table, part=part)
    warn_of_grid(found)
    weight = found.weight
    positions = row_positions(rows, len(weight), PropertiesInputError)
    x = float64_array(weight[torch.from_numpy(positions)])
    check_finite_rows(
        ~np.isfinite(x).all(axis=1), positions, "the table", "choose rows without them (rows=), or mend them"
    )
    x = _scaled(x, axis=1 if similarity == "cosine" else None)
    norms = np.linalg.norm(x, axis=1)
    if similarity == "cosine":
        x, norms = x / np.where(norms > 0, norms, 1.0)[:, None], np.sign(norms)
    tied = TIED * norms * norms.max()
    if len(x) <= MOST_ROWS:
        return _measured(x @ x.T, tied, noise=float(tied.max()), max_offset=max_offset)
    reach = min(max_offset or len(x), len(x))
    some = range(0, len(x), max(1, len(x) * reach // N_SIMILARITIES))
    warnings.warn(
        f"of {len(x):,} rows monotonicity is estimated from {len(some)}, evenly spread; its standard error is 0.0005 "
        f"at most (up to {MOST_ROWS:,} rows all are compared)",
        RuntimeWarning,
        stacklevel=2,
    )
    invariance, varies = _invariance_and_variance(x)
    return Properties(
        monotonicity=_monotonicity(lambda i, others: x[others] @ x[i], some, tied, reach, causal=False),
        translation_invariance=_not_negative(invariance),
        symmetry=1.0 if varies else math.nan,
        locality=math.nan,
    )


def _of_scheme(
    scheme: PositionScheme, n: int | None, max_offset: int | None, part: str | None, of_rows: dict[str, Any]
) -> Any:
    """Of the bias of n positions, where offsets are all that matters, a head at a time; or of what is added to them."""
    name = type(scheme).__name__
    if n is None:
        raise PropertiesInputError(f"{name} has no table, and serves any length; say n=, the number of positions")
    parts: list[PositionScheme] = list(scheme) if isinstance(scheme, Composed) else [scheme]
    if any(hasattr(part, "n_layers") for part in parts):
        raise PropertiesInputError(
            f"{name} has a scheme for each layer; measure one: properties(scheme.layer(0), n={n})"
        )
    turns = any(type(part).rotate is not PositionScheme.rotate for part in parts)
    if scheme.adds + scheme.biased + turns > 1:
        raise PropertiesInputError(
            f"{name} acts in several places (embeddings, queries and keys, logits), and a number is of one; measure "
            f"each alone: of a sum, properties(part, n={n}) for part in scheme"
        )
    at = torch.arange(n)
    width = getattr(scheme, "d_model", None) or getattr(scheme, "weight", at[:, None]).shape[1]
    with torch.no_grad():
        if scheme.adds and not scheme.biased:
            return properties(scheme.add(torch.zeros(1, n, width), at)[0], max_offset=max_offset, part=part, **of_rows)
        bias = scheme.bias_by_offset(torch.arange(1 - n, n))
    if bias is None:
        raise PropertiesInputError(
            f"{name} has no bias that the offset decides; measure with properties_of_matrix what scheme.bias, or the "
            "product of what scheme.rotate turns, makes of your queries and keys"
        )
    if part is not None or of_rows != {"similarity": "dot", "rows": None}:
        raise PropertiesInputError(
            f"similarity, rows and part are of tables; the bias of {name} takes n and max_offset"
        )
    whole = bias[:, at - at[:, None] + n - 1]
    if scheme.objectives == {CAUSAL}:
        whole = whole.masked_fill(at > at[:, None], -torch.inf)
    return properties_of_matrix(whole, max_offset=max_offset)


@public(PropertiesInputError)
def properties_of_matrix(
    matrix: Float[Tensor, "*heads seq seq"] | Float[np.ndarray, "*heads seq seq"], *, max_offset: Count | None = None
) -> Any:
    """Measure how the entries of a bias, an attention map or any matrix of similarities depend on distance.

    Entries are compared as they are given. Something varies where the standard deviation is above the rounding of the
    largest entry in the matrix's format.

    A map is causal where everything above the diagonal is zero, or everything is minus infinity: what a mask hides is
    no number. It is measured on the past side, and its symmetry is NaN. An even spread over the past is not Toeplitz,
    but its rows fall from one to the next, which the offset explains in part: 0.16 of 64 tokens. What some masks hold
    in place of minus infinity is taken for it: numbers of -5,000 and less in all of the future, and none elsewhere.
    Rows and columns of padding are numbers like any other where they cannot be told from them: leave them out, those
    in front as in ``a[3:, 3:]``, those behind as in ``a[:-3, :-3]``. So is the far past that a window hides: zeros
    that are alike make a map more invariant, and ``max_offset`` keeps them out of monotonicity alone.

    Args:
        matrix: row i holds what query i gives each key, on any device and in any floating-point format. With an axis
            in front, such as heads, a matrix each.
        max_offset: the largest offset that monotonicity compares; by default all.

    Returns:
        The properties; of several matrices a list, which ``pandas.DataFrame`` takes as it is.

    Raises:
        PositionTableError: a row holds NaN or infinity, other than minus infinity in the future of a causal bias.
        PropertiesInputError: a matrix that is not square or not of floating-point numbers, or a max_offset that
            is not a whole number of at least 1; a causal map with rows of padding in front, spread over all keys.

    Example:
        >>> import torch
        >>> from posembed.similarity import properties_of_matrix
        >>> at = torch.arange(6.0)
        >>> print(properties_of_matrix(at - at[:, None]))
        monotonicity 0.500, translation invariance 1.000, symmetry 0.000
    """
    if isinstance(matrix, np.ma.MaskedArray):
        raise PropertiesInputError("the matrix is a masked array, whose mask would be lost; give it with NaN filled in")
    if matrix.ndim > 2:
        return [properties_of_matrix(each, max_offset=max_offset) for each in matrix]
    if isinstance(matrix, Tensor):
        rounding, values = torch.finfo(matrix.dtype).eps, float64_array(matrix)
    else:
        rounding, values = float(np.finfo(matrix.dtype).eps), matrix.astype(np.float64)
    n = len(values)
    future = np.triu(np.ones((n, n), bool), 1)
    absent: Any = future & (
        np.isneginf(values) | (values[future].max(initial=-np.inf) <= HIDDEN < values[~future].min())
    )
    numbers: Any = np.where(absent, 0.0, values)
    advice = "only the future may be minus infinity"
    check_finite_rows(~np.isfinite(numbers).all(axis=1), range(n), "the matrix", advice)
    masked = bool(absent.any())
    # A zero among minus infinities is a bias, not what a mask left out.
    if masked and not (absent == future).all():
        advice = "minus infinity may only fill the whole future, above the diagonal"
        check_finite_rows(absent.any(axis=1), range(n), "the matrix", advice)
    even = (numbers == numbers[:, :1]).all(axis=1) & (numbers[:, 0] > 0)
    if np.triu(numbers, 1)[even].any() and zeros_hide_the_future(numbers[~even][:, ~even]):
        raise PropertiesInputError(
            f"{even.sum()} rows are spread evenly over all keys and the others hide the future, so they are padding; "
            "leave them out with their columns, as in a[3:, 3:]"
        )
    uneven, scaled = np.abs(numbers.sum(axis=1) - 1).max(), _scaled(numbers)
    found = _measured(
        scaled,
        np.zeros(n),
        noise=rounding * float(np.abs(scaled).max()),
        max_offset=max_offset,
        causal=masked or zeros_hide_the_future(numbers),
    )
    if masked or numbers.min() < 0 or uneven > max(SUM_TOLERANCE, ROUNDINGS * rounding):
        return found
    at = np.arange(n)
    return replace(found, locality=float((numbers * np.exp2(-np.abs(at - at[:, None]))).sum() / n))


def zeros_hide_the_future(numbers: Float[np.ndarray, "n n"]) -> bool:
    """Whether all above the diagonal is zero, and not all below it: a diagonal matrix hides nothing."""
    return not np.triu(numbers, 1).any() and bool(np.tril(numbers, -1).any())


def _measured(
    matrix: Float[np.ndarray, "n n"],
    tied: Float[np.ndarray, " n"],
    *,
    noise: float,
    max_offset: int | None,
    causal: bool = False,
) -> Properties:
    """All but locality.

    Args:
        matrix: of numbers whose squares do not overflow; zero where the future is hidden.
        tied: the difference up to which two entries of each row count as tied.
        noise: the standard deviation up to which nothing varies.
        max_offset: as the caller asked.
        causal: whether the future holds nothing, rather than numbers.
    """
    n = len(matrix)
    diagonals = [np.diagonal(matrix, offset) for offset in range(1 - n, 0 if causal else n) if offset]
    within = sum(map(_spread, diagonals))
    apart = _variation(np.concatenate(diagonals), noise) if n > 1 else math.nan
    total = math.nan if causal else _variation(matrix, noise)
    return Properties(
        monotonicity=_monotonicity(
            lambda i, others: matrix[i, others], range(n), tied, min(max_offset or n, n), causal
        ),
        translation_invariance=_not_negative(1 - within / apart),
        symmetry=_not_negative(1 - float(((matrix - matrix.T) ** 2).sum()) / (4 * total)),
        locality=math.nan,
    )


def _not_negative(value: float) -> float:
    """What rounding puts below zero is zero; NaN stays."""
    return float(np.maximum(value, 0.0))


def _variation(values: Float[np.ndarray, "..."], noise: float) -> float:
    """The sum of the squared deviations from the mean; NaN where it is no more than noise."""
    total = _spread(values)
    return total if total > noise**2 * values.size else math.nan


def _spread(values: Float[np.ndarray, "..."]) -> float:
    # Less one of them before the mean is taken: equal numbers then give zeros, not the rounding of a mean.
    moved = values - values.flat[0]
    return float(((moved - moved.mean()) ** 2).sum())


def _monotonicity(
    similarities: Callable[[int, slice], Float[np.ndarray, " k"]],
    rows: Iterable[int],
    tied: Float[np.ndarray, " n"],
    reach: int,
    causal: bool,
) -> float:
    """By Kendall's rank correlation of nearness and size, of all sides of some rows at once.

    Args:
        similarities: of a row with some others.
        rows: which.
        tied: the difference up to which two similarities of each row count as tied.
        reach: the largest offset.
        causal: whether the past is all there is.
    """
    sides, n = [], len(tied)
    for i in rows:
        sides.append(_ranks(similarities(i, slice(max(i - reach, 0), i))[::-1], tied[i]))
        if not causal:
            sides.append(_ranks(similarities(i, slice(i + 1, i + 1 + reach)), tied[i]))
    pairs = sum(len(side) * (len(side) - 1) // 2 for side in sides)
    if not pairs:
        return math.nan
    # One sequence, each side above all before: any two of different sides rise, and what else does is of one side.
    values = np.concatenate([side + number * n for number, side in enumerate(sides)])
    n_all, groups = len(values) * (len(values) - 1) // 2, np.unique(values, return_counts=True)[1]
    n_untied = n_all - int((groups * (groups - 1) // 2).sum())
    if n_untied == 0:
        return 0.5
    tau = kendalltau(np.arange(len(values)), values).statistic
    rising_less_falling = round(tau * math.sqrt(n_all) * math.sqrt(n_untied)) - (n_all - pairs)
    return (1 - rising_less_falling / pairs) / 2


def _ranks(side: Float[np.ndarray, " k"], tied: float) -> Int[np.ndarray, " k"]:
    """Ranks from 0; those that follow each other by no more than `tied` share one."""
    order = np.argsort(side)
    ranks = np.zeros(len(side), dtype=int)
    ranks[order[1:]] = np.cumsum(np.diff(side[order]) > tied)
    return ranks


def _scaled(values: Float[np.ndarray, "n m"], axis: int | None = None) -> Float[np.ndarray, "n m"]:
    """Divide all, or each row, by a power of two, which changes no digit, so that no square overflows."""
    return np.ldexp(values, -np.frexp(np.abs(values).max(axis=axis, keepdims=True))[1])


def _invariance_and_variance(x: Float[np.ndarray, "n d_model"]) -> tuple[float, bool]:
    """The translation invariance of the similarities of rows, exactly, and whether all of them together vary.

    Sums along the diagonals are the autocorrelation of the columns; the sum of all squares is that of the products of
    the columns, a much smaller matrix.
    """
    n = len(x)
    power = sum(np.abs(np.fft.rfft(column, 2 * n)) ** 2 for column in x.T)
    sums, counts = np.fft.irfft(power)[1:n], np.arange(n - 1, 0, -1)
    squares = float(((x.T @ x) ** 2).sum())
    # Above the main diagonal.
    above = (squares - float(((x**2).sum(axis=1) ** 2).sum())) / 2
    apart = above - float(sums.sum()) ** 2 / int(counts.sum())
    within = above - float((sums**2 / counts).sum())
    total = squares - float((x.sum(axis=0) ** 2).sum()) ** 2 / n**2
    return (1 - max(within, 0.0) / apart if apart > ROUNDING * above else math.nan), total > ROUNDING * squares
