"""Read positions off the rows of a table, and say what else would have done as well."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Float, Int
from threadpoolctl import threadpool_limits

from ..errors import ProbeInputError
from ..public import Seed, public
from ..serialization import Record
from ..stats import BootstrapInterval, mean_interval
from ..tables import RowChoice, load_table
from ..tables.table import warn_of_grid
from .estimators import MLP, GradientDescent, LeastSquares, Ridge, constant_guess, permuted_labels, random_tables_like
from .rows import Part, Split, chosen_rows, split_rows

Probe = Literal["ols", "ridge", "gd", "mlp"]
PROBES: tuple[Probe, ...] = get_args(Probe)

N_REGIONS = 8
# An error of so many constant guesses is no prediction of positions any more.
FAR = 10


# How often permuted labels and random tables are run. Permutations are further outputs of one fit, which cost little,
# but for mlp, which needs a network for each.
REPEATS = {"ols": (10, 5), "ridge": (10, 5), "gd": (4, 5), "mlp": (2, 2)}


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


@dataclass(frozen=True, eq=False, repr=False)
class ProbeResult(Record):
    """How well a probe reads positions off the rows of a table. Errors are in positions.

    Attributes:
        probe: "ols", "ridge", "gd" or "mlp".
        split: "even-odd", "all", "folds" or "half".
        source: where the table comes from.
        train_mae: the mean absolute error on the rows it was fitted to; with five folds, the mean over the fits.
        test_mae: the same on the tested rows. With the split "all" these are the rows it was fitted to, and
            `held_out` is false.
        r2: 1 less the squared error over that of the mean of the tested positions.
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
            f"  permuted labels {mean_and_runs(self.baselines.permuted_labels_runs)}",
            f"  random table {mean_and_runs(self.baselines.random_table_runs)}",
            f"  by region {', '.join(map(str, self.by_region))}",
            *([f"  {self.remark}"] if self.remark else []),
        ]
        return "\n".join(lines)

    @property
    def remark(self) -> str:
        """Why a control is far beyond the range of the positions, where one is; mostly empty."""
        controls = self.baselines
        if max(controls.permuted_labels, controls.random_table) < FAR * controls.constant:
            return ""
        return (
            f"a control lies far beyond the {self.n_rows} positions: with labels that it cannot read, the probe "
            "magnifies what the rows hardly differ in"
        )


@public(ProbeInputError)
def probe_table(
    table: Any,
    *,
    part: str | None = None,
    probe: Probe = "ridge",
    split: Split = "even-odd",
    rows: RowChoice = None,
    seed: Seed = 0,
) -> ProbeResult:
    """Fit a regression from rows to their positions and test it on other rows, beside its controls.

    Beside the score stand the best constant guess, the same probe on permuted labels (the control task of Hewitt and
    Liang 2019), the same probe on tables of random numbers, and an interval that takes into account that errors of
    neighbours are alike. "ols" and "ridge" run ten permutations and five random tables, "gd" four and five, "mlp" two
    and two. With five folds each permutation and each random table is tested on one of them. With "half" labels are
    permuted inside each half, so that no control sees labels of the second before it is tested there.

    A table of patches is read as one line, class tokens first, and a warning says so.

    Args:
        table: what `posembed.load_table` takes, or a `PositionTable`.
        part: of a model with several tables, as for `load_table`.
        probe: "ols" (least squares), "ridge" (its strength chosen by folds of the training rows), "gd" (10,000
            gradient steps) or "mlp" (two layers with ReLU).
        split: "even-odd", "all", "folds" or "half", as `split_rows` explains. "all" has no test.
        rows: which rows: a number (the first so many), a (start, stop), a slice or a range; all by default.
        seed: of folds, starts, controls and the interval.

    Returns:
        The errors in positions, the predictions, and what they are to be compared with.

    Raises:
        ProbeInputError: an unknown probe or split, rows that the table does not have, too few of them, a bad seed.
        ProbeInputError: a chosen row holds NaN or infinity.
        PositionTableError: there is no position table in `table`.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.probing import probe_table
        >>> result = probe_table(sinusoidal(256, 64), probe="ols", split="folds")
        >>> bool(result.interval.high < 0.1 < 60 < result.baselines.constant)
        True
    """
    table = load_table(table, part=part)
    warn_of_grid(table)
    x, positions, source = chosen_rows(table, rows, at_least=2, purpose="a probe")
    parts = split_rows(positions, split, seed=seed)
    if len(parts) == len(parts[0].test) == 1:
        few = f"of {len(x)} rows {split} tests one alone, whose error has no interval; choose more rows"
        raise ProbeInputError(few)
    with threadpool_limits(1):  # so that the last digits do not depend on how many there are
        fits = _fits(probe, x, positions, parts, split, seed)
        baselines = _baselines(probe, x, positions, parts, fits, seed)
    tested = np.concatenate([part.test for part in parts])
    order = np.argsort(tested)
    tested, predictions = tested[order], np.concatenate([fit.predictions[:, 0] for fit in fits])[order]
    true = positions[tested]
    errors = np.abs(predictions - true)
    return ProbeResult(
        probe=probe,
        split=split,
        source=source,
        train_mae=float(np.mean([fit.train_error for fit in fits])),
        test_mae=float(errors.mean()),
        r2=1 - float(((predictions - true) ** 2).sum() / ((true - true.mean()) ** 2).sum()),
        predictions=predictions,
        positions=true,
        train_positions=positions[np.unique(np.concatenate([part.train for part in parts]))],
        baselines=baselines,
        interval=mean_interval(errors, seed=seed),
        by_region=_by_region(positions, tested, errors),
        n_rows=len(x),
        d_model=x.shape[1],
        held_out=split != "all",
    )


class _Fit(NamedTuple):
    """One fit to a part: of the true positions, and of the permutations that fell to this part."""

    predictions: Float[np.ndarray, "n_test k"]
    test_errors: Float[np.ndarray, " k"]
    train_error: float


def make_probe(probe: Probe, seed: int) -> Any:
    """The estimator behind a name, with the settings that `probe_table` gives it."""
    makers = {"ridge": Ridge, "gd": GradientDescent, "mlp": MLP}
    return LeastSquares() if probe == "ols" else makers[probe](seed=seed)


def _fits(
    probe: Probe, x: np.ndarray, positions: np.ndarray, parts: Sequence[Part], split: Split, seed: int
) -> list[_Fit]:
    """A fit to each part, with every so manyth permutation beside the true positions."""
    true = positions.astype(np.float64)
    permuted = permuted_labels(true, REPEATS[probe][0], seed=seed)
    if split == "half":
        for side in parts[0]:
            permuted[side] = true[side][permuted[side].argsort(axis=0).argsort(axis=0)]
    labels = [np.column_stack([true, permuted[:, number :: len(parts)]]) for number in range(len(parts))]
    return [_fit(probe, x, some, part, seed) for some, part in zip(labels, parts, strict=True)]


def _fit(probe: Probe, x: np.ndarray, labels: np.ndarray, part: Part, seed: int) -> _Fit:
    fitted = make_probe(probe, seed).fit(x[part.train], labels[part.train])
    predictions = fitted.predict(x[part.test])
    train_errors = np.abs(fitted.predict(x[part.train]) - labels[part.train])
    return _Fit(predictions, np.abs(predictions - labels[part.test]).mean(axis=0), float(train_errors[:, 0].mean()))


def _baselines(
    probe: Probe, x: np.ndarray, positions: np.ndarray, parts: Sequence[Part], fits: Sequence[_Fit], seed: int
) -> Baselines:
    guesses = [np.abs(positions[part.test] - constant_guess(positions[part.train])) for part in parts]
    permuted = tuple(np.concatenate([fit.test_errors[1:] for fit in fits]).tolist())
    labels = positions.astype(np.float64)[:, None]
    # The rows of a random table are all alike, so one part of each says as much as five parts of one.
    tables = enumerate(random_tables_like(x, REPEATS[probe][1], seed=seed))
    fitted = [_fit(probe, drawn, labels, parts[number % len(parts)], seed) for number, drawn in tables]
    random = tuple(float(fit.test_errors[0]) for fit in fitted)
    constant = float(np.concatenate(guesses).mean())
    return Baselines(constant, float(np.mean(permuted)), float(np.mean(random)), permuted, random)


def _by_region(positions: np.ndarray, tested: np.ndarray, errors: np.ndarray) -> list[Region]:
    """Eighths of the range that the chosen rows span, those with tested rows in them."""
    first, stop = int(positions[0]), int(positions[-1]) + 1
    bounds = np.unique(np.linspace(first, stop, N_REGIONS + 1).round().astype(int)).tolist()
    regions = []
    for start, end in itertools.pairwise(bounds):
        inside = (positions[tested] >= start) & (positions[tested] < end)
        if inside.any():
            regions.append(Region(start, end, float(errors[inside].mean())))
    return regions


def mean_and_runs(runs: Sequence[float]) -> str:
    """A mean over runs, with the smallest and the largest of them."""
    return f"{np.mean(runs):.2f} ({min(runs):.2f} to {max(runs):.2f} in {len(runs)})"
