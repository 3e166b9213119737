"""Two components of a table that turn together with one frequency: a helix along the positions."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar

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
    """A pair of principal components that trace a circle, or an ellipse, along the positions.

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


def find_helix(scores: Float[np.ndarray, "n k"], *, step: int = 1, total_variance: float | None = None) -> Helix | None:
    """Find the pair of components that turn together, in one frequency, with the most variance.

    Each pair of the first eight columns is fitted by sinusoids of a common frequency, of free amplitude, phase and
    mean, by least squares; the frequency is not bound to whole turns. A pair is a helix if

    - it holds a tenth of the table's variance, and the smaller of the two at least .7 of what the larger holds,
    - that frequency explains at least .6 of the pair's variance, and half of each column's,
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
        total_variance: of the table, as the sum of squares of its centred rows; by default that of the given columns.

    Returns:
        The helix, or None where no pair passes or there are fewer than 32 rows.

    Example:
        >>> import numpy as np
        >>> from posembed.probing import find_helix
        >>> angle = 0.1 * np.arange(100)
        >>> find_helix(np.column_stack([np.cos(angle), np.linspace(-1, 1, 100), np.sin(angle)])).components
        (0, 2)
        >>> find_helix(np.random.default_rng(0).normal(size=(100, 8))) is None
        True
    """
    n = len(scores)
    if n < FEWEST_ROWS:
        return None
    centred = scores - scores.mean(axis=0)
    whole = float((centred**2).sum()) if total_variance is None else total_variance
    leading = centred[:, :SEARCHED]
    variances = (leading**2).sum(axis=0)
    pairs = [pair for pair in itertools.combinations(range(leading.shape[1]), 2) if _circle(variances, pair, whole)]
    if not pairs:
        return None
    fit = _Sinusoids(leading)
    own = {column: fit.best([column]) for column in sorted(set(itertools.chain(*pairs)))}
    reach = LARGEST_DIFFERENCE * 2 * math.pi / n
    fitted = [_fitted(fit, pair, step) for pair in pairs if abs(own[pair[0]] - own[pair[1]]) <= reach]
    helices = [(held, helix) for held, helix in fitted if helix is not None]
    return max(helices)[1] if helices else None


def _circle(variances: Float[np.ndarray, " k"], pair: tuple[int, int], whole: float) -> bool:
    """Whether two columns hold enough, and the smaller about as much as the larger."""
    two = variances[list(pair)]
    return bool(two.sum() >= SMALLEST_PART * whole > 0 and two.min() >= SMALLEST_RATIO * two.max())


def _fitted(fit: _Sinusoids, pair: tuple[int, int], step: int) -> tuple[float, Helix | None]:
    """What one frequency explains of a pair, and the pair if that makes it a helix."""
    y = fit.y[:, pair]
    frequency = fit.best(list(pair))
    held, total = _explained(y, frequency), (y**2).sum(axis=0)
    share, phase = float(held.sum() / total.sum()), _phase(y, frequency)
    is_helix = (
        share >= SMALLEST_SHARE
        and bool((held >= SMALLEST_SHARE_OF_EACH * total).all())
        and abs(abs(phase) - 90) <= LARGEST_TILT
        and frequency * len(y) >= 2 * math.pi
    )
    return float(held.sum()), Helix(pair, 2 * math.pi / frequency * step, share, phase) if is_helix else None


class _Sinusoids:
    """What sinusoids of many frequencies explain of centred columns."""

    def __init__(self, y: Float[np.ndarray, "n k"]):
        self.y = y
        self.frequencies, self.explained = _explained_on_grid(y)

    def best(self, columns: list[int]) -> float:
        """The frequency that explains most of some columns together, in radians a row."""
        rough = self.frequencies[np.argmax(self.explained[:, columns].sum(axis=1))]
        spacing = self.frequencies[1] - self.frequencies[0]
        found: Any = minimize_scalar(
            lambda tried: -float(_explained(self.y[:, columns], tried).sum()),
            bounds=(rough - spacing, rough + spacing),
            options={"xatol": 1e-12},
        )
        return float(found.x)


def _explained_on_grid(y: Float[np.ndarray, "n k"]) -> tuple[Float[np.ndarray, " f"], Float[np.ndarray, "f k"]]:
    """What a sinusoid explains of each column, for frequencies from half a turn to almost one turn in two rows.

    The sums of squares that least squares gives, from two Fourier transforms: of the columns, and of ones, which has
    the products of sines and cosines with each other.
    """
    n = len(y)
    size = OVERSAMPLING * n
    index = np.arange(OVERSAMPLING // 2, size // 2 - OVERSAMPLING + 1)
    ones = np.fft.fft(np.ones(n), size)
    with_y = np.fft.rfft(y, size, axis=0)[index]
    return 2 * math.pi * index / size, _sum_of_squares(n, ones[index], ones[2 * index % size], with_y)


def _explained(y: Float[np.ndarray, "n k"], frequency: float) -> Float[np.ndarray, " k"]:
    """The same for one frequency."""
    n = len(y)
    wave = np.exp(-1j * frequency * np.arange(n))
    once, twice = wave.sum(keepdims=True), (wave**2).sum(keepdims=True)
    return _sum_of_squares(n, once, twice, (wave @ y)[None])[0]


def _sum_of_squares(n: int, once: np.ndarray, twice: np.ndarray, with_y: np.ndarray) -> Float[np.ndarray, "f k"]:
    """r^T G^-1 r, with G the products of centred cosine and sine, and r their products with centred columns."""
    cosines, sines = once.real, -once.imag
    g_cc = (n + twice.real) / 2 - cosines**2 / n
    g_ss = (n - twice.real) / 2 - sines**2 / n
    g_cs = -twice.imag / 2 - cosines * sines / n
    r_c, r_s = with_y.real, -with_y.imag
    top = g_ss[:, None] * r_c**2 - 2 * g_cs[:, None] * r_c * r_s + g_cc[:, None] * r_s**2
    return top / (g_cc * g_ss - g_cs**2)[:, None]


def _phase(y: Float[np.ndarray, "n 2"], frequency: float) -> float:
    """By how much the second column is behind the first, in degrees."""
    angles = frequency * np.arange(len(y))
    basis = np.column_stack([np.cos(angles), np.sin(angles), np.ones(len(y))])
    (cos_1, cos_2), (sin_1, sin_2) = np.linalg.lstsq(basis, y, rcond=None)[0][:2]
    difference = math.atan2(sin_2, cos_2) - math.atan2(sin_1, cos_1)
    return math.degrees(math.remainder(difference, 2 * math.pi))
