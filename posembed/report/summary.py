"""The table at the head of a report: every number of every position table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import PosembedError
from ..probing import ProbeResult, Spectrum
from ..similarity import Properties
from ..tables import PositionTable
from . import words
from .findings import NEAR, Findings

REFUSED = "refused, see below"


@dataclass(frozen=True)
class Line:
    """One line of the summary.

    Attributes:
        title: what the numbers are.
        of: the attribute of `Findings` that holds them.
        say: how they are said.

    Example:
        >>> from posembed.report.summary import Line
        >>> Line("rows before position 0", "table", lambda table: str(table.offset)).title
        'rows before position 0'
    """

    title: str
    of: str
    say: Callable[[Any], str]

    def cell(self, found: Findings) -> str:
        """Say it of one table.

        Example:
            >>> from posembed import load_table, sinusoidal
            >>> from posembed.report.findings import examine
            >>> from posembed.report.summary import GROUPS
            >>> found = examine(load_table(sinusoidal(64, 16)), "a sinusoid")
            >>> [line.cell(found) for line in GROUPS["The table"]][0]
            '64 positions of 16 numbers'
        """
        finding = getattr(found, self.of)
        return REFUSED if isinstance(finding, PosembedError) else self.say(finding)


def _file(table: PositionTable) -> str:
    return f"{table.name} in {table.file}" if table.file else table.name


def _error(result: ProbeResult) -> str:
    low, high = words.ends(result)
    return f"{words.number(float(result.test_mae))} ({words.number(low)} to {words.number(high)})"


def _control(name: str) -> Callable[[ProbeResult], str]:
    return lambda result: words.number(float(getattr(result.baselines, name)))


def _components(found: Spectrum) -> str:
    enough = found.n_components_for(0.9)
    return "no variance" if enough == 0 else f"{enough} (effective rank {words.number(float(found.effective_rank))})"


def _property(name: str) -> Callable[[Properties], str]:
    return lambda found: "not defined" if math.isnan(getattr(found, name)) else f"{getattr(found, name):.3f}"


GROUPS = {
    "The table": (
        Line("shape", "table", words.shape_of),
        Line("source", "table", lambda table: table.source),
        Line("revision", "table", lambda table: table.revision or "none: not from the hub"),
        Line("tensor", "table", _file),
        Line("stored as", "table", lambda table: table.stored_dtype),
        Line("rows before position 0", "table", lambda table: str(table.offset)),
        Line("bytes read", "table", lambda table: words.size(table.bytes_read)),
    ),
    "Its rows": (
        Line("norms", "table", words.norms),
        Line("look untrained", "table", lambda table: words.rows(table.untrained_rows)),
        Line("hold NaN or infinity", "table", lambda table: words.rows(table.non_finite_rows)),
        Line("components for 90 % of the variance", "spectrum", _components),
        Line("helix", "spectrum", words.helix_words),
    ),
    "Ridge probe, even rows to odd rows": (
        Line("error (95 % interval)", "between", _error),
        Line("control: constant guess", "between", _control("constant")),
        Line("control: permuted labels", "between", _control("permuted_labels")),
        Line("control: a random table", "between", _control("random_table")),
    ),
    "Ridge probe, first half to second half": (
        Line("error (95 % interval)", "beyond", _error),
        Line("control: constant guess", "beyond", _control("constant")),
        Line("control: permuted labels", "beyond", _control("permuted_labels")),
        Line("control: a random table", "beyond", _control("random_table")),
    ),
    "Description length of the positions": (Line("online code", "length", words.length_words),),
    "Dot products of the rows": (
        Line(f"monotonicity, offsets up to {NEAR}", "near", _property("monotonicity")),
        Line("monotonicity, all offsets", "all_offsets", _property("monotonicity")),
        Line("translation invariance", "all_offsets", _property("translation_invariance")),
        Line("symmetry", "all_offsets", _property("symmetry")),
    ),
}


def in_short(found: Findings) -> list[str]:
    """Say in a few sentences what a table has learned.

    Example:
        >>> from posembed import load_table, sinusoidal
        >>> from posembed.report.findings import examine
        >>> from posembed.report.summary import in_short
        >>> in_short(examine(load_table(sinusoidal(64, 32)), "a sinusoid"))[0]
        '64 positions of 32 numbers. No row looks untrained.'
    """
    sentences = [f"{words.shape_of(found.table)}. {words.health(found.table)}"]
    if isinstance(found.spectrum, Spectrum):
        spread = words.spectrum_words(found.spectrum)
        sentences.append(f"{spread[0].upper()}{spread[1:]}.")
    if isinstance(found.near, Properties):
        sentences.append(words.distance_words(found.near))
    sentences += [words.verdict(result) for result in (found.between, found.beyond) if isinstance(result, ProbeResult)]
    return sentences
