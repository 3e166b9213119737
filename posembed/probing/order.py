"""Which of two rows comes first? A probe of order that asks nothing about how far."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ..errors import ProbeInputError
from ..public import Seed, public
from ..seeds import generator
from ..serialization import Record
from ..stats import BootstrapInterval, mean_interval
from ..tables import RowChoice
from .estimators import fitted_scaling, permuted_labels, random_tables_like
from .rows import Part, Split, chosen_rows, split_rows
from .table_probe import mean_and_runs

# Each row that is fitted to is compared with so many others, drawn at random.
PARTNERS = 4
# scikit-learn's C for rows scaled to a root mean square of one. From 0.01 to 0.1 the accuracy moves by less than 0.001
# on GPT-2's table and by 0.007 on MiniLM's; more of it only makes the controls slow.
INVERSE_PENALTY = 0.01
N_CONTROLS = 5


@dataclass(frozen=True, eq=False, repr=False)
class OrderResult(Record):
    """How often a linear score puts two rows in the right order; one that knows nothing is right half of the time.

    Attributes:
        split: "even-odd", "all", "folds" or "half".
        source: where the table comes from.
        accuracy: the share of pairs of tested rows put in the right order; a tie counts one half.
        interval: of the accuracy, by a bootstrap of blocks of neighbouring rows.
        permuted_labels: the accuracies of the same probe on rows whose order was dealt out at random. With five folds,
            each is tested on one of them.
        random_table: those of the same probe on tables of normal numbers, likewise.
        n_rows: how many rows were used.
        d_model: the width of the table.
        held_out: whether no tested row had been seen.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.probing import probe_order
        >>> result = probe_order(sinusoidal(128, 64), split="folds")
        >>> result.accuracy > 0.95, 0.2 < min(result.random_table) < max(result.random_table) < 0.8
        (True, True)
    """

    split: str
    source: str
    accuracy: float
    interval: BootstrapInterval
    permuted_labels: tuple[float, ...]
    random_table: tuple[float, ...]
    n_rows: int
    d_model: int
    held_out: bool

    def __str__(self) -> str:
        test = "accuracy" if self.held_out else "no test: accuracy on the rows it was fitted to"
        lines = [
            f"order, {self.split}: {self.n_rows} rows x {self.d_model} of {self.source}",
            f"  {test} {self.accuracy:.4f} ({self.interval.low:.4f} to {self.interval.high:.4f})",
            f"  permuted labels {mean_and_runs(self.permuted_labels)}",
            f"  random table {mean_and_runs(self.random_table)}",
        ]
        return "\n".join(lines)


@public(ProbeInputError)
def probe_order(table: Any, *, split: Split = "even-odd", rows: RowChoice = None, seed: Seed = 0) -> OrderResult:
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
        >>> probe_order(torch.arange(60.0)[:, None] * torch.ones(4)).accuracy
        1.0
    """
    x, positions, source = chosen_rows(table, rows, at_least=4, purpose="a probe of order")
    parts = split_rows(positions, split, seed=seed)
    if min(min(len(part.train), len(part.test)) for part in parts) < 2:
        raise ProbeInputError(f"the split {split} leaves fewer than two of {len(x)} rows to compare; take more rows")
    ranks = np.arange(len(x), dtype=np.float64)
    # Rows without an order are all alike, so one of the parts says as much of a control as the others.
    used = [parts[run % len(parts)] for run in range(N_CONTROLS)]
    orders = permuted_labels(ranks, N_CONTROLS, seed=seed).T
    tables = random_tables_like(x, N_CONTROLS, seed=seed)
    with threadpool_limits(1):
        right = [_right(x, ranks, part, seed) for part in parts]
        permuted = [_right(x, order, part, seed).mean() for order, part in zip(orders, used, strict=True)]
        random = [_right(drawn, ranks, part, seed).mean() for drawn, part in zip(tables, used, strict=True)]
    n_others = np.concatenate([np.full(len(some), len(some) - 1) for some in right])
    by_row = np.concatenate(right)
    accuracy = float(np.average(by_row, weights=n_others))
    # Twice the spread of a mean over rows, because a pair has two.
    once = mean_interval(by_row[np.argsort(np.concatenate([part.test for part in parts]))], seed=seed)
    low, high = (accuracy + 2 * (end - float(by_row.mean())) for end in (once.low, once.high))
    return OrderResult(
        split=split,
        source=source,
        accuracy=accuracy,
        interval=BootstrapInterval(max(low, 0.0), min(high, 1.0), once.level, once.block),
        permuted_labels=tuple(map(float, permuted)),
        random_table=tuple(map(float, random)),
        n_rows=len(x),
        d_model=x.shape[1],
        held_out=split != "all",
    )


def _right(x: np.ndarray, order: Float[np.ndarray, " n"], part: Part, seed: int) -> Float[np.ndarray, " n_test"]:
    """Of each tested row, the share of its pairs with other tested rows that a score puts in the right order."""
    scores, ranks = _scores(x, order, part, seed)[part.test], order[part.test]
    agree = np.sign(scores[:, None] - scores) * np.sign(ranks[:, None] - ranks)
    return (1 + agree.sum(axis=1) / (len(ranks) - 1)) / 2


def _scores(x: np.ndarray, order: np.ndarray, part: Part, seed: int) -> Float[np.ndarray, " n"]:
    """A score for every row; the later of two rows is the one with the larger score."""
    from sklearn.linear_model import LogisticRegression

    scaled = fitted_scaling(x[part.train]).apply(x)
    n = len(part.train)
    first = np.repeat(np.arange(n), PARTNERS)
    second = (first + generator(seed, "pairs").integers(1, n, size=len(first))) % n
    first, second = part.train[first], part.train[second]
    # Turned over where needed so that both answers occur; to a score without an intercept it is all one.
    answers = np.arange(len(first)) % 2 == 0
    turned = np.where(answers == (order[first] > order[second]), 1.0, -1.0)
    differences = (scaled[first] - scaled[second]) * turned[:, None]
    probe = LogisticRegression(C=INVERSE_PENALTY, fit_intercept=False, max_iter=1000)
    with warnings.catch_warnings():
        # A score that has not come to rest still orders rows, and is tested as it is.
        warnings.simplefilter("ignore", ConvergenceWarning)
        probe.fit(differences, answers)
    return scaled @ probe.coef_[0]
