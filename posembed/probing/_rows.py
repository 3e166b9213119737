"""The rows of a table that a probe works with, checked, in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from ..errors import ProbeInputError
from ..tables import RowChoice, as_table, check_finite_rows, row_positions


@dataclass(frozen=True, eq=False)
class Rows:
    """Chosen rows of a table.

    Attributes:
        x: the rows.
        positions: of the rows, rising.
        source: where the table comes from.
    """

    x: Float[np.ndarray, "n d_model"]
    positions: Int[np.ndarray, " n"]
    source: str


def chosen_rows(table: Any, rows: RowChoice, *, at_least: int, purpose: str) -> Rows:
    """Take a table's rows, refusing what no probe can work with.

    Args:
        table: what `load_table` takes, or a `PositionTable`.
        rows: which of its rows.
        at_least: how many are needed.
        purpose: what for, for the message.
    """
    found = as_table(table)
    weight, source = found.weight, found.source
    positions = row_positions(rows, len(weight), ProbeInputError)
    if len(positions) < at_least:
        raise ProbeInputError(
            f"{purpose} needs at least {at_least} rows, but rows={rows!r} of {source} has {len(positions)}"
        )
    x = weight[torch.from_numpy(positions)].double().numpy()
    check_finite_rows(~np.isfinite(x).all(axis=1), positions, source, "leave them out with rows=")
    return Rows(x, positions, source)
