"""Which of two rows comes first? A probe of order that asks nothing about how far."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from .._plain import plain
from ..errors import ProbeInputError
from ._random import checked_seed, generator
from ._rows import RowChoice, chosen_rows
from ._scaling import fitted_scaling
from ._threads import one_thread
from .bootstrap import BootstrapInterval, mean_interval
from .controls import permuted_labels, random_tables_like
from .results import mean_and_runs
from .splits import Part, Split, split_rows

# Each row that is fitted to is compared with so many others, drawn at random.
PARTNERS = 4
# scikit-learn's C for rows scaled to a root mean square of one. From .01 to .1 the accuracy moves by less than .001 on
# GPT-2's table and by .007 on MiniLM's; more of it only makes the controls slow.
INVERSE_PENALTY = 0.01
N_CONTROLS = 5


class DistanceRange(NamedTuple):
    """Accuracy for pairs some distance apart.

    Attributes:
        start: the smallest distance, in positions.
        stop: the first distance beyond.
        accuracy: the share of pairs put in the right order.
        n_pairs: how many there are.

    Example:
        >>> from posembed.probing import DistanceRange
        >>> print(DistanceRange(4, 8, 0.9571, 70))
        4-7: 0.957
    """

    start: int
    stop: int
    accuracy: float
    n_pairs: int

    def __str__(self) -> str:
        return f"{self.start}-{self.stop - 1}: {self.accuracy:.3f}"


@dataclass(frozen=True)
class OrderBaselines:
    """Accuracies of what knows nothing of the table.

    Attributes:
        chance: one half.
        permuted_labels: of the same probe on rows whose order was dealt out at random; the mean of its runs.
        random_table: of the same probe on tables of normal numbers; the mean of its runs.
        permuted_labels_runs: each permutation. With five folds, each is tested on one of them.
        random_table_runs: each random table, likewise.

    Example:
        >>> from posembed.probing import OrderBaselines
        >>> OrderBaselines(0.5, 0.49, 0.51, (0.48, 0.5), (0.51,)).chance
        0.5
    """

    chance: float
    permuted_labels: float
    random_table: float
    permuted_labels_runs: tuple[float, ...]
    random_table_runs: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class OrderResult:
    """How often a linear score puts two rows in the right order.

    Attributes:
        split: "even-odd", "all", "folds" or "half".
        source: where the table comes from.
        accuracy: the share of pairs of tested rows put in the right order; a tie counts one half.
        train_accuracy: the same of pairs of rows it was fitted to.
        baselines: what knows nothing of the table.
        interval: of the accuracy, by a bootstrap of blocks of neighbouring rows.
        by_distance: the accuracy for distances from 1, 2, 4, 8, ... positions.
        n_rows: how many rows were used.
        d_model: the width of the table.
        held_out: whether no tested row had been seen.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.probing import probe_order
        >>> result = probe_order(sinusoidal(128, 64), split="folds")
        >>> result.accuracy > 0.95, 0.3 < result.baselines.random_table < 0.7
        (True, True)
    """

    split: str
    source: str
    accuracy: float
    train_accuracy: float
    baselines: OrderBaselines
    interval: BootstrapInterval
    by_distance: list[DistanceRange]
    n_rows: int
    d_model: int
    held_out: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, text, lists and dictionaries, ready for JSON."""
        return plain(self)

    def __str__(self) -> str:
        known = self.baselines
        test = "accuracy" if self.held_out else "no test: accuracy on the rows it was fitted to"
        lines = [
            f"order, {self.split}: {self.n_rows} rows x {self.d_model} of {self.source}",
            f"  {test} {self.accuracy:.4f} ({self.interval.low:.4f} to {self.interval.high:.4f}), "
            f"training accuracy {self.train_accuracy:.4f}",
            f"  chance {known.chance}",
            f"  permuted labels {mean_and_runs(known.permuted_labels, known.permuted_labels_runs)}",
            f"  random table {mean_and_runs(known.random_table, known.random_table_runs)}",
            f"  by distance {', '.join(map(str, self.by_distance))}",
        ]
        return "\n".join(lines)


def probe_order(table: Any, *, split: Split = "even-odd", rows: RowChoice = None, seed: int = 0) -> OrderResult:
    """Fit a linear score whose difference says which of two rows comes first, and test it on pairs of unseen rows.

    Logistic regression on the difference of two rows, without an intercept, so that exchanging the two exchanges the
    answer. Rows are divided by one root mean square and the penalty is fixed (scikit-learn's C = 0.01). Each row that
    is fitted to is paired with four others; all pairs of tested rows are tested, with five folds those of each fold.
    Both controls are run five times.

    The interval is a bootstrap of rows and not of pairs, because pairs that share a row are not independent: each row
    counts with the accuracy of its pairs, in blocks of neighbours, and twice, because a pair has two rows (Hoeffding
    1948, the leading part of a U-statistic).

    Wang and Chen (2020, arXiv 2010.04903; their code is MiuLab/PE-Study, relative.py) ask the same of two rows side by
    side, with pairs divided into folds, so that the rows of a tested pair have been seen in others. Here they have not.

    Args:
        table: what `posembed.load_table` takes, or a `PositionTable`.
        split: "even-odd", "all", "folds" or "half", as `split_rows` explains. "all" has no test.
        rows: which rows: a number (the first so many), a (start, stop), a slice or a range; all by default.
        seed: of pairs, folds, controls and the interval.

    Returns:
        The accuracy and what it is to be compared with. Below one half it is order read backwards, because a score that
        rises over the rows it was fitted to may fall beyond them.

    Raises:
        ProbeInputError: an unknown split, rows that the table does not have, too few of them, a bad seed.
        ProbeInputError: a chosen row holds NaN or infinity.
        PositionTableError: there is no position table in `table`.

    Example:
        >>> import torch
        >>> from posembed.probing import probe_order
        >>> result = probe_order(torch.arange(60.0)[:, None] * torch.ones(4))
        >>> result.accuracy, result.by_distance[0]
        (1.0, DistanceRange(start=2, stop=4, accuracy=1.0, n_pairs=29))
    """
    chosen = chosen_rows(table, rows, at_least=4, purpose="a probe of order")
    parts = split_rows(chosen.positions, split, seed=checked_seed(seed))
    if min(min(len(part.train), len(part.test)) for part in parts) < 2:
        raise ProbeInputError(
            f"the split {split} leaves fewer than two of {len(chosen.x)} rows to compare; take more rows"
        )
    ranks = np.arange(len(chosen.x))
    with one_thread():
        scores = [_scores(chosen.x, ranks, part, seed) for part in parts]
        baselines = _baselines(chosen.x, ranks, parts, seed)
    tested = [_Pairs(score, ranks, part.test) for score, part in zip(scores, parts, strict=True)]
    trained = [_Pairs(score, ranks, part.train) for score, part in zip(scores, parts, strict=True)]
    return OrderResult(
        split=split,
        source=chosen.source,
        accuracy=_accuracy(tested),
        train_accuracy=_accuracy(trained),
        baselines=baselines,
        interval=_interval(tested, seed),
        by_distance=_by_distance(tested, chosen.positions),
        n_rows=len(chosen.x),
        d_model=chosen.x.shape[1],
        held_out=split != "all",
    )


class _Pairs:
    """All pairs of some rows, and whether each is in the right order."""

    def __init__(self, scores: Float[np.ndarray, " n"], order: Int[np.ndarray, " n"], rows: Int[np.ndarray, " m"]):
        self.rows = rows
        later: Bool[np.ndarray, "m m"] = order[rows][:, None] > order[rows]
        difference = scores[rows][:, None] - scores[rows]
        self.counted = later.astype(np.float64)
        self.right = np.where(later, (difference > 0) + 0.5 * (difference == 0), 0.0)

    def by_row(self) -> Float[np.ndarray, " m"]:
        """The accuracy of the pairs that each row is in."""
        return (self.right + self.right.T).sum(axis=1) / (self.counted + self.counted.T).sum(axis=1)


def _accuracy(pairs: Sequence[_Pairs]) -> float:
    """The share of all pairs in the right order; NaN without any."""
    counted = sum(float(some.counted.sum()) for some in pairs)
    return sum(float(some.right.sum()) for some in pairs) / counted if counted else float("nan")


def _scores(x: np.ndarray, order: np.ndarray, part: Part, seed: int) -> Float[np.ndarray, " n"]:
    """A score for every row; the later of two rows is the one with the larger score."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    scaled = fitted_scaling(x[part.train]).apply(x)
    first, second = _pairs_to_fit(part.train, seed)
    # Turned over where needed so that both answers occur; to a score without an intercept it is all one.
    answers = np.arange(len(first)) % 2 == 0
    turned = np.where(answers == (order[first] > order[second]), 1.0, -1.0)
    differences = (scaled[first] - scaled[second]) * turned[:, None]
    if not differences.any():
        return np.zeros(len(x))
    probe = LogisticRegression(C=INVERSE_PENALTY, fit_intercept=False, max_iter=1000)
    with warnings.catch_warnings():
        # A score that has not come to rest still orders rows, and is tested as it is.
        warnings.simplefilter("ignore", ConvergenceWarning)
        probe.fit(differences, answers)
    return scaled @ probe.coef_[0]


def _pairs_to_fit(rows: Int[np.ndarray, " n"], seed: int) -> tuple[Int[np.ndarray, " p"], Int[np.ndarray, " p"]]:
    """Each row with some others."""
    n = len(rows)
    first = np.repeat(np.arange(n), PARTNERS)
    second = (first + generator(seed, "pairs").integers(1, max(n, 2), size=len(first))) % n
    return rows[first], rows[second]


def _baselines(x: np.ndarray, ranks: np.ndarray, parts: Sequence[Part], seed: int) -> OrderBaselines:
    """Each run on one of the parts: rows without an order are all alike, so one says as much as the others."""
    used = [parts[run % len(parts)] for run in range(N_CONTROLS)]
    orders = permuted_labels(ranks.astype(np.float64), N_CONTROLS, seed=seed).T.astype(int)
    tables = random_tables_like(x, N_CONTROLS, seed=seed)
    permuted = tuple(_run(x, order, part, seed) for order, part in zip(orders, used, strict=True))
    random = tuple(_run(table, ranks, part, seed) for table, part in zip(tables, used, strict=True))
    return OrderBaselines(0.5, float(np.mean(permuted)), float(np.mean(random)), permuted, random)


def _run(x: np.ndarray, order: np.ndarray, part: Part, seed: int) -> float:
    return _accuracy([_Pairs(_scores(x, order, part, seed), order, part.test)])


def _interval(pairs: Sequence[_Pairs], seed: int) -> BootstrapInterval:
    rows = np.concatenate([some.rows for some in pairs])
    by_row = np.concatenate([some.by_row() for some in pairs])[np.argsort(rows)]
    once, accuracy = mean_interval(by_row, seed=seed), _accuracy(pairs)
    low, high = (accuracy + 2 * (end - float(by_row.mean())) for end in (once.low, once.high))
    return BootstrapInterval(max(low, 0.0), min(high, 1.0), once.level, once.block)


def _by_distance(pairs: Sequence[_Pairs], positions: Int[np.ndarray, " n"]) -> list[DistanceRange]:
    """Distances from a power of two to the next, those that occur."""
    distances, right = [], []
    for some in pairs:
        later, earlier = np.nonzero(some.counted)
        distances.append(positions[some.rows[later]] - positions[some.rows[earlier]])
        right.append(some.right[later, earlier])
    distance, share = np.concatenate(distances), np.concatenate(right)
    octave = np.log2(distance).astype(int)
    ranges = []
    for power in np.unique(octave).tolist():
        inside = octave == power
        ranges.append(DistanceRange(2**power, 2 ** (power + 1), float(share[inside].mean()), int(inside.sum())))
    return ranges
