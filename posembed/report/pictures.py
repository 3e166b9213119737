"""The pictures of a report: for each table one of each kind, with its alt text and the sentence under it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch

from ..errors import PosembedError
from ..figures import (
    DescribedFigure,
    component_curves,
    dot_product_map,
    error_by_region,
    explained_variance,
    helix_portrait,
    offset_profile,
    probe_scatter,
    row_health,
    table_heat,
)
from ..probing import ProbeResult
from . import words
from .findings import NEAR, Findings

T = TypeVar("T")
# The components of the random table that a spectrum is compared with; more would only take longer.
RANDOM_COMPONENTS = 256


@dataclass(frozen=True)
class Picture:
    """A figure of one table, and what one sees on it.

    Attributes:
        figure: the figure, with its alt text.
        sentence: what one sees, with the split and the baselines where there are such.

    Example:
        >>> from posembed import load_table, sinusoidal
        >>> from posembed.report.findings import examine
        >>> from posembed.report.pictures import KINDS
        >>> found = examine(load_table(sinusoidal(64, 16)), "a sinusoid")
        >>> KINDS[0].draw(found).figure.alt[:29]
        'Heat map of the table of a si'
    """

    figure: DescribedFigure
    sentence: str


@dataclass(frozen=True)
class Kind:
    """A section of the report: one question, asked of every table.

    Attributes:
        key: its address in the page.
        short: its name in the list of contents.
        title: its heading.
        guide: how to read the figure, the same for all tables.
        draw: makes the picture from the findings, or raises the error that stands in its place.

    Example:
        >>> from posembed.report.pictures import KINDS
        >>> [kind.key for kind in KINDS][:3]
        ['table', 'dot-products', 'offsets']
    """

    key: str
    short: str
    title: str
    guide: str
    draw: Callable[[Findings], Picture]


def _heat(found: Findings) -> Picture:
    weight = found.table.weight
    alt = f"Heat map of the table of {found.label}: {words.shape_of(found.table)}."
    variances = weight[np.isfinite(weight.numpy()).all(axis=1)].double().var(dim=0, correction=0)
    few = max(1, len(variances) // 100)
    held = float(variances.sort(descending=True).values[:few].sum() / variances.sum())
    columns = "column that varies most holds" if few == 1 else f"{few} columns that vary most hold"
    sentence = f"{words.shape_of(found.table)}. The {columns} {words.share(held)} of the variance along the positions."
    return Picture(table_heat(weight, alt=alt), sentence)


def _dot_products(found: Findings) -> Picture:
    alt = f"Dot products of every two rows of {found.label}, as a square with the main diagonal from top left."
    properties = _or_raise(found.all_offsets)
    sentence = (
        f"Translation invariance {properties.translation_invariance:.3f}: that share of the variance of the dot "
        "products is explained by the offset alone, the main diagonal left out. Baseline: 1 for a sinusoid, near 0 for "
        "random rows."
    )
    return Picture(dot_product_map(found.table.weight, alt=alt), sentence)


def _offsets(found: Findings) -> Picture:
    near, every = _or_raise(found.near), _or_raise(found.all_offsets)
    alt = f"Median dot product of two rows of {found.label} against their offset, with the band of 80 % of the pairs."
    sentence = (
        f"Monotonicity {near.monotonicity:.3f} among offsets up to {NEAR}, {every.monotonicity:.3f} among all: how "
        "often, of two rows on the same side, the nearer one has the larger product. Baseline: 0.5 without any order."
    )
    return Picture(offset_profile(found.table.weight, alt=alt), sentence)


def _probe(result: ProbeResult, found: Findings) -> Picture:
    described = f"{words.PROBES[result.probe].capitalize()}, {words.SPLITS[result.split]}"
    alt = f"Predicted against true position in {found.label}, {words.SPLITS[result.split]}. {words.verdict(result)}"
    sentences = [f"{described}.", words.error_words(result), _without_untrained(result, found), words.verdict(result)]
    return Picture(probe_scatter(result, alt=alt), " ".join(filter(None, sentences)))


def _without_untrained(result: ProbeResult, found: Findings) -> str:
    """What the error would be without the rows that were never trained, where some but not all were tested."""
    untrained = np.isin(result.positions, found.table.untrained_rows)
    if not untrained.any() or untrained.all():
        return ""
    errors = np.abs(result.predictions - result.positions)[~untrained]
    flagged = words.rows(result.positions[untrained].tolist())
    return f"Without {flagged} (untrained, it seems) it would err by {words.number(float(errors.mean()))}."


def _regions(found: Findings) -> Picture:
    series = {"even-odd split": found.between, "half split": found.beyond}
    results = {name: result for name, result in series.items() if isinstance(result, ProbeResult)}
    split, first = next(iter(results.items())) if results else ("", _or_raise(found.between))
    start, stop, worst = max(first.by_region, key=lambda region: region[2])
    alt = f"Mean absolute error of the probe in each region of {found.label}, on a logarithmic scale."
    sentence = (
        f"Ridge, {split}: the error is largest at positions {start} to {stop - 1}, {words.number(float(worst))} on "
        f"average. Baseline, dashed: the constant guess errs by {words.number(float(first.baselines.constant))}."
    )
    return Picture(error_by_region(results, alt=alt), sentence)


def _spectrum(found: Findings) -> Picture:
    spectrum = _or_raise(found.spectrum)
    alt = f"Share of the variance of {found.label} that the first components hold together, rising to 1."
    spread = words.spectrum_words(spectrum)
    random = _components_of_random_rows(len(spectrum.components), found.table.d_model)
    sentence = f"{spread[0].upper()}{spread[1:]}. Baseline: of random rows it takes about {random} components."
    return Picture(explained_variance({found.label: spectrum}, alt=alt), sentence)


def _components_of_random_rows(n_rows: int, n_columns: int) -> int:
    """How many components hold 90 % of the variance of independent normal numbers.

    As a share of all components it depends on the shape's proportions alone, so a smaller table of that shape tells
    (Marchenko and Pastur 1967).
    """
    smaller = max(1, min(n_rows, n_columns) // RANDOM_COMPONENTS)
    table = torch.randn(-(-n_rows // smaller), -(-n_columns // smaller), generator=torch.Generator().manual_seed(0))
    variances = torch.linalg.svdvals(table.double()) ** 2
    enough = int((variances.cumsum(0) < 0.9 * variances.sum()).sum()) + 1
    return max(1, round(enough / len(variances) * min(n_rows, n_columns)))


def _components(found: Findings) -> Picture:
    spectrum = _or_raise(found.spectrum)
    scores = np.asarray(spectrum.components, dtype=float)[:, :4]
    changes = [int((np.diff(np.sign(curve)) != 0).sum()) for curve in scores.T]
    alt = f"The first {len(changes)} principal components of {found.label} against the position."
    sentence = (
        f"Along {words.number(len(scores))} positions the components change sign {', '.join(map(str, changes))} times. "
        f"Baseline: rows in random order would do so about {len(scores) // 2} times."
    )
    return Picture(component_curves(spectrum, alt=alt), sentence)


def _helix(found: Findings) -> Picture:
    spectrum = _or_raise(found.spectrum)
    alt = f"Two principal components of {found.label} against each other, the position as colour."
    turning = words.helix_words(spectrum)
    which = "" if spectrum.helix else " These are the first two."
    sentence = f"Helix: {turning}.{which} Baseline: a helix is a circle here; random rows are a cloud."
    return Picture(helix_portrait(spectrum, alt=alt), sentence)


def _rows(found: Findings) -> Picture:
    flagged = words.health(found.table)
    alt = f"Norm of each row of {found.label}, and cosine of each with its nearest other row. {flagged}"
    sentence = f"Norms: {words.norms(found.table)}. {flagged}"
    return Picture(row_health(found.table, alt=alt), sentence)


def _or_raise(finding: T | PosembedError) -> T:
    if isinstance(finding, PosembedError):
        raise finding
    return finding


KINDS = (
    Kind(
        "table",
        "Table",
        "The table",
        "One line for each position, one column for each number of its row; white is zero. The colours end where 99 % "
        "of the numbers end, because a few columns are far larger than the rest.",
        _heat,
    ),
    Kind(
        "dot-products",
        "Dot products",
        "Dot products of every two rows",
        "Where only the offset between two positions counts, each diagonal has one colour.",
        _dot_products,
    ),
    Kind(
        "offsets",
        "Offsets",
        "Dot product against offset",
        "The same numbers, by the offset between the two rows. A falling line: near rows are more alike. A narrow "
        "band: it does not matter where in the table the two stand.",
        _offsets,
    ),
    Kind(
        "between",
        "Probe between rows",
        "Can a probe read the position? Between the rows it knows",
        "A point for each row that the probe was tested on. On the line, its prediction is exact.",
        lambda found: _probe(_or_raise(found.between), found),
    ),
    Kind(
        "beyond",
        "Probe beyond rows",
        "Can a probe read the position? Beyond the rows it knows",
        "Trained on the first half of the table, tested on the second: the probe must extrapolate.",
        lambda found: _probe(_or_raise(found.beyond), found),
    ),
    Kind(
        "regions",
        "Errors by region",
        "Where the probe errs",
        "The table is cut into regions of equal length. The scale is logarithmic: each line of the grid is ten times "
        "the one below.",
        _regions,
    ),
    Kind(
        "spectrum",
        "Spectrum",
        "How many directions the rows use",
        "The principal components of the centred table, the largest first, and the share of the variance that they "
        "hold together. The dotted line is at 90 %.",
        _spectrum,
    ),
    Kind(
        "components",
        "Components",
        "The first components along the positions",
        "Where each row lies along the directions in which the table varies most.",
        _components,
    ),
    Kind(
        "helix",
        "Helix",
        "Two components against each other",
        "A point for each position, dark for the first, light for the last.",
        _helix,
    ),
    Kind(
        "rows",
        "Row health",
        "The health of the rows",
        "Above the norm of each row, below its cosine with the row nearest to it. A row that was never trained is like "
        "no other.",
        _rows,
    ),
)
