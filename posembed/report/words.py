"""What the numbers say, in plain sentences: the commands and the report speak with one voice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..probing import DescriptionLength, ProbeResult, Spectrum
    from ..similarity import Properties
    from ..tables import PositionTable

PROBES = {
    "ols": "least squares",
    "ridge": "ridge regression",
    "gd": "gradient descent",
    "mlp": "a two-layer network",
}
SPLITS = {
    "even-odd": "trained on every other row, tested on the rows between (even-odd split)",
    "all": "trained and tested on the same rows (no split), so its error says nothing about other rows",
    "folds": "each row tested by a probe that was trained without it (five shuffled folds)",
    "half": "trained on the first half of the rows, tested on the second (half split)",
}
# Of the best control's error: below it, a probe reads the position; above it, it hardly does.
CLEARLY = 0.1
# From here on, how many times better no longer matters.
MANY = 1000
# Rows that a sentence lists one by one.
LISTED = 8

# Two norms are the same up to the rounding of float32.
SAME = 1e-5

PROPERTY_MEANINGS = {
    "monotonicity": (
        "Of two rows on the same side of a row, how often the nearer one is the more alike. 1: always; 0.5: no order."
    ),
    "translation_invariance": (
        "The share of the variance of the similarities that the offset alone explains. 1: only the offset counts."
    ),
    "symmetry": (
        "Whether j is to i as i is to j. The dot products of a table with itself are always symmetric, so a 1 says "
        "nothing about the table; the property speaks where queries and keys differ."
    ),
    "locality": "How much of an attention map's weight lies near the diagonal, halved with each step away from it.",
}


def number(value: float | int) -> str:
    """Write a number with three digits or so.

    Example:
        >>> from posembed.report.words import number
        >>> [number(value) for value in (1023, 256.04, 12.345, 0.8412, 0.00031, 0, float("nan"))]
        ['1,023', '256', '12.3', '0.841', '0.00031', '0', 'not defined']
    """
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return "not defined" if math.isnan(value) else str(value)
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def share(value: float | int) -> str:
    """Write a share of one as a percentage.

    Example:
        >>> from posembed.report.words import share
        >>> share(0.904), share(0.0004), share(float("nan"))
        ('90 %', '0.04 %', 'not defined')
    """
    if math.isnan(value):
        return "not defined"
    percent = 100 * value
    return f"{percent:.0f} %" if percent >= 9.95 else f"{percent:.2g} %"


def size(n_bytes: int) -> str:
    """Write a number of bytes.

    Example:
        >>> from posembed.report.words import size
        >>> size(0), size(812), size(3_145_728), size(9_800)
        ('none', '812 bytes', '3.1 MB', '9.8 kB')
    """
    if n_bytes == 0:
        return "none"
    for unit, least in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= least:
            return f"{n_bytes / least:,.1f} {unit}"
    return f"{n_bytes} bytes"


def rows(numbers: Sequence[int]) -> str:
    """Name rows by their numbers, the first few where there are many.

    Example:
        >>> from posembed.report.words import rows
        >>> rows([]), rows([1023]), rows([0, 3]), rows(range(100, 200))
        ('none', 'row 1023', 'rows 0 and 3', 'rows 100, 101, 102, 103, 104, 105, 106, 107 and 92 more')
    """
    if not numbers:
        return "none"
    if len(numbers) == 1:
        return f"row {numbers[0]}"
    shown = [str(row) for row in numbers[:LISTED]]
    last = f"{len(numbers) - LISTED} more" if len(numbers) > LISTED else shown.pop()
    return f"rows {', '.join(shown)} and {last}"


def shape_of(table: PositionTable) -> str:
    """Say how large a table is, and what its rows are for.

    Example:
        >>> import torch
        >>> from posembed.report.words import shape_of
        >>> from posembed.tables import as_table
        >>> shape_of(as_table(torch.eye(4, 8)))
        '4 positions of 8 numbers'
    """
    words = f"{number(table.n_positions)} positions of {number(table.d_model)} numbers"
    if table.grid is not None:
        words += f", a grid of {table.grid[0]} x {table.grid[1]} patches"
    if table.n_class_tokens:
        words += f", the first {table.n_class_tokens} for class tokens"
    return words


def health(table: PositionTable) -> str:
    """Say which rows look untrained or hold no numbers.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.report.words import health
        >>> from posembed.tables import as_table
        >>> health(as_table(sinusoidal(64, 32)))
        'No row looks untrained.'
    """
    untrained, broken = table.untrained_rows, table.non_finite_rows
    words = "No row looks untrained."
    if len(untrained) == len(table):
        words = "All rows look untrained: none is more like another one than random vectors are."
    elif untrained:
        verb, each = ("looks", "it is") if len(untrained) == 1 else ("look", "each is")
        words = (
            f"{rows(untrained).capitalize()} {verb} untrained: {each} no more like any other row than random vectors "
            "are."
        )
    return f"{rows(broken).capitalize()}: NaN or infinity. {words}" if broken else words


def norms(table: PositionTable) -> str:
    """Say how long the rows are.

    Example:
        >>> import torch
        >>> from posembed.report.words import norms
        >>> from posembed.tables import as_table
        >>> norms(as_table(torch.diag(torch.tensor([3.0, 1.0, 2.0]))))
        'median 2, from 1 (row 1) to 3 (row 0)'
    """
    found = table.norms.cpu().double().numpy()
    if not np.isfinite(found).any():
        return number(math.nan)
    least, most = int(np.nanargmin(found)), int(np.nanargmax(found))
    middle = float(np.nanmedian(found))
    if found[most] - found[least] <= SAME * found[most]:
        return f"{number(middle)} for all rows"
    return (
        f"median {number(middle)}, from {number(float(found[least]))} (row {least}) "
        f"to {number(float(found[most]))} (row {most})"
    )


def spectrum_words(found: Spectrum) -> str:
    """Say in how many directions a table's rows spread.

    Example:
        >>> import torch
        >>> from posembed.probing import spectrum
        >>> from posembed.report.words import spectrum_words
        >>> spectrum_words(spectrum(torch.diag(torch.tensor([9.0, 1.0, 1.0, 1.0]))))[:46]
        '1 centred component holds 90 % of the variance'
    """
    enough = found.n_components_for(0.9)
    if enough == 0:
        return "the rows do not differ, so there is no variance to explain"
    holds = "component holds" if enough == 1 else "components hold"
    return (
        f"{enough} centred {holds} 90 % of the variance; effective rank {number(float(found.effective_rank))}, "
        f"participation ratio {number(float(found.participation_ratio))}"
    )


def helix_words(found: Spectrum) -> str:
    """Say which two components turn together, if any do.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.probing import spectrum
        >>> from posembed.report.words import helix_words
        >>> helix_words(spectrum(sinusoidal(64, 4)))[:16]
        'components 1 and'
    """
    if found.helix is None:
        return "none: no two of the first components turn together with one frequency"
    first, second = sorted(found.helix.components)
    return (
        f"components {first + 1} and {second + 1} turn together, once in {number(float(found.helix.period))} "
        "positions; "
        f"that one frequency explains {share(float(found.helix.share))} of their variance"
    )


def error_words(result: ProbeResult) -> str:
    """Say how far a probe errs, and how far its controls do.

    Example:
        >>> from posembed import probe_table, sinusoidal
        >>> from posembed.report.words import error_words
        >>> "The constant guess errs by 32" in error_words(probe_table(sinusoidal(128, 4)))
        True
    """
    low, high = ends(result)
    controls = result.baselines
    return (
        f"It errs by {number(float(result.test_mae))} positions on average (95 % interval {number(low)} to "
        f"{number(high)}). The constant guess errs by {number(float(controls.constant))}, the same probe with permuted "
        f"labels by {number(float(controls.permuted_labels))}, on a random table of this size by "
        f"{number(float(controls.random_table))}."
    )


def length_words(found: DescriptionLength) -> str:
    """Say how many bits the positions take, given the rows.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.probing import description_length
        >>> from posembed.report.words import length_words
        >>> "bits instead of" in length_words(description_length(sinusoidal(128, 32)))
        True
    """
    return (
        f"{number(float(found.bits))} bits instead of {number(float(found.uniform_bits))}: "
        f"{number(float(found.compression))} times shorter than saying each position; with a random table "
        f"{number(float(found.random_table_bits))} bits"
    )


def ends(result: ProbeResult) -> tuple[float, float]:
    """The ends of a probe's interval, both NaN where there is none.

    Example:
        >>> from posembed import probe_table, sinusoidal
        >>> from posembed.report.words import ends
        >>> low, high = ends(probe_table(sinusoidal(64, 32)))
        >>> low <= high
        True
    """
    found = result.interval
    return (math.nan, math.nan) if found is None else (float(found.low), float(found.high))


def verdict(result: ProbeResult) -> str:
    """Say in one sentence what a probe's error means beside its controls.

    Example:
        >>> from posembed import probe_table, sinusoidal
        >>> from posembed.report.words import verdict
        >>> verdict(probe_table(sinusoidal(64, 32)))[:33]
        'The position can be read from row'
    """
    if result.split == "all":
        return "Rows that a probe was trained on show how well it fits, not what the table holds."
    controls = result.baselines
    best = min(float(controls.constant), float(controls.permuted_labels), float(controls.random_table))
    beyond = "beyond those it was trained on" if result.split == "half" else "that the probe has not seen"
    low, high = ends(result)
    if high < CLEARLY * best:
        ratio = best / float(result.test_mae) if result.test_mae > 0 else math.inf
        times = number(ratio) if ratio < MANY else f"more than {number(MANY)}"
        return f"The position can be read from rows {beyond}: the error is {times} times below the best control's."
    if high < best:
        part = share(result.test_mae / best)
        return f"The position can be read from rows {beyond}, but roughly: the error is {part} of the best control's."
    if low > best:
        return f"What the probe learned does not hold for rows {beyond}: a control errs less."
    return f"From rows {beyond} the probe reads no more than a control does."


CAVEATS = (
    "A low error shows that a simple function of a row gives its position. It does not show that the model computes "
    "that function, nor that it uses positions at all.",
    "Between the rows that it was trained on a probe can interpolate, whatever the rows hold that is smooth; the split "
    "from the first half to the second asks for more.",
)


def property_rows(found: Properties) -> list[tuple[str, float, str]]:
    """List the properties that are defined for a table, each with its meaning.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.similarity import properties
        >>> from posembed.report.words import property_rows
        >>> [name for name, value, meaning in property_rows(properties(sinusoidal(64, 32)))]
        ['monotonicity', 'translation invariance', 'symmetry']
    """
    listed = [(name, float(getattr(found, name)), meaning) for name, meaning in PROPERTY_MEANINGS.items()]
    # Locality is defined for attention maps alone.
    return [
        (name.replace("_", " "), value, meaning)
        for name, value, meaning in listed
        if name != "locality" or not math.isnan(value)
    ]


def distance_words(found: Properties) -> str:
    """Say in one sentence how the dot products of the rows depend on their distance.

    Example:
        >>> from posembed.similarity import Properties
        >>> from posembed.report.words import distance_words
        >>> distance_words(Properties(0.992, 0.801, 1.0, float("nan")))
        'The offset explains 80 % of how the dot products vary, and near rows are more alike in 99 % of comparisons.'
    """
    return (
        f"The offset explains {share(found.translation_invariance)} of how the dot products vary, and near rows are "
        f"more alike in {share(found.monotonicity)} of comparisons."
    )
