"""Contrasts of one family, or other numbers, as a table: rows of HTML in a notebook, lines of text elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import groupby
from numbers import Integral
from typing import TYPE_CHECKING, Any

from ..errors import FigureInputError
from ..stats import Interval
from .looks import signed

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, repr=False)
class ContrastTable:
    """Contrasts as words, row by row.

    Attributes:
        heads: of the columns, labels first.
        rows: a text for each column. Rows of one group stand together, and the group is said once.
        n_labels: how many columns are labels: a contrast, or a group and a contrast.

    Example:
        >>> from posembed.figures import ContrastTable
        >>> ContrastTable(("contrast", "mean"), (("a minus b", "0.5"),), 1)
        contrast   mean
        a minus b   0.5
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_labels: int

    def __repr__(self) -> str:
        lines = (self.heads, *self.rows)
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        aligned = [
            "  ".join(
                cell.ljust(width) if number < self.n_labels else cell.rjust(width)
                for number, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join(aligned)

    def _repr_html_(self) -> str:
        heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in self.heads)
        parts = [f'<table class="table dataframe contrasts">\n<thead><tr>{heads}</tr></thead>']
        for group, of_group in groupby(self.rows, key=lambda row: row[: self.n_labels - 1]):
            rows = [f'<th scope="row">{escape(row[self.n_labels - 1])}</th>{self._numbers(row)}' for row in of_group]
            first = "".join(f'<th scope="rowgroup" rowspan="{len(rows)}">{escape(each)}</th>' for each in group)
            parts.append("<tbody>\n<tr>" + first + "</tr>\n<tr>".join(rows) + "</tr>\n</tbody>")
        return "\n".join([*parts, "</table>"])

    def _numbers(self, row: tuple[str, ...]) -> str:
        return "".join(f"<td>{escape(cell)}</td>" for cell in row[self.n_labels :])


def contrast_table(found: pandas.DataFrame, *, of: str | None = None, digits: int = 3) -> ContrastTable:
    """Write the rows of `posembed.stats.family` as a table, each with its interval and Holm's p.

    Args:
        found: what `family` returns, or some of its rows.
        of: what stands before the colon of each name, such as "task"; it becomes a column of its own.
        digits: behind the point.

    Returns:
        The table. How many seeds there were is a column where it differs.

    Raises:
        FigureInputError: with `of` a name without a colon.

    Example:
        >>> from posembed.figures import contrast_table
        >>> from posembed.stats import family, interval
        >>> found = family({"order: a minus b": interval([1.0, 1.1, 1.2]), "order: a minus c": interval([-0.1, 0.2])})
        >>> contrast_table(found, of="task", digits=2)
        task   contrast   mean  95 % interval  seeds   Holm
        order  a minus b  1.10   0.85 to 1.35      3  0.005
        order  a minus c  0.05  −1.86 to 1.96      2  0.795
    """
    if of and (without := [name for name in found.index if ": " not in name]):
        raise FigureInputError(f"{without[0]!r} has no colon behind its {of}; leave of= out")
    as_many = found["n"].nunique() == 1
    counted = () if as_many else ("seeds",)
    interval = f"95 % interval, {found['n'].iloc[0]} seeds" if as_many else "95 % interval"
    rows = []
    for name, row in found.iterrows():
        labels = str(name).split(": ", 1) if of else [str(name)]
        mean, low, high = (_cell(row[each], digits) for each in ("mean", "low", "high"))
        seeds = () if as_many else (f"{row['n']:.0f}",)
        rows.append((*labels, mean, f"{low} to {high}", *seeds, _written(row["holm"])))
    heads = (*([of] if of else []), "contrast", "mean", interval, *counted, "Holm")
    return ContrastTable(heads, tuple(rows), 2 if of else 1)


def number_table(found: pandas.DataFrame, *, digits: int = 2) -> ContrastTable:
    """Write the numbers of a DataFrame as a table that fits a phone: every number whole, with a real minus sign.

    Args:
        found: its index, of one level or two, are the labels, and its columns numbers, intervals or words.
        digits: behind the point of what is no whole number.

    Returns:
        The table. NaN and None are a dash.

    Example:
        >>> import pandas as pd
        >>> from posembed.figures import number_table
        >>> from posembed.stats import Interval
        >>> found = {"loss": [1.5, float("nan")], "gap": [Interval(-0.25, -0.5, 0.0, 3), None], "seeds": [3, 0]}
        >>> number_table(pd.DataFrame(found, index=["rope", "nopos"]))
               loss                    gap  seeds
        rope   1.50  −0.25 (−0.50 to 0.00)      3
        nopos     –                      –      0
    """
    n_labels = found.index.nlevels
    rows = [
        (*map(str, label if n_labels > 1 else [label]), *(_cell(value, digits) for value in values))
        for label, *values in found.itertuples(name=None)
    ]
    heads = (*(str(name or "") for name in found.index.names), *map(str, found.columns))
    return ContrastTable(heads, tuple(rows), n_labels)


def _cell(value: Any, digits: int) -> str:
    if isinstance(value, Interval):
        mean, low, high = (_cell(each, digits) for each in (value.mean, value.low, value.high))
        return f"{mean} ({low} to {high})"
    if isinstance(value, str | Integral):
        return signed(value)
    # Never minus zero.
    return "–" if value is None or value != value else signed(f"{round(value, digits) + 0.0:.{digits}f}")


def _written(p: float) -> str:
    return "<0.001" if p < 0.0005 else f"{p:.3f}"
