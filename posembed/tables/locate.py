"""Find the position table inside a live model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from ..errors import PositionTableError, shown
from ._formats import Entry, Tensors, kind_of
from ._layouts import find_entry
from ._names import is_table_name, stem

# Modules whose positions begin at row 0 although that is the table's padding row.
FROM_ROW_0 = frozenset({"LxmertEmbeddings"})
# A module that is a table itself.
LEARNED = "posembed.encodings.learned.Learned"


@dataclass(frozen=True)
class PositionRows:
    """A model's position table and where its real positions begin.

    Attributes:
        name: the qualified name of the table in the model.
        parameter: the whole table, a parameter or a buffer, "n_rows d_model", "1 n_rows d_model" or "n_rows 1 d_model".
        offset: how many rows stand before position 0 (2 in RoBERTa, OPT and BART, else mostly 0).

    Example:
        >>> from torch import nn
        >>> from posembed.tables import PositionRows
        >>> PositionRows("embed_positions.weight", nn.Embedding(10, 4).weight, offset=2).rows.shape
        torch.Size([8, 4])
    """

    name: str
    parameter: Tensor
    offset: int

    @property
    def rows(self) -> Float[Tensor, "n_positions d_model"]:
        """A view of the real positions, row p for position p, that shares the model's memory."""
        table = self.parameter
        matrix = table if table.ndim == 2 else table[0] if table.shape[0] == 1 else table[:, 0]
        return matrix[self.offset :]


def find_position_rows(model: nn.Module, *, part: str | None = None, name: str | None = None) -> PositionRows:
    """Find the one learned or stored position table of a model.

    Args:
        model: a transformers model, or any module that uses one of the usual names.
        part: for models with several tables, a part of the name of the wanted one: "encoder", "decoder", "text",
            "vision".
        name: of the table in the model, where it has no usual one: that of a parameter, a buffer or an nn.Embedding.

    Returns:
        The table with its offset.

    Raises:
        PositionTableError: no table, or several and neither `part` nor `name` singles one out.

    Example:
        >>> from transformers import RobertaConfig, RobertaModel
        >>> from posembed.tables import find_position_rows
        >>> config = RobertaConfig(
        ...     vocab_size=10, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
        ...     max_position_embeddings=18, pad_token_id=1,
        ... )
        >>> found = find_position_rows(RobertaModel(config))
        >>> found.name, found.offset, tuple(found.rows.shape)
        ('embeddings.position_embeddings', 2, (16, 8))
    """
    if not isinstance(model, nn.Module):
        raise PositionTableError(f"a {type(model).__name__} is no model; load it first, with AutoModel for example")
    tensors = replace(live_tensors(model), call="name={!r:.150}")
    for option, given, such in (("part", part, "encoder"), ("name", name, "pe")):
        if given is not None and not isinstance(given, str):
            raise PositionTableError(f"{option} is {shown(given)}; give a name, such as {such!r}")
    entry = find_entry(tensors, live_config(model), source=type(model).__name__, part=part, name=name)
    return live_rows(model, entry)


def live_tensors(model: nn.Module) -> Tensors:
    """A model's parameters and buffers, as if they were a checkpoint's tensors."""
    named = chain(model.named_parameters(remove_duplicate=False), model.named_buffers(remove_duplicate=False))
    entries = {
        name: Entry(name, tuple(tensor.shape), kind_of(tensor.dtype), id(tensor), tensor.detach)
        for name, tensor in named
    }
    kinds = {name: type(module) for name, module in model.named_modules()}
    learned = [name for name, kind in kinds.items() if f"{kind.__module__}.{kind.__qualname__}" == LEARNED]
    widths = {module.embedding_dim for module in model.modules() if isinstance(module, nn.Embedding)}
    return Tensors(entries, schemes=[f"{name}.weight".lstrip(".") for name in learned], widths=widths)


def live_config(model: nn.Module) -> dict[str, Any]:
    """A model's settings as config.json would have them, empty where it has none."""
    config = getattr(model, "config", None)
    return dict(config.to_dict()) if config is not None and hasattr(config, "to_dict") else {}


def _counted_from(sinusoid: Any) -> int | None:
    """Where fairseq's sinusoids, which models keep as a buffer, have position 0: after the padding's row."""
    padding = getattr(sinusoid, "padding_idx", None)
    return getattr(sinusoid, "offset", None) if padding is None or "XGLM" in type(sinusoid).__name__ else padding + 1


def live_rows(model: nn.Module, entry: Entry) -> PositionRows:
    """The table of an entry; the rows before position 0 are named by it, or counted in by the module that owns it."""
    path = stem(entry.name)
    table = model.get_submodule(path) if path != entry.name else None
    owner = model.get_submodule(path.rpartition(".")[0])
    padding = getattr(table, "padding_idx", None) if is_table_name(entry.name) else None
    position_ids, offset = getattr(owner, "position_ids", None), getattr(table, "offset", None)
    if padding is not None:
        offset = offset or (0 if type(owner).__name__ in FROM_ROW_0 else padding + 1)
    if offset is None and isinstance(position_ids, Tensor) and position_ids.numel():
        if position_ids.is_meta:
            raise PositionTableError(f"{entry.name} is on the meta device, which holds no numbers; load weights first")
        offset = int(position_ids.min())
    holder, last = model.get_submodule(entry.name.rpartition(".")[0]), entry.name.rpartition(".")[2]
    if table is None and last == "weights":
        offset = _counted_from(holder)
    return PositionRows(path if isinstance(table, nn.Embedding) else entry.name, getattr(holder, last), offset or 0)
