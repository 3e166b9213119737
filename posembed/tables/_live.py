"""The position table of what is in memory already: a model, an embedding, a tensor, an array."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import PositionTableError
from ._floats import checked_kind, kind_of, widened
from ._layouts import part_in, patches_of
from ._names import stem
from ._weights import Entry
from .locate import PositionRows, find_position_rows, position_rows
from .table import PositionTable


class _Parameters:
    """A model's parameters, as if they were a checkpoint's tensors."""

    def __init__(self, model: nn.Module):
        self._entries = {
            name: Entry(name, tuple(parameter.shape), kind_of(parameter), type(model).__name__, id(parameter))
            for name, parameter in model.named_parameters(remove_duplicate=False)
        }

    @property
    def names(self) -> Iterable[str]:
        return self._entries.keys()

    def entry(self, name: str) -> Entry:
        return self._entries[name]

    def seen(self) -> Mapping[str, Entry]:
        return self._entries


def table_of_model(model: nn.Module, *, part: str | None, name: str | None, offset: int | None) -> PositionTable:
    """Copy the position table of a live model.

    Raises:
        PositionTableError: no table, several, or numbers that cannot be read.
    """
    source = _source(model)
    found = find_position_rows(model, part=part) if name is None else _named(model, name, offset)
    before = found.offset if offset is None else offset
    weight = _cut(found.parameter, before, f"{found.name} of {source}")
    tensors = _Parameters(model)
    entry = next(entry for entry in tensors.seen().values() if entry.place == id(found.parameter))
    config = getattr(model, "config", None)
    settings = config.to_dict() if config is not None and hasattr(config, "to_dict") else {}
    n_class_tokens, grid = (0, None) if before else patches_of(tensors, entry, settings)
    return PositionTable(
        weight,
        name=found.name,
        offset=before,
        source=source,
        bytes_read=0,
        part=part_in(tensors, entry.name),
        stored_dtype=kind_of(found.parameter),
        n_class_tokens=n_class_tokens,
        grid=grid,
    )


def table_of_embedding(embedding: nn.Embedding, *, offset: int | None) -> PositionTable:
    """Copy an embedding's rows; those up to its padding row stand before position 0."""
    if offset is None:
        offset = 0 if embedding.padding_idx is None else embedding.padding_idx + 1
    return table_of_tensor(embedding.weight, f"Embedding{tuple(embedding.weight.shape)}", offset=offset)


def table_of_tensor(tensor: Tensor, source: str | None = None, *, offset: int | None = None) -> PositionTable:
    """Copy a matrix, or the one in 1 x positions x width."""
    source = source or f"a tensor of shape {tuple(tensor.shape)}"
    offset = offset or 0
    weight = _cut(tensor, offset, source)
    return PositionTable(
        weight, name="weight", offset=offset, source=source, bytes_read=0, stored_dtype=kind_of(tensor)
    )


def table_of_array(array: np.ndarray, *, offset: int | None = None) -> PositionTable:
    """Copy a matrix, or the one in 1 x positions x width."""
    source = f"an array of shape {array.shape}"
    checked_kind(array.dtype.name, source, PositionTableError)
    if np.ma.is_masked(array):
        raise PositionTableError(f"{source} has masked entries, which are no numbers; fill or leave out their rows")
    # A copy in this machine's byte order, of which torch knows no other.
    native = np.array(array, dtype=array.dtype.newbyteorder("="), order="C", subok=False)
    return table_of_tensor(torch.from_numpy(native), source, offset=offset)


def _named(model: nn.Module, name: str, offset: int | None) -> PositionRows:
    known = [rows for rows in position_rows(model) if rows.name == stem(name)]
    if known:
        return known[0]
    parameters = dict(model.named_parameters(remove_duplicate=False))
    parameter = parameters.get(name, parameters.get(f"{name}.weight"))
    kind = type(model).__name__
    if parameter is None:
        raise PositionTableError(f"{kind} has no parameter {name!r:.100}; dict(model.named_parameters()) has them all")
    if offset is None:
        raise PositionTableError(
            f"{name} of {kind} is not known as a position table; say how many rows stand before position 0: "
            f"load_table(model, name={name!r:.100}, offset=0)"
        )
    return PositionRows(name, parameter, offset)


def _cut(tensor: Tensor, offset: int, what: str) -> Tensor:
    """The real positions, widened, in memory of their own."""
    checked_kind(kind_of(tensor), what, PositionTableError)
    if tensor.layout != torch.strided:
        raise PositionTableError(f"{what} is sparse; give it as an ordinary tensor")
    if tensor.is_meta:
        raise PositionTableError(
            f"{what} is on the meta device, which holds no numbers; load the model's weights first"
        )
    matrix = tensor[0] if tensor.ndim == 3 and tensor.shape[0] == 1 else tensor
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise PositionTableError(
            f"{what} is no position table: that is a matrix, one row for each position, or 1 x positions x width"
        )
    if not 0 <= offset < len(matrix):
        raise PositionTableError(f"{what} has {len(matrix)} rows, so {offset} cannot stand before position 0")
    return widened(matrix[offset:])


def _source(model: nn.Module) -> str:
    """The model's class, and its name on the hub. Not the folder of a local one: a printed result may be kept."""
    origin = getattr(getattr(model, "config", None), "name_or_path", None)
    kind = type(model).__name__
    return f"{kind} ({origin})" if isinstance(origin, str) and origin and not Path(origin).is_dir() else kind
