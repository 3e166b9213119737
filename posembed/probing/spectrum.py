"""How many directions a table uses, what it does along them, and whether two turn together: a helix."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize_scalar
from scipy.stats import entropy
from sklearn.utils.extmath import svd_flip
from threadpoolctl import threadpool_limits

from ..errors import ProbeInputError
from ..public import Share, public
from ..serialization import Record
from ..tables import RowChoice
from .rows import chosen_rows

# Pairs are looked for among so many leading components.
SEARCHED = 8
# With fewer rows than this a sinusoid fits anything.
FEWEST_ROWS = 32
# What makes a pair a helix: it holds so much of the table's variance, the smaller of the two so much of that of the
# larger, one frequency explains so much of it and half of that of each, the phase between the two is within so many
# degrees of a right angle, and there is at least one whole turn.
SMALLEST_PART = 0.1
SMALLEST_RATIO = 0.7
SMALLEST_SHARE = 0.6
SMALLEST_SHARE_OF_EACH = 0.5
LARGEST_TILT = 45.0
# And each of the two by itself turns as often as the other, within so many turns over the whole range. The principal
# components of a random walk, or of any smooth curve, look like cosines of 1/2, 1, 3/2, ... turns (Antognini and
# Sohl-Dickstein 2018): neighbours are half a turn apart, and a frequency between the two passes all the rest.
LARGEST_DIFFERENCE = 0.25
# Frequencies tried before the best is refined, for each row.
OVERSAMPLING = 8


class Helix(NamedTuple):
    """A pair of principal components that trace a circle along the positions, or an ellipse that is nearly one.

    They hold a tenth of the variance of a table of at least 32 rows, the smaller of the two at least 0.7 of the larger.

    Attributes:
        components: the two, counted from 0, the one with more variance first.
        period: positions for one turn.
        share: of the pair's variance, what sinusoids of this one period explain.
        phase: of the second less that of the first, in degrees from -180 to 180; about 90 or -90.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.probing import spectrum
        >>> helix = spectrum(sinusoidal(300, 2)).helix
        >>> round(helix.period, 3), round(helix.share, 6)
        (6.283, 1.0)
    """

    components: tuple[int, int]
    period: float
    share: float
    phase: float


def find_helix(scores: Float[np.ndarray, "n k"], *, step: int, total_variance: float) -> Helix | None:
    """Find the pair of components that turn together, in one frequency, with the most variance.

    Each pair of the first eight columns is fitted by sinusoids of a common frequency, of free amplitude, phase and
    mean, by least squares; the frequency is not bound to whole turns. A pair is a helix if

    - it holds a tenth of the table's variance, and the smaller of the two at least 0.7 of what the larger holds,
    - that frequency explains at least 0.6 of the pair's variance, and half of each column's,
    - the phases differ by 45 to 135 degrees,
    - there is at least one whole turn, and
    - the frequencies that fit each column by itself best differ by a quarter of a turn at most. Without this the
      principal components of a random walk would pass (Antognini and Sohl-Dickstein 2018, PCA of high dimensional
      random walks): they are cosines, neighbours half a turn apart.

    Among several, the pair of which most is explained is returned. A helix is a description and not a proof: of a
    hundred random walks in 60 dimensions two or three have one by chance, in hundreds of dimensions next to none. Of
    smoothed noise a quarter and more have one, because where the products of rows depend on distance alone principal
    components are cosines and sines. A ring that gets half a turn off an even pace is not found.

    Args:
        scores: of each row on each component, in the order of positions.
        step: positions from one row to the next.
        total_variance: of the table, as the sum of squares of its centred rows.

    Returns:
        The helix, or None where no pair passes or there are fewer than 32 rows.
    """
    n = len(scores)
    if n < FEWEST_ROWS:
        return None
    leading = (scores - scores.mean(axis=0))[:, :SEARCHED]
    variances = (leading**2).sum(axis=0)
    columns = range(leading.shape[1])
    pairs = [pair for pair in itertools.combinations(columns, 2) if _circle(variances, pair, total_variance)]
    if not pairs:
        return None
    grid, explained = _on_grid(leading)

    def best(chosen: Sequence[int]) -> float:
        """The frequency that explains most of some columns together, in radians a row."""
        rough, spacing = grid[np.argmax(explained[:, chosen].sum(axis=1))], grid[1] - grid[0]
        bounds = (rough - spacing, rough + spacing)

        def left_over(tried: float) -> float:
            return -float(_sinusoid(leading[:, chosen], tried)[0].sum())

        return float(minimize_scalar(left_over, bounds=bounds, options={"xatol": 1e-12}).x)

    own = {column: best([column]) for column in {*itertools.chain(*pairs)}}
    reach = LARGEST_DIFFERENCE * 2 * math.pi / n
    fitted = [_fitted(leading, best(pair), pair, step) for pair in pairs if abs(own[pair[0]] - own[pair[1]]) <= reach]
    return max((each for each in fitted if each is not None), default=(0.0, None))[1]


def _circle(variances: Float[np.ndarray, " k"], pair: tuple[int, int], whole: float) -> bool:
    """Whether two columns hold enough, and the smaller about as much as the larger."""
    two = variances[list(pair)]
    return bool(two.sum() >= SMALLEST_PART * whole > 0 and two.min() >= SMALLEST_RATIO * two.max())


def _fitted(
    leading: Float[np.ndarray, "n k"], frequency: float, pair: tuple[int, int], step: int
) -> tuple[float, Helix] | None:
    """What one frequency explains of a pair, and the pair, if that makes it a helix."""
    y = leading[:, pair]
    held, (cosines, sines) = _sinusoid(y, frequency)
    total = (y**2).sum(axis=0)
    share = float(held.sum() / total.sum())
    # By how much the second column is behind the first, in degrees.
    angles = np.arctan2(sines, cosines)
    phase = math.degrees(math.remainder(angles[1] - angles[0], 2 * math.pi))
    is_helix = (
        share >= SMALLEST_SHARE
        and bool((held >= SMALLEST_SHARE_OF_EACH * total).all())
        and abs(abs(phase) - 90) <= LARGEST_TILT
        and frequency * len(y) >= 2 * math.pi
    )
    return (float(held.sum()), Helix(pair, 2 * math.pi / frequency * step, share, phase)) if is_helix else None


def _on_grid(y: Float[np.ndarray, "n k"]) -> tuple[Float[np.ndarray, " tried"], Float[np.ndarray, "tried k"]]:
    """What `_sinusoid` explains at each frequency of a grid, from half a turn to almost one turn in two rows.

    By a Fourier transform of each column, whose time hardly grows faster than the rows.
    """
    n, size = len(y), OVERSAMPLING * len(y)
    places = np.arange(OVERSAMPLING // 2, size // 2 - OVERSAMPLING + 1)
    grid = 2 * math.pi / size * places
    # Sums of e^(i frequency row) over all rows; those of the double frequency give the sums of squares and products.
    once, twice = (np.exp(0.5j * (n - 1) * each) * np.sin(n * each / 2) / np.sin(each / 2) for each in (grid, 2 * grid))
    cosines = (n + twice.real) / 2 - once.real**2 / n
    sines = (n - twice.real) / 2 - once.imag**2 / n
    both = twice.imag / 2 - once.real * once.imag / n
    # A column at a time, for the memory.
    products = (np.fft.rfft(column, size)[places] for column in y.T)
    held = [sines * each.real**2 + 2 * both * each.real * each.imag + cosines * each.imag**2 for each in products]
    return grid, np.stack(held, axis=1) / (cosines * sines - both**2)[:, None]


def _sinusoid(
    y: Float[np.ndarray, "n k"], frequency: float
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "2 k"]]:
    """The least-squares fit of a sinusoid of free mean to centred columns: what it explains, and its coefficients."""
    angles = frequency * np.arange(len(y))
    waves = np.stack([np.cos(angles), np.sin(angles)])
    waves -= waves.mean(axis=1, keepdims=True)
    products = waves @ y
    coefficients = np.linalg.solve(waves @ waves.T, products)
    return (products * coefficients).sum(axis=0), coefficients


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
    given, positions, source = chosen_rows(table, rows, at_least=1, purpose="a spectrum")
    # The first row before the mean: equal rows then give zeros, not the rounding of a mean.
    # In units of a power of two near the largest, in which squares of numbers of any size are numbers too.
    size = 2.0 ** (math.frexp(float(np.abs(given).max()))[1] - 1)
    x = given / size - given[0] / size
    with threadpool_limits(1):
        left, values, right = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    left, _ = svd_flip(left, right, u_based_decision=False)
    scores = left[:, :KEPT] * values[:KEPT]
    variances = values**2
    total = float(variances.sum())
    step = int(positions[1] - positions[0]) if len(positions) > 1 else 1
    return Spectrum(
        explained_variance_ratio=(variances / (total or 1.0)).tolist(),
        effective_rank=float(np.exp(entropy(values))) if total else 0.0,
        participation_ratio=total**2 / float((variances**2).sum()) if total else 0.0,
        components=scores * size,
        positions=positions,
        helix=find_helix(scores, step=step, total_variance=total),
        n_rows=len(x),
        d_model=x.shape[1],
        source=source,
    )
