"""All that a report says about one table, computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ..errors import PosembedError
from ..probing import DescriptionLength, ProbeResult, Spectrum, description_length, probe_table, spectrum
from ..similarity import Properties, properties
from ..tables import PositionTable

T = TypeVar("T")
Rows = int | slice | range | tuple[int, int] | None

# Offsets beyond it are compared too, but most of what a model attends to lies nearer.
NEAR = 50


@dataclass(frozen=True)
class Findings:
    """One table and what was found in it; in place of a finding that was refused stands the error.

    Attributes:
        label: a short name, different from that of every other table in the report.
        table: the table.
        between: the ridge probe on the even-odd split.
        beyond: the ridge probe on the split from the first half to the second.
        length: the description length of the positions, given the rows.
        spectrum: the principal components.
        near: the properties, monotonicity among offsets up to `NEAR`.
        all_offsets: the properties, monotonicity among all offsets.

    Example:
        >>> from posembed import load_table, sinusoidal
        >>> from posembed.report.findings import examine
        >>> examine(load_table(sinusoidal(64, 16)), "a sinusoid").label
        'a sinusoid'
    """

    label: str
    table: PositionTable
    between: ProbeResult | PosembedError
    beyond: ProbeResult | PosembedError
    length: DescriptionLength | PosembedError
    spectrum: Spectrum | PosembedError
    near: Properties | PosembedError
    all_offsets: Properties | PosembedError

    def refusals(self) -> list[str]:
        """Say in one line each what could not be computed, without saying anything twice.

        Example:
            >>> from posembed import load_table, sinusoidal
            >>> from posembed.report.findings import examine
            >>> examine(load_table(sinusoidal(64, 16)), "a sinusoid").refusals()
            []
        """
        found = (self.between, self.beyond, self.length, self.spectrum, self.near, self.all_offsets)
        return list(dict.fromkeys(str(error) for error in found if isinstance(error, PosembedError)))


# What `examine` says before each step; the report counts them.
STEPS = ("the probe between rows", "the probe beyond them", "the description length", "the spectrum", "the properties")


def examine(
    table: PositionTable, label: str, *, rows: Rows = None, seed: int = 0, tell: Callable[[str], None] | None = None
) -> Findings:
    """Compute all that a report says about a table.

    Args:
        table: the table.
        label: its short name.
        rows: which rows are probed and compared, as for `posembed.probe_table`; the pictures show the whole table.
        seed: of the probes.
        tell: called with each of `STEPS` before it begins.

    Returns:
        The findings. What a table is refused for (NaN rows, too few of them) stands in the place of the finding.

    Example:
        >>> from posembed import load_table, sinusoidal
        >>> from posembed.report.findings import examine
        >>> examine(load_table(sinusoidal(64, 16)), "a sinusoid").near.translation_invariance > 0.99
        True
    """
    steps = iter(STEPS)

    def attempt(compute: Callable[[], T], new_step: bool = True) -> T | PosembedError:
        if new_step and tell is not None:
            tell(f"{label}: {next(steps)}")
        try:
            return compute()
        except PosembedError as error:
            return error

    given: Any = {"rows": rows}
    return Findings(
        label,
        table,
        attempt(lambda: probe_table(table, probe="ridge", split="even-odd", seed=seed, **given)),
        attempt(lambda: probe_table(table, probe="ridge", split="half", seed=seed, **given)),
        attempt(lambda: description_length(table, seed=seed, **given)),
        attempt(lambda: spectrum(table, **given)),
        attempt(lambda: properties(table, max_offset=NEAR, **given)),
        attempt(lambda: properties(table, **given), new_step=False),
    )
