"""What a probe of a table found, beside what it is to be compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ..serialization import Record
from ..stats import BootstrapInterval


class Region(NamedTuple):
    """The error in a stretch of the table.

    Attributes:
        start: its first position.
        stop: the first position after it.
        mae: the mean absolute error of the tested rows in it, in positions.

    Example:
        >>> from posembed.probing import Region
        >>> print(Region(0, 64, 1.234))
        0-63: 1.23
    """

    start: int
    stop: int
    mae: float

    def __str__(self) -> str:
        return f"{self.start}-{self.stop - 1}: {self.mae:.2f}"


@dataclass(frozen=True)
class Baselines:
    """Test errors of what knows nothing of the table, in positions.

    Permuted labels are dealt out over all rows, but with the split "half" inside each half. They are then beyond those
    that were seen, as the true ones are, and chance is half of the range, as for the constant guess; dealt out over all
    rows it would be a quarter.

    Attributes:
        constant: of the median of the training positions.
        permuted_labels: of the same probe on the same rows with labels dealt out at random; the mean of its runs.
        random_table: of the same probe on tables of normal numbers; the mean of its runs.
        permuted_labels_runs: each permutation. With five folds, each is tested on one of them.
        random_table_runs: each random table, likewise.

    Example:
        >>> from posembed.probing import Baselines
        >>> found = Baselines(256.0, 500.0, 300.0, (490.0, 510.0), (300.0,))
        >>> found.random_table
        300.0
    """

    constant: float
    permuted_labels: float
    random_table: float
    permuted_labels_runs: tuple[float, ...]
    random_table_runs: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class ProbeResult(Record):
    """How well a probe reads positions off the rows of a table. Errors are in positions.

    Attributes:
        probe: "ols", "ridge", "gd" or "mlp".
        split: "even-odd", "all", "folds" or "half".
        source: where the table comes from.
        train_mae: the mean absolute error on the rows it was fitted to; with five folds, the mean over the fits.
        test_mae: the same on the tested rows. With the split "all" these are the rows it was fitted to, and
            `held_out` is false.
        r2: 1 less the squared error over that of the mean of the tested positions; NaN for a single tested row.
        predictions: of the tested rows, in the order of positions.
        positions: of the tested rows.
        train_positions: of the rows that it was fitted to; with five folds, all.
        baselines: what knows nothing of the table.
        interval: of the test error, by a bootstrap of blocks of neighbours.
        by_region: the error in eighths of the range.
        n_rows: how many rows were used.
        d_model: the width of the table.
        held_out: whether each tested row was predicted by a probe that had not seen it.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.probing import probe_table
        >>> result = probe_table(sinusoidal(128, 32))
        >>> result.test_mae < 1 < 30 < result.baselines.random_table
        True
    """

    probe: str
    split: str
    source: str
    train_mae: float
    test_mae: float
    r2: float
    predictions: Float[np.ndarray, " n_tested"]
    positions: Int[np.ndarray, " n_tested"]
    train_positions: Int[np.ndarray, " n_train"]
    baselines: Baselines
    interval: BootstrapInterval
    by_region: list[Region]
    n_rows: int
    d_model: int
    held_out: bool

    def __str__(self) -> str:
        test = f"test error {self.test_mae:.2f} positions ({self.interval})"
        if not self.held_out:
            test = f"no test: error {self.test_mae:.2f} positions on the rows it was fitted to ({self.interval})"
        lines = [
            f"{self.probe}, {self.split}: {self.n_rows} rows x {self.d_model} of {self.source}",
            f"  {test}, training error {self.train_mae:.2f}, r2 {self.r2:.4f}",
            f"  constant guess {self.baselines.constant:.2f}",
            f"  permuted labels {mean_and_runs(self.baselines.permuted_labels, self.baselines.permuted_labels_runs)}",
            f"  random table {mean_and_runs(self.baselines.random_table, self.baselines.random_table_runs)}",
            f"  by region {', '.join(map(str, self.by_region))}",
        ]
        return "\n".join(lines)


def mean_and_runs(mean: float, runs: Sequence[float]) -> str:
    """A mean over runs, with the smallest and the largest of them."""
    return f"{mean:.2f} ({min(runs):.2f} to {max(runs):.2f} in {len(runs)})"
