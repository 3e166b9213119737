"""How many bits the positions cost somebody who is shown the rows: a second opinion beside a probe's error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr
from threadpoolctl import threadpool_limits

from ..errors import ProbeInputError
from ..public import Seed, public
from ..seeds import generator
from ..serialization import Record
from ..tables import RowChoice
from .estimators import Ridge, permuted_labels, random_tables_like
from .rows import chosen_rows

# The first block costs what no knowledge costs; each of the next is as long as all before it.
FIRST_BLOCK = 8
N_CONTROLS = 3
# Widths of the normal distribution to choose from, and shares left to a uniform one.
N_WIDTHS = 64
ESCAPES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
# By so many rows at most they are chosen: each is coded in every way, and more would hardly change the choice.
MOST_CODED = 4096


@dataclass(frozen=True, eq=False, repr=False)
class DescriptionLength(Record):
    """The online code length of positions given their rows.

    Attributes:
        bits: of all positions in the code that learns from the rows before.
        uniform_bits: without the rows, n log2(n).
        compression: uniform_bits / bits; 1 means that the rows tell nothing.
        random_table_bits: of the same code for tables of normal numbers, the mean of its runs.
        permuted_labels_bits: of the same code for labels dealt out at random, the mean of its runs.
        n_rows: how many rows were used.
        d_model: the width of the table.
        source: where the table comes from.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.probing import description_length
        >>> found = description_length(sinusoidal(256, 64))
        >>> bool(found.compression > 2 and abs(found.random_table_bits / found.uniform_bits - 1) < 0.1)
        True
    """

    bits: float
    uniform_bits: float
    compression: float
    random_table_bits: float
    permuted_labels_bits: float
    n_rows: int
    d_model: int
    source: str

    def __str__(self) -> str:
        lines = [
            f"description length: {self.n_rows} rows x {self.d_model} of {self.source}",
            f"  {self.bits:.0f} bits of {self.uniform_bits:.0f}, {self.compression:.2f} times shorter",
            f"  permuted labels {self.permuted_labels_bits:.0f} bits",
            f"  random table {self.random_table_bits:.0f} bits",
        ]
        return "\n".join(lines)


@public(ProbeInputError)
def description_length(table: Any, *, rows: RowChoice = None, seed: Seed = 0) -> DescriptionLength:
    """Measure the online (prequential) code of the positions given the rows (Voita and Titov 2020).

    Rows are sent in a random order, in blocks that double what has been sent. The first eight positions are coded
    as equally likely. For every later block, ridge regression is fitted to all rows before it, and each position is
    coded by a normal distribution around the prediction, summed over whole numbers and cut off at the ends of the
    range, so that the probabilities of the n possible labels add up to one. A part of the probability is spread
    evenly: without it a single row unlike all others, such as GPT-2's untrained last one, would cost thousands of bits.
    The width and that part are those that would have coded the earlier rows (the first 4,096 that were sent) shortest,
    each predicted without its fold. Labels are the ranks of the positions, 0 to n - 1.

    Args:
        table: what `posembed.load_table` takes, or a `PositionTable`.
        rows: which rows: a number (the first so many), a (start, stop), a slice or a range; all by default.
        seed: of the order, the folds and the controls.

    Returns:
        The bits, beside those of the uniform code, of permuted labels and of random tables.

    Raises:
        ProbeInputError: rows that the table does not have, fewer than 16, a bad seed.
        ProbeInputError: a chosen row holds NaN or infinity.
        PositionTableError: there is no position table in `table`.

    Example:
        >>> import torch
        >>> from posembed.probing import description_length
        >>> found = description_length(torch.randn(128, 64, generator=torch.Generator().manual_seed(0)))
        >>> bool(found.compression < 1.1)
        True
    """
    chosen = chosen_rows(table, rows, at_least=2 * FIRST_BLOCK, purpose="a description length")
    n = len(chosen.x)
    labels = np.arange(n, dtype=np.float64)
    order = generator(seed, "order of sending").permutation(n)
    controls = permuted_labels(labels, N_CONTROLS, seed=seed)
    with threadpool_limits(1):
        bits, *of_permuted = _online_bits(chosen.x[order], np.column_stack([labels, controls])[order], seed)
        of_random = [
            _online_bits(drawn, labels[order, None], seed)[0]
            for drawn in random_tables_like(chosen.x, N_CONTROLS, seed=seed)
        ]
    uniform = n * float(np.log2(n))
    return DescriptionLength(
        bits=float(bits),
        uniform_bits=uniform,
        compression=uniform / float(bits),
        random_table_bits=float(np.mean(of_random)),
        permuted_labels_bits=float(np.mean(of_permuted)),
        n_rows=n,
        d_model=chosen.x.shape[1],
        source=chosen.source,
    )


def _online_bits(x: np.ndarray, labels: np.ndarray, seed: int) -> Float[np.ndarray, " k"]:
    """The bits of each column of labels, of rows in the order of sending."""
    n, start = len(x), FIRST_BLOCK
    bits = np.full(labels.shape[1], FIRST_BLOCK * np.log2(n))
    while start < n:
        stop = min(2 * start, n)
        ridge = Ridge(seed=seed).fit(x[:start], labels[:start])
        predictions, left_out = ridge.predict(x[start:stop]), labels[:start] - ridge.left_out_errors_
        for column in range(labels.shape[1]):
            shape = _shape(left_out[:MOST_CODED, column], labels[:start, column][:MOST_CODED], n)
            bits[column] += code_bits(predictions[:, column], labels[start:stop, column], *shape, n).sum()
        start = stop
    return bits


def _shape(predictions: np.ndarray, labels: np.ndarray, n_labels: int) -> tuple[float, float]:
    """The width and the escape that code these labels shortest, given predictions made without them."""
    # From a tenth of a label, which leaves no doubt about it, to a width that makes all of them equally likely.
    widths = np.geomspace(0.1, 10 * n_labels, N_WIDTHS)
    # No less than what one row more, unlike all seen so far, would have asked for.
    escapes = np.array([*ESCAPES, 1 / (len(labels) + 1)])
    escapes = escapes[escapes >= 1 / (len(labels) + 1)]
    bits = code_bits(predictions, labels, widths[:, None], escapes[:, None, None], n_labels).sum(axis=2)
    best_escape, best_width = np.unravel_index(np.argmin(bits), bits.shape)
    return float(widths[best_width]), float(escapes[best_escape])


def code_bits(predictions: np.ndarray, labels: np.ndarray, width: Any, escape: Any, n_labels: int) -> np.ndarray:
    """What each label from 0 to n_labels - 1 costs: a normal around the prediction, and an even part, the escape."""
    # Far outside of all labels the masses are too small for their differences to be exact.
    predictions = predictions.clip(0, n_labels - 1)
    inside = _log_mass((labels - 0.5 - predictions) / width, (labels + 0.5 - predictions) / width)
    whole = _log_mass((-0.5 - predictions) / width, (n_labels - 0.5 - predictions) / width)
    return -np.logaddexp2(np.log2(1 - escape) + (inside - whole) / np.log(2), np.log2(escape / n_labels))


def _log_mass(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """log(Phi(high) - Phi(low)), in the tail where it does not cancel."""
    flip = low + high > 0
    near, far = np.where(flip, -low, high), np.where(flip, -high, low)
    return log_ndtr(near) + np.log1p(-np.exp(log_ndtr(far) - log_ndtr(near)))
