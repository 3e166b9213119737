"""How many directions a table uses, and what it does along them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from threadpoolctl import threadpool_limits

from ..errors import ProbeInputError
from ..public import Share, public
from ..serialization import Record
from ..tables import RowChoice
from .helix import Helix, find_helix
from .rows import chosen_rows

# Scores of so many components are kept.
KEPT = 16


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum(Record):
    """The principal components of a table.

    Attributes:
        explained_variance_ratio: of each component, in falling order; zeros where all rows are equal.
        effective_rank: the exponential of the entropy of the singular values, scaled to add up to one (Roy and Vetterli
            2007); from 1 to the number of components, 0 where all are zero.
        participation_ratio: the squared sum of the variances over the sum of their squares; likewise.
        components: the scores of each row on the first 16 components, "n_positions k", in the table's units. Each has
            the sign that makes the largest entry of its direction positive.
        positions: of the rows.
        helix: two components that turn together, where such are found among the first eight; else None.
        n_rows: how many rows were used.
        d_model: the width of the table.
        source: where the table comes from.

    Example:
        >>> import torch
        >>> from posembed.probing import spectrum
        >>> found = spectrum(torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]))
        >>> [round(share, 3) for share in found.explained_variance_ratio]
        [0.9, 0.1]
        >>> found.n_components_for(0.95)
        2
    """

    explained_variance_ratio: list[float]
    effective_rank: float
    participation_ratio: float
    components: Float[np.ndarray, "n_positions k"]
    positions: Int[np.ndarray, " n_positions"]
    helix: Helix | None
    n_rows: int
    d_model: int
    source: str

    @public(ProbeInputError)
    def n_components_for(self, share: Share) -> int:
        """Count the components that hold a share of the variance together; 0 where there is none.

        Raises:
            ProbeInputError: the share is not a number from 0 to 1.
        """
        held = np.cumsum(self.explained_variance_ratio)
        # Sums of many shares may end a little below one.
        return int(np.searchsorted(held, share - 1e-12)) + 1 if held[-1] > 0 else 0

    def __str__(self) -> str:
        first = ", ".join(f"{share:.4f}" for share in self.explained_variance_ratio[:6])
        turning = "none"
        if self.helix is not None:
            one, two = self.helix.components
            turning = (
                f"components {one + 1} and {two + 1}, one turn in {self.helix.period:.1f} positions, "
                f"{self.helix.share:.1%} of their variance, {self.helix.phase:.0f} degrees apart"
            )
        lines = [
            f"spectrum: {self.n_rows} rows x {self.d_model} of {self.source}, centred",
            f"  {self.n_components_for(0.9)} components hold 90 % of the variance: {first}",
            f"  effective rank {self.effective_rank:.1f}, participation ratio {self.participation_ratio:.1f}",
            f"  helix: {turning}",
        ]
        return "\n".join(lines)


@public(ProbeInputError)
def spectrum(table: Any, *, rows: RowChoice = None) -> Spectrum:
    """Take a table apart into principal components: the singular values of its rows less their mean.

    Args:
        table: what `posembed.load_table` takes, or a `PositionTable`.
        rows: which rows: a number (the first so many), a (start, stop), a slice or a range; all by default.

    Returns:
        The shares of the variance, the scores, and the helix.

    Raises:
        ProbeInputError: rows that the table does not have.
        PositionTableError: there is no position table in `table`, or a chosen row holds NaN or infinity.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.probing import spectrum
        >>> print(spectrum(sinusoidal(200, 2)).helix.components)
        (0, 1)
    """
    chosen = chosen_rows(table, rows, at_least=1, purpose="a spectrum")
    # The first row before the mean: equal rows then give zeros, not the rounding of a mean.
    # In units of a power of two near the largest, in which squares of numbers of any size are numbers too.
    size = 2.0 ** (math.frexp(float(np.abs(chosen.x).max()))[1] - 1)
    x = chosen.x / size - chosen.x[0] / size
    with threadpool_limits(1):
        left, values, right = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    largest = np.argmax(np.abs(right), axis=1)
    left *= np.where(right[np.arange(len(right)), largest] < 0, -1.0, 1.0)
    scores = left[:, :KEPT] * values[:KEPT]
    variances = values**2
    total = float(variances.sum())
    step = int(chosen.positions[1] - chosen.positions[0]) if len(chosen.positions) > 1 else 1
    return Spectrum(
        explained_variance_ratio=(variances / (total or 1.0)).tolist(),
        effective_rank=_effective_rank(values) if total else 0.0,
        participation_ratio=total**2 / float((variances**2).sum()) if total else 0.0,
        components=scores * size,
        positions=chosen.positions,
        helix=find_helix(scores, step=step, total_variance=total),
        n_rows=len(x),
        d_model=x.shape[1],
        source=chosen.source,
    )


def _effective_rank(values: Float[np.ndarray, " k"]) -> float:
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))
