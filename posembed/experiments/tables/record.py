"""What was found in the position table of one checkpoint, in a form that a file can keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from ...errors import RunError
from ...plain import plain

# A study of a later format is refused: guessing at its meaning could give a wrong number.
FORMAT = 1
# Whose predictions are kept: the table's, and those of two tables that know no position.
CONTROLS = ("table", "permuted labels", "random table")

Points = tuple[tuple[int, float], ...]


class Products(NamedTuple):
    """Dot products of some rows of a table with each other.

    Attributes:
        positions: of the rows.
        dots: a row for each of them, symmetric, rounded to four digits of the largest.

    Example:
        >>> from posembed.experiments import Products
        >>> Products((0, 8), ((1.0, 0.5), (0.5, 2.0))).dots[1]
        (0.5, 2.0)
    """

    positions: tuple[int, ...]
    dots: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class SplitScore:
    """One probe with one split, beside its controls; errors are in positions.

    Attributes:
        probe: "ols" or "ridge".
        split: "even-odd", "all", "folds" or "half".
        train_mae: the mean absolute error on the rows it was fitted to.
        test_mae: the same on the tested rows.
        low: the lower end of the interval of the test error.
        high: the upper end.
        constant: the test error of the median of the training positions.
        permuted_labels: of the same probe on labels dealt out at random, the mean of its runs.
        random_table: of the same probe on tables of normal numbers, the mean of its runs.
        held_out: whether each tested row was predicted by a probe that had not seen it.
        by_region: start, stop and error of stretches of the table.
        points: by the names of `CONTROLS`, true and predicted position of at most 128 tested rows, evenly picked;
            predictions are rounded to tenths. Of the two controls it is one permutation of the rows (with "half" inside
            each half) and one random table.

    Example:
        >>> from posembed.experiments import stored_studies
        >>> score = stored_studies()["gpt2"].score("ridge", "even-odd")
        >>> score.low < score.test_mae < score.high < score.permuted_labels
        True
    """

    probe: str
    split: str
    train_mae: float
    test_mae: float
    low: float
    high: float
    constant: float
    permuted_labels: float
    random_table: float
    held_out: bool
    by_region: tuple[tuple[int, int, float], ...]
    points: Mapping[str, Points]

    def to_dict(self) -> dict[str, Any]:
        """Return what a JSON file holds; the tested positions, the same for all controls, stand there once."""
        predictions = {name: [predicted for _, predicted in each] for name, each in self.points.items()}
        at = [position for position, _ in self.points["table"]]
        return plain(_values(self) | {"points": {"at": at} | predictions})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SplitScore:
        """Make the score that `to_dict` was called on."""
        kept = values["points"]
        points = {name: tuple(zip(kept["at"], kept[name], strict=True)) for name in CONTROLS}
        return cls(**{**values, "points": points, "by_region": tuple(map(tuple, values["by_region"]))})


@dataclass(frozen=True)
class TableStudy:
    """What probes, properties and a spectrum find in one position table. NaN where something is undefined.

    Attributes:
        source: the name of the checkpoint on the hub.
        revision: the commit on the hub, or in words where the weights came from another place.
        measured: the date, as 2026-11-20.
        sha256: of the rows as little-endian float32, row by row.
        n_positions: how many rows.
        d_model: the width of a row.
        offset: how many rows stood before position 0 in the checkpoint.
        untrained_rows: the positions whose rows look as if no gradient had reached them.
        rows: start and stop of the rows that were studied: all.
        scores: of each probe with each split.
        monotonicity: of the dot products, by the largest offset: "50" and "all".
        translation_invariance: of the dot products.
        explained_variance: the shares of the first ten principal components.
        effective_rank: of the centred rows.
        helix: components, period and share of two components that turn together; None where there are none.
        products: dot products for heat maps, of the "first" 64 positions and of 64 "even" ones over the whole table.
        stored: whether it was read from the package, not measured now.

    Example:
        >>> from posembed.experiments import stored_studies
        >>> study = stored_studies()["gpt2"]
        >>> study.untrained_rows
        (1023,)
        >>> print(study)
        gpt2: 1024 rows x 768, stored, measured 2026-11-20
          revision: wpe.weight of GPT-2 124M, from a public copy in big-endian float32
    """

    source: str
    revision: str
    measured: str
    sha256: str
    n_positions: int
    d_model: int
    offset: int
    untrained_rows: tuple[int, ...]
    rows: tuple[int, int]
    scores: tuple[SplitScore, ...]
    monotonicity: Mapping[str, float]
    translation_invariance: float
    explained_variance: tuple[float, ...]
    effective_rank: float
    helix: Mapping[str, Any] | None
    products: Mapping[str, Products]
    stored: bool = False

    def __str__(self) -> str:
        when = f"stored, measured {self.measured}" if self.stored else "measured now"
        return f"{self.source}: {self.n_positions} rows x {self.d_model}, {when}\n  revision: {self.revision}"

    def score(self, probe: str, split: str) -> SplitScore:
        """The score of a probe with a split.

        Raises:
            RunError: there is no such score; the message lists those there are.
        """
        by_name = {(each.probe, each.split): each for each in self.scores}
        if (probe, split) not in by_name:
            there = ", ".join(map(" ".join, by_name)) or "none"
            raise RunError(f"{self.source} has no score of {probe!r} with the split {split!r}; there are: {there}")
        return by_name[probe, split]

    def to_dict(self) -> dict[str, Any]:
        """Return what a JSON file holds: everything but whether it was read from one."""
        products = {name: _half(each) for name, each in self.products.items()}
        scores = [score.to_dict() for score in self.scores]
        values = plain(_values(self) | {"scores": scores, "products": products})
        del values["stored"]
        return {"format": FORMAT, **values}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, stored: bool = False) -> TableStudy:
        """Make the study that `to_dict` was called on.

        Args:
            values: what it gave.
            stored: whether they were read from the package.

        Raises:
            RunError: damaged values, or a format that this version does not read.
        """
        try:
            if values["format"] != FORMAT:
                raise RunError(
                    f"it has format {values['format']!r}, this version of posembed reads {FORMAT}; upgrade posembed"
                )
            return cls(**_read(values), stored=stored)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, RunError):
                raise
            raise RunError("it is damaged; measure the table again") from error


def _values(record: Any) -> dict[str, Any]:
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _read(values: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in values.items() if name != "format"}
    for name in ("untrained_rows", "rows", "explained_variance"):
        kept[name] = tuple(kept[name])
    return kept | {
        "scores": tuple(SplitScore.from_dict(each) for each in kept["scores"]),
        "monotonicity": {name: _number(value) for name, value in kept["monotonicity"].items()},
        "translation_invariance": _number(kept["translation_invariance"]),
        "products": {name: _whole(each) for name, each in kept["products"].items()},
    }


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _half(products: Products) -> dict[str, Any]:
    """The lower triangle says all of a symmetric matrix."""
    rows = [row[: number + 1] for number, row in enumerate(products.dots)]
    return {"positions": products.positions, "rows": rows}


def _whole(kept: Mapping[str, Any]) -> Products:
    rows: list[list[float]] = kept["rows"]
    if [len(row) for row in rows] != list(range(1, len(kept["positions"]) + 1)):
        raise ValueError("rows of another length")
    n = len(rows)
    dots = tuple(_row(rows, number, n) for number in range(n))
    return Products(tuple(kept["positions"]), dots)


def _row(rows: list[list[float]], number: int, n: int) -> tuple[float, ...]:
    below: Iterable[float] = (rows[other][number] for other in range(number + 1, n))
    return (*rows[number], *below)
