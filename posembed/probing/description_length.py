"""How many bits the positions cost somebody who is shown the rows: a second opinion beside a probe's error."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr

from .._plain import plain
from ._random import generator
from ._rows import RowChoice, chosen_rows
from ._threads import one_thread
from .controls import permuted_labels, random_tables_like
from .ridge import Ridge

# The first block costs what no knowledge costs; each of the next is as long as all before it.
FIRST_BLOCK = 8
N_CONTROLS = 3
# Widths of the normal distribution to choose from, and shares left to a uniform one.
N_WIDTHS = 64
ESCAPES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)


@dataclass(frozen=True, eq=False)
class DescriptionLength:
    """The online code length of positions given their rows.

    Attributes:
        bits: of all positions in the code that learns from the rows before.
        uniform_bits: without the rows, n log2(n).
        compression: uniform_bits / bits; 1 means that the rows tell nothing.
        random_table_bits: of the same code for tables of normal numbers, the mean of its runs.
        permuted_labels_bits: of the same code for labels dealt out at random, the mean of its runs.
        random_table_runs: each random table.
        permuted_labels_runs: each permutation.
        block_ends: how many rows had been coded after each block.
        bits_by_block: of each block.
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
    random_table_runs: tuple[float, ...]
    permuted_labels_runs: tuple[float, ...]
    block_ends: list[int]
    bits_by_block: list[float]
    n_rows: int
    d_model: int
    source: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, text, lists and dictionaries, ready for JSON."""
        return plain(self)

    def __str__(self) -> str:
        lines = [
            f"description length: {self.n_rows} rows x {self.d_model} of {self.source}",
            f"  {self.bits:.0f} bits of {self.uniform_bits:.0f}, {self.compression:.2f} times shorter",
            f"  permuted labels {self.permuted_labels_bits:.0f} bits",
            f"  random table {self.random_table_bits:.0f} bits",
        ]
        return "\n".join(lines)


def description_length(table: Any, *, rows: RowChoice = None, seed: int = 0) -> DescriptionLength:
    """Measure the online (prequential) code of the positions given the rows (Voita and Titov 2020).

    Rows are sent in a random order, in blocks that double what has been sent. The first eight positions are coded
    as equally likely. For every later block, ridge regression is fitted to all rows before it, and each position is
    coded by a normal distribution around the prediction, summed over whole numbers and cut off at the ends of the
    range, so that the probabilities of the n possible labels add up to one. A part of the probability is spread
    evenly: without it a single row unlike all others, such as GPT-2's untrained last one, would cost thousands of bits.
    The width and that part are those that would have coded the earlier rows shortest, each predicted without its
    fold. Labels are the ranks of the positions, 0 to n - 1.

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
    with one_thread():
        blocks = _online_bits(chosen.x[order], np.column_stack([labels, controls])[order], seed)
        random_runs = tuple(
            float(_online_bits(drawn, labels[order, None], seed).sum())
            for drawn in random_tables_like(chosen.x, N_CONTROLS, seed=seed)
        )
    permuted_runs = tuple(blocks[:, 1:].sum(axis=0).tolist())
    bits, uniform = float(blocks[:, 0].sum()), n * float(np.log2(n))
    return DescriptionLength(
        bits=bits,
        uniform_bits=uniform,
        compression=uniform / bits,
        random_table_bits=float(np.mean(random_runs)),
        permuted_labels_bits=float(np.mean(permuted_runs)),
        random_table_runs=random_runs,
        permuted_labels_runs=permuted_runs,
        block_ends=_block_ends(n),
        bits_by_block=blocks[:, 0].tolist(),
        n_rows=n,
        d_model=chosen.x.shape[1],
        source=chosen.source,
    )


def label_probabilities(
    predictions: Float[np.ndarray, " m"], width: float, escape: float, n_labels: int
) -> Float[np.ndarray, "m n_labels"]:
    """The probability that the code gives to each label 0 to n_labels - 1. Each row adds up to one.

    Args:
        predictions: the centre of each distribution; the nearest label where one lies outside of all.
        width: their standard deviation, in labels.
        escape: the part of the probability that is spread evenly.
        n_labels: how many labels there are.

    Example:
        >>> import numpy as np
        >>> from posembed.probing import label_probabilities
        >>> label_probabilities(np.array([1.0, 99.0]), 0.5, 0.0, 3).round(2)
        array([[0.16, 0.68, 0.16],
               [0.  , 0.19, 0.81]])
    """
    labels = np.broadcast_to(np.arange(n_labels), (len(predictions), n_labels))
    return np.exp2(-_bits(predictions[:, None], labels, width, escape, n_labels))


def _online_bits(x: np.ndarray, labels: np.ndarray, seed: int) -> Float[np.ndarray, "n_blocks k"]:
    """Bits of each block, for each column of labels, of rows in the order of sending."""
    n, ends = len(x), _block_ends(len(x))
    bits = [np.full(labels.shape[1], FIRST_BLOCK * np.log2(n))]
    for start, stop in itertools.pairwise(ends):
        ridge = Ridge(seed=seed).fit(x[:start], labels[:start])
        predictions, left_out = ridge.predict(x[start:stop]), labels[:start] - ridge.left_out_errors_
        shapes = [_shape(guessed, known, n) for guessed, known in zip(left_out.T, labels[:start].T, strict=True)]
        columns = zip(predictions.T, labels[start:stop].T, shapes, strict=True)
        bits.append(np.array([_bits(guessed, true, *shape, n).sum() for guessed, true, shape in columns]))
    return np.stack(bits)


def _block_ends(n: int) -> list[int]:
    ends = [FIRST_BLOCK]
    while ends[-1] < n:
        ends.append(min(2 * ends[-1], n))
    return ends


def _shape(predictions: np.ndarray, labels: np.ndarray, n_labels: int) -> tuple[float, float]:
    """The width and the escape that code these labels shortest, given predictions made without them."""
    # From a tenth of a label, which leaves no doubt about it, to a width that makes all of them equally likely.
    widths = np.geomspace(0.1, 10 * n_labels, N_WIDTHS)
    # No less than what one row more, unlike all seen so far, would have asked for.
    escapes = np.array([*ESCAPES, 1 / (len(labels) + 1)])
    escapes = escapes[escapes >= 1 / (len(labels) + 1)]
    normal = np.stack([_normal_log2(predictions, labels, width, n_labels) for width in widths])
    kept, spread = np.log2(1 - escapes)[:, None, None], np.log2(escapes / n_labels)[:, None, None]
    bits = -np.logaddexp2(kept + normal, spread).sum(axis=2)
    best_escape, best_width = np.unravel_index(np.argmin(bits), bits.shape)
    return float(widths[best_width]), float(escapes[best_escape])


def _bits(predictions: np.ndarray, labels: np.ndarray, width: float, escape: float, n_labels: int) -> np.ndarray:
    """What each label costs."""
    normal = _normal_log2(predictions, labels, width, n_labels)
    if escape == 0:
        return -normal
    return -np.logaddexp2(np.log2(1 - escape) + normal, np.log2(escape / n_labels))


def _normal_log2(predictions: np.ndarray, labels: np.ndarray, width: float, n_labels: int) -> np.ndarray:
    """The logarithm of the normal probability of the unit interval around a label, within the range of all."""
    # Far outside of all labels the masses are too small for their differences to be exact.
    predictions = predictions.clip(0, n_labels - 1)
    inside = _log_mass((labels - 0.5 - predictions) / width, (labels + 0.5 - predictions) / width)
    whole = _log_mass((-0.5 - predictions) / width, (n_labels - 0.5 - predictions) / width)
    return (inside - whole) / np.log(2)


def _log_mass(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """log(Phi(high) - Phi(low)), in the tail where it does not cancel."""
    flip = low + high > 0
    near, far = np.where(flip, -low, high), np.where(flip, -high, low)
    return log_ndtr(near) + np.log1p(-np.exp(log_ndtr(far) - log_ndtr(near)))
