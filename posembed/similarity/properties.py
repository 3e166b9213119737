"""What a table, a bias or an attention map says about distance: three properties of positions, and locality.

Wang et al. (2021, On Position Embeddings in BERT) name the three and measure how far each is violated. Their formulas
could not be read, so the numbers here are our own; `Properties` defines them.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import PropertiesInputError
from ..tables import RowChoice, as_table, check_finite_rows, row_positions
from ._diagonals import Diagonals
from ._matrices import Matrix, MatrixInBlocks, Similarities, blocks
from ._pairs import Pairs


@dataclass(frozen=True)
class Properties:
    """What a matrix A of similarities, biases or attention weights says about positions; NaN where it says nothing.

    Attributes:
        monotonicity: over every row i and each side, the share of offset pairs 0 < m < n <= max_offset with
            ``A[i, i±m] > A[i, i±n]``; ties count one half. 1 falls with distance everywhere, 0.5 has no order. Of
            causal maps the past side only. NaN where no row has two offsets on a side.
        translation_invariance: 1 - (variance left inside the signed diagonals) / (total variance), the main diagonal
            left out of both. 1 is Toeplitz: the signed distance says all. NaN where nothing varies.
        symmetry: ``1 - ||A - A^T||^2 / (4 ||A - mean(A)||^2)``. 1 is symmetric, 0.5 independent noise, 0 antisymmetric.
            NaN where nothing varies, or where the future holds minus infinity.
        locality: the mean over the rows of ``sum_j A_ij 2^-|i-j|``, of attention maps (Chen et al. 2023, The Locality
            and Symmetry of Positional Encodings). NaN unless no entry is negative and every row sums to one.

    Example:
        >>> from posembed.similarity import Properties
        >>> print(Properties(0.992, 0.801, 1.0, float("nan")))
        monotonicity 0.992, translation invariance 0.801, symmetry 1.000, locality undefined
    """

    monotonicity: float
    translation_invariance: float
    symmetry: float
    locality: float

    def to_dict(self) -> dict[str, float | None]:
        """Return the numbers by name, with None for what is undefined, because JSON has no NaN."""
        return {name: None if math.isnan(value) else value for name, value in asdict(self).items()}

    def __str__(self) -> str:
        shown = {name: "undefined" if value is None else f"{value:.3f}" for name, value in self.to_dict().items()}
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in shown.items())


def properties(
    table: Any,
    *,
    similarity: Literal["dot", "cosine"] = "dot",
    max_offset: int | None = None,
    rows: RowChoice = None,
) -> Properties:
    """Measure how the similarity of a position table's rows depends on their distance.

    Similarities are computed in float64. Two of a row that differ by less than 1e-12 of the largest that its norm
    allows count as tied, because rounding alone would order them. A table's similarities with itself are symmetric, so
    symmetry says nothing here: it is 1, or NaN where nothing varies.

    Args:
        table: "n_positions d_model" of floating-point numbers, a tensor or an array, or whatever `load_table` takes.
        similarity: "dot", or "cosine", in which a row of zeros is orthogonal to all.
        max_offset: the largest offset that monotonicity compares; by default all.
        rows: which to take: the first so many, a (start, stop), a slice or a range. Offsets count the rows taken.

    Returns:
        The properties; locality is NaN.

    Raises:
        PositionTableError: a row holds NaN or infinity.
        PropertiesInputError: a table that is empty, not two-dimensional or not of floating-point numbers, an unknown
            similarity, a max_offset that is not a whole number of at least 1, or rows that the table does not have.

    Example:
        >>> import torch
        >>> from posembed import sinusoidal
        >>> from posembed.similarity import properties
        >>> print(properties(sinusoidal(64, 16, dtype=torch.float64), max_offset=2))
        monotonicity 1.000, translation invariance 1.000, symmetry 1.000, locality undefined
    """
    if similarity not in ("dot", "cosine"):
        raise PropertiesInputError(f"similarity is {similarity!r}; choose 'dot' or 'cosine'")
    max_offset = _checked_offset(max_offset)
    weight = _weight_of(table)
    positions = row_positions(rows, len(weight), PropertiesInputError)
    weight = weight[torch.from_numpy(positions)].detach().cpu().double()
    check_finite_rows(~torch.isfinite(weight).all(dim=1).numpy(), positions, "the table", "leave them out with rows=")
    return _measured(Similarities(weight, cosine=similarity == "cosine"), max_offset)


def properties_of_matrix(
    matrix: Float[Tensor, "seq seq"] | Float[np.ndarray, "seq seq"], *, max_offset: int | None = None
) -> Properties:
    """Measure how the entries of a bias, an attention map or any matrix of similarities depend on distance.

    Entries are compared as they are given. Something varies where the standard deviation is above the rounding of the
    largest entry in the matrix's format.

    A map is causal where everything above the diagonal is zero, or everything is minus infinity. Then monotonicity
    looks at the past side only. Zeros above the diagonal count as numbers in translation invariance and symmetry; minus
    infinity leaves translation invariance to the past side, and symmetry NaN. The large negative number that some masks
    hold in its place is a number like any other: fill it with minus infinity first.

    Args:
        matrix: row i holds what query i gives each key, on any device and in any floating-point format.
        max_offset: the largest offset that monotonicity compares; by default all.

    Returns:
        The properties.

    Raises:
        PositionTableError: a row holds NaN or infinity, other than minus infinity in the future of a causal bias.
        PropertiesInputError: a matrix that is empty, not square or not of floating-point numbers, or a max_offset that
            is not a whole number of at least 1.

    Example:
        >>> import torch
        >>> from posembed.similarity import properties_of_matrix
        >>> at = torch.arange(6.0)
        >>> print(properties_of_matrix(at - at[:, None]))
        monotonicity 0.500, translation invariance 1.000, symmetry 0.000, locality undefined
    """
    max_offset = _checked_offset(max_offset)
    values = _floating(matrix, "matrix")
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not len(values):
        raise PropertiesInputError(f"the matrix has shape {tuple(values.shape)}; it must be square and not empty")
    return _measured(Matrix(values), max_offset)


def _measured(source: MatrixInBlocks, max_offset: int | None) -> Properties:
    diagonals, pairs = Diagonals(source), Pairs(source, max_offset)
    for start, stop in blocks(source.n):
        block = source.block(start, stop)
        diagonals.add(block, start)
        pairs.add(block, start)
    return Properties(pairs.monotonicity(), diagonals.invariance(), diagonals.symmetry(), diagonals.locality())


def _weight_of(table: Any) -> Tensor:
    """Return the rows of a table, "n_positions d_model", in the format in which they came."""
    if isinstance(table, Tensor | np.ndarray):
        weight = _floating(table, "table")
        weight = weight if isinstance(weight, Tensor) else torch.from_numpy(weight.astype(np.float64))
    else:
        weight = as_table(table).weight
    if weight.ndim == 3 and len(weight) == 1:  # as vision models keep theirs
        weight = weight[0]
    if weight.ndim != 2 or not weight.numel():
        raise PropertiesInputError(f"the table has shape {tuple(weight.shape)}; it must be (n_positions, d_model)")
    return weight


def _floating(values: Any, name: str) -> Tensor | np.ndarray:
    if isinstance(values, Tensor):
        floating = values.is_floating_point()
    elif isinstance(values, np.ndarray):
        floating = np.issubdtype(values.dtype, np.floating)
    else:
        raise PropertiesInputError(f"the {name} is a {type(values).__name__}; give a tensor or an array")
    if not floating:
        raise PropertiesInputError(f"the {name} is of {values.dtype}; make it floating-point numbers")
    return values


def _checked_offset(max_offset: Any) -> int | None:
    if max_offset is None:
        return None
    if not isinstance(max_offset, Integral) or isinstance(max_offset, bool) or max_offset < 1:
        raise PropertiesInputError(f"max_offset is {max_offset!r}; it must be a whole number of at least 1")
    return int(max_offset)
