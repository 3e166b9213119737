"""Find the position table inside a live model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from ..errors import PositionTableError
from ..public import public
from .layouts import Weights, find_entry, is_table_name, rows_before, tensor_entry

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


@public(PositionTableError)
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
    weights = replace(open_model(model), call="name={!r}")
    entry = find_entry(weights, part, name)
    return PositionRows(entry.shown or entry.name, entry.read(), rows_before(weights, entry))


def open_model(model: nn.Module) -> Weights:
    """A model's parameters and buffers, as if they were a checkpoint's tensors, and its settings."""
    kinds = {name: type(module) for name, module in model.named_modules()}
    tables = [name for name, kind in kinds.items() if f"{kind.__module__}.{kind.__qualname__}" == LEARNED]
    looked_up = {name: module for name, module in model.named_modules() if isinstance(module, nn.Embedding)}
    tables += [""] if "" in looked_up else []
    config, source = getattr(model, "config", None), _called(model)
    # As timm's models say it.
    grids = (getattr(each, "grid_size", None) for each in model.modules())
    grid = next((each for each in grids if isinstance(each, tuple)), None)
    own = {"image_size": list(grid), "patch_size": 1} if grid else {}
    named = chain(model.named_parameters(remove_duplicate=False), model.named_buffers(remove_duplicate=False))
    entries = {}
    for name, it in named:
        path = name.rpartition(".")[0]
        shown = path if path in looked_up else ""
        entries[name] = tensor_entry(name, it, id(it), before=partial(_rows_before, model, name), shown=shown)
    return Weights(
        source,
        dict(config.to_dict()) if config is not None and hasattr(config, "to_dict") else own,
        entries,
        schemes=[f"{name}.weight".lstrip(".") for name in tables],
        widths={module.embedding_dim for module in looked_up.values()},
    )


def _called(model: nn.Module) -> str:
    """Its class, and its name on the hub: not the folder of a local one, for a printed result may be kept."""
    if isinstance(model, nn.Embedding):
        return f"Embedding{tuple(model.weight.shape)}"
    origin = getattr(getattr(model, "config", None), "name_or_path", None) or ""
    return f"{type(model).__name__} ({origin})" if origin and not Path(origin).is_dir() else type(model).__name__


def _rows_before(model: nn.Module, name: str) -> int:
    """How many rows stand before position 0, by what the module that looks the table up, or its owner, says."""
    path, _, last = name.rpartition(".")
    holder, around = model.get_submodule(path), model.get_submodule(path.rpartition(".")[0])
    if last == "weights":
        return _counted_from(holder)
    table, owner = (holder, around) if last == "weight" else (None, holder)
    offset, padding = getattr(table, "offset", None), getattr(table, "padding_idx", None)
    if padding is not None and (is_table_name(name) or not path):
        return offset or (0 if type(owner).__name__ in FROM_ROW_0 else padding + 1)
    position_ids = getattr(owner, "position_ids", None)
    if offset is None and isinstance(position_ids, Tensor) and position_ids.numel():
        return int(position_ids.min())
    return offset or 0


def _counted_from(sinusoid: Any) -> int:
    """Where fairseq's sinusoids, which models keep as a buffer, have position 0: after the padding's row."""
    padding = getattr(sinusoid, "padding_idx", None)
    if padding is None or "XGLM" in type(sinusoid).__name__:
        return getattr(sinusoid, "offset", None) or 0
    return int(padding) + 1
