"""Run a model with another position table, and leave it as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..errors import PositionTableError
from ..public import Seed, public
from .live import PositionRows, find_position_rows
from .load import load_table

Model = TypeVar("Model", bound=nn.Module)


@public(PositionTableError)
@contextmanager
def with_position_table(
    model: Model,
    table: Literal["zeroed", "shuffled"]
    | Float[Tensor, "n_positions d_model"]
    | Float[np.ndarray, "n_positions d_model"],
    *,
    part: str | None = None,
    name: str | None = None,
    seed: Seed = 0,
) -> Iterator[Model]:
    """Give a model another position table for the length of a with block.

    The table is changed in place and put back bit for bit on exit, after an error too. Rows that stand before position
    0 (RoBERTa's padding rows) are not touched.

    Args:
        model: a transformers model, or any other, with a learned or stored position table.
        table: "zeroed", "shuffled" (the same rows at other positions), or a tensor or array whose row p is for
            position p.
        part: for models with several tables, which one: "encoder", "decoder", "text", "vision".
        name: of the table in the model, where it has no usual one: that of a parameter, a buffer or an nn.Embedding.
        seed: of the shuffle.

    Yields:
        The model itself.

    Raises:
        PositionTableError: the model has no table, or several and neither `part` nor `name` chooses one; the new table
            has another shape or holds NaN or infinity; an unknown word.

    Example:
        >>> import torch
        >>> from transformers import BertConfig, BertModel
        >>> from posembed import check_equivariance, with_position_table
        >>> _ = torch.manual_seed(0)
        >>> config = BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64)
        >>> model, x = BertModel(config), torch.randn(1, 6, 32)
        >>> check_equivariance(model, x).verdict
        'neither'
        >>> with with_position_table(model, "zeroed"):
        ...     check_equivariance(model, x).verdict
        'equivariant'
    """
    found = find_position_rows(model, part=part, name=name)
    new = _new_rows(found, table, seed)
    old = found.rows.detach().clone()
    try:
        _write(found, new)
        yield model
    finally:
        # Anew, for whoever has put another parameter in its place inside the block gets the rows in that one.
        _write(find_position_rows(model, part=part, name=name), old)


def _write(found: PositionRows, rows: Tensor) -> None:
    # What was made in inference mode can be changed there alone.
    with torch.inference_mode() if found.rows.is_inference() else torch.no_grad():
        found.rows.copy_(rows)


def _new_rows(found: PositionRows, table: str | Tensor | np.ndarray, seed: int) -> Tensor:
    rows = found.rows.detach()
    if isinstance(table, str):
        return torch.zeros_like(rows) if table == "zeroed" else rows[_shuffle(len(rows), seed).to(rows.device)]
    return _checked(load_table(table).weight, found)


def _shuffle(n_rows: int, seed: int) -> Tensor:
    """A random order; the shift by one where the draw leaves every row in place."""
    order = torch.randperm(n_rows, generator=torch.Generator().manual_seed(int(seed)))
    identity = torch.arange(n_rows)
    return identity.roll(1) if torch.equal(order, identity) else order


def _checked(table: Tensor, found: PositionRows) -> Tensor:
    wanted = tuple(found.rows.shape)
    if tuple(table.shape) != wanted:
        before = f" (without the {found.offset} rows before position 0)" if found.offset else ""
        raise PositionTableError(
            f"the new table has shape {tuple(table.shape)}, but {found.name} needs {wanted}{before}"
        )
    # In the model's own format, in which a large number may be infinite.
    rows = table.detach().to(found.rows.dtype)
    if not bool(torch.isfinite(rows).all()):
        raise PositionTableError(f"the new table holds NaN or infinity, or numbers too large for {rows.dtype}")
    return rows
