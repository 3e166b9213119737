"""Find the position table inside a live model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from ..errors import PositionTableError
from ._instead import ALIBI, ROPE, SINUSOID, instead_by_name
from ._names import TABLE_NAMES, is_of_part, is_table_name

# Tables that rotate queries and keys and are not added to anything.
ROTATING_TABLES = frozenset({"RoFormerSinusoidalPositionalEmbedding"})
# Modules whose positions begin at row 0 although that is the table's padding row.
FROM_ROW_0 = frozenset({"LxmertEmbeddings"})
# A module that is a table itself.
LEARNED = "posembed.encodings.learned.Learned"


@dataclass(frozen=True)
class PositionRows:
    """A model's position table and where its real positions begin.

    Attributes:
        name: the qualified name of the table in the model.
        parameter: the whole table, "n_rows d_model" or "1 n_rows d_model".
        offset: how many rows stand before position 0 (2 in RoBERTa, OPT and BART, else mostly 0).
    """

    name: str
    parameter: nn.Parameter
    offset: int

    @property
    def rows(self) -> Float[Tensor, "n_positions d_model"]:
        """A view of the real positions, row p for position p, that shares the model's memory."""
        matrix = self.parameter[0] if self.parameter.ndim == 3 else self.parameter
        return matrix[self.offset :]


def find_position_rows(model: nn.Module, *, part: str | None = None) -> PositionRows:
    """Find the one learned or stored position table of a model.

    Args:
        model: a transformers model, or any module that uses one of the usual names.
        part: for models with several tables, a part of the name of the wanted one: "encoder", "decoder", "text",
            "vision".

    Returns:
        The table with its offset.

    Raises:
        PositionTableError: no table, or several and `part` does not single one out.

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
    found = list(position_rows(model))
    wanted = [table for table in found if part is None or is_of_part(table.name, part)]
    if len(wanted) == 1:
        return wanted[0]
    names = ", ".join(table.name for table in found)
    kind = type(model).__name__
    if not found:
        raise PositionTableError(f"{kind} has no position table{_what_instead(model)}")
    if part is None:
        raise PositionTableError(f"{kind} has several position tables; choose with part= among: {names}")
    raise PositionTableError(f"part={part!r} fits {len(wanted)} of the position tables of {kind}: {names}")


def position_rows(model: nn.Module) -> Iterator[PositionRows]:
    """Yield every position table of a model once, in the order of its modules.

    Example:
        >>> from transformers import WhisperConfig, WhisperModel
        >>> from posembed.tables.locate import position_rows
        >>> sizes = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1}
        >>> whisper = WhisperModel(WhisperConfig(**sizes, encoder_attention_heads=2, decoder_attention_heads=2))
        >>> [table.name for table in position_rows(whisper)]
        ['encoder.embed_positions', 'decoder.embed_positions']
    """
    seen: set[int] = set()
    for path, module in model.named_modules():
        for name, value in _values(path, module):
            parameter = value.weight if isinstance(value, nn.Embedding) else value
            if isinstance(parameter, nn.Parameter) and _is_table(parameter) and id(parameter) not in seen:
                seen.add(id(parameter))
                yield PositionRows(name, parameter, _offset(module, value))


def _values(path: str, module: nn.Module) -> Iterator[tuple[str, Any]]:
    """Yield what a module holds under the names of position tables, with its qualified name."""
    if f"{type(module).__module__}.{type(module).__qualname__}" == LEARNED:
        yield f"{path}.weight".lstrip("."), module.weight
    for name in sorted(TABLE_NAMES):
        value, full = getattr(module, name, None), f"{path}.{name}".lstrip(".")
        if value is not None and is_table_name(full) and type(value).__name__ not in ROTATING_TABLES:
            yield full, value


def _is_table(parameter: nn.Parameter) -> bool:
    return parameter.ndim == 2 or (parameter.ndim == 3 and parameter.shape[0] == 1)


def _offset(owner: nn.Module, table: Any) -> int:
    """Rows before position 0: named by the table, implied by its padding row, or counted in by its owner."""
    offset = getattr(table, "offset", None)
    if isinstance(offset, int):
        return offset
    if type(owner).__name__ in FROM_ROW_0:
        return 0
    padding_idx = getattr(table, "padding_idx", None)
    if padding_idx is not None:
        return padding_idx + 1
    position_ids = getattr(owner, "position_ids", None)
    if not isinstance(position_ids, Tensor) or not position_ids.numel():
        return 0
    if position_ids.is_meta:
        raise PositionTableError(
            f"{type(owner).__name__} is on the meta device, which holds no numbers; load the model's weights first"
        )
    return int(position_ids.min())


def _what_instead(model: nn.Module) -> str:
    # ALiBi first: Falcon builds a rotary module even where its configuration says alibi.
    switched_on = bool(getattr(getattr(model, "config", None), "alibi", False))
    if switched_on or any("alibi_tensor" in name for name in dir(type(model))):
        return f"; it has {ALIBI}"
    named = (model.named_modules(), model.named_parameters(), model.named_buffers())
    what = instead_by_name(name for kind in named for name, _ in kind)
    if what:
        return f"; it has {what}"
    kinds = {type(module).__name__ for module in model.modules()}
    if kinds & ROTATING_TABLES:
        return f"; it has {ROPE}"
    if any("Sinusoid" in kind for kind in kinds):
        return f"; it adds {SINUSOID}"
    return f"; none of its modules has one of the names {', '.join(sorted(TABLE_NAMES))}"
