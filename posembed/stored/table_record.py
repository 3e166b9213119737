"""What was found in the position table of one checkpoint, and files that keep it: those of the package among them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from ..serialization import Record, plain
from ..training.results import checked_folder, of_format, read_json, write_whole

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
        >>> from posembed.stored import Products
        >>> Products((0, 8), ((1.0, 0.5), (0.5, 2.0))).dots[1]
        (0.5, 2.0)
    """

    positions: tuple[int, ...]
    dots: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, repr=False)
class SplitScore(Record):
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
        >>> from posembed.stored import stored_studies
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
        return plain(vars(self) | {"points": {"at": at} | predictions})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SplitScore:
        """Make the score that `to_dict` was called on."""
        kept = values["points"]
        points = {name: tuple(zip(kept["at"], kept[name], strict=True)) for name in CONTROLS}
        return cls(**{**values, "points": points, "by_region": tuple(map(tuple, values["by_region"]))})


@dataclass(frozen=True, repr=False)
class TableStudy(Record):
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
        >>> from posembed.stored import stored_studies
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
        return {(each.probe, each.split): each for each in self.scores}[probe, split]

    def to_dict(self) -> dict[str, Any]:
        """Return what a JSON file holds: everything but whether it was read from one."""
        products = {name: _half(each) for name, each in self.products.items()}
        scores = [score.to_dict() for score in self.scores]
        values = plain(vars(self) | {"scores": scores, "products": products})
        del values["stored"]
        return {"format": FORMAT, **values}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, stored: bool = False) -> TableStudy:
        """Make the study that `to_dict` was called on; ``stored`` where it was read from the package.

        Raises:
            RunError: a format that this version does not read.
        """
        kept = of_format(values, FORMAT)
        tuples = {name: tuple(kept[name]) for name in ("untrained_rows", "rows", "explained_variance")}
        read = {
            "scores": tuple(SplitScore.from_dict(each) for each in kept["scores"]),
            "monotonicity": {name: _number(value) for name, value in kept["monotonicity"].items()},
            "translation_invariance": _number(kept["translation_invariance"]),
            "products": {name: _whole(each) for name, each in kept["products"].items()},
        }
        return cls(**kept | tuples | read, stored=stored)


def stored_studies() -> dict[str, TableStudy]:
    """Read the studies that ship with the package, by the names of their checkpoints on the hub.

    Raises:
        RunError: one is damaged or of a newer format.

    Example:
        >>> from posembed.stored import stored_studies
        >>> stored_studies()["gpt2"].stored
        True
    """
    # In a folder of its own: the files beside it hold runs.
    return read_studies(Path(str(files("posembed.stored") / "tables")), stored=True)


def read_studies(folder: Path | str, *, stored: bool = False) -> dict[str, TableStudy]:
    """Read the studies of a folder, by their sources, in the order of the files' names.

    Args:
        folder: of `write_study`.
        stored: what they shall say of themselves: whether they come from the package.

    Raises:
        RunError: a folder that is not there; a study that is damaged, of a newer format, or under another's name.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed.stored import read_studies
        >>> read_studies(mkdtemp())
        {}
    """
    read = partial(TableStudy.from_dict, stored=stored)
    paths = sorted(checked_folder(folder).glob("*.json"))
    studies = [read_json(path, read, "measure the table again") for path in paths]
    return {study.source: study for study in studies}


def write_study(study: TableStudy, folder: Path | str) -> Path:
    """Write a study under the name of its source; who reads at the same time sees the whole file or none.

    Args:
        study: what was found.
        folder: is made if need be.

    Returns:
        The path of the file.

    Raises:
        OSError: the folder cannot be written, or the disk is full; nothing half-written stays.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed.stored import read_studies, stored_studies, write_study
        >>> folder, study = mkdtemp(), stored_studies()["gpt2"]
        >>> write_study(study, folder).name
        'gpt2.json'
        >>> read_studies(folder, stored=True) == {"gpt2": study}
        True
    """
    text = json.dumps(study.to_dict(), separators=(",", ":"))
    name = re.sub(r"[^\w.-]+", "--", study.source)
    return write_whole(Path(folder) / f"{name}.json", f"{text}\n".encode())


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _half(products: Products) -> dict[str, Any]:
    """The lower triangle says all of a symmetric matrix."""
    rows = [row[: number + 1] for number, row in enumerate(products.dots)]
    return {"positions": products.positions, "rows": rows}


def _whole(kept: Mapping[str, Any]) -> Products:
    rows, n = kept["rows"], len(kept["positions"])
    dots = tuple(tuple(rows[max(i, j)][min(i, j)] for j in range(n)) for i in range(n))
    return Products(tuple(kept["positions"]), dots)
