"""Find the position table inside a live model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from ..errors import PositionTableError

# What the models of transformers call an absolute position table.
TABLE_NAMES = frozenset(
    {
        "embed_positions",  # BART, OPT, Whisper
        "pos_emb",
        "pos_embed",
        "position_embedding",  # CLIP
        "position_embedding_table",
        "position_embeddings",  # BERT, RoBERTa, ViT
        "positional_embedding",
        "positions_embed",  # GPT
        "wpe",  # GPT-2
    }
)

# Tables that rotate queries and keys and are not added to anything.
ROTATING_TABLES = frozenset({"RoFormerSinusoidalPositionalEmbedding"})

# What a model without a table has instead, by a part of the name of one of its modules, parameters or buffers.
INSTEAD = {
    "rotary": "rotary embeddings (RoPE)",
    "attn.embed_positions": "rotary embeddings (RoPE)",  # GPT-J's and CodeGen's angles
    "relative_attention_bias": "a learned bias for each relative distance (T5's kind)",
    "relative_position_bias": "a learned bias for each relative distance",
    "rel_pos": "relative positions inside its attention",
    "rel_embeddings": "relative positions inside its attention",
    "r_r_bias": "relative positions inside its attention (Transformer-XL's kind)",
}


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
    found = list(_tables(model))
    wanted = [table for table in found if part is None or part in table.name]
    if len(wanted) == 1:
        return wanted[0]
    names = ", ".join(table.name for table in found)
    kind = type(model).__name__
    if not found:
        raise PositionTableError(f"{kind} has no position table{_what_instead(model)}")
    if part is None:
        raise PositionTableError(f"{kind} has several position tables; choose with part= among: {names}")
    raise PositionTableError(f"part={part!r} fits {len(wanted)} of the position tables of {kind}: {names}")


def _tables(model: nn.Module) -> Iterator[PositionRows]:
    seen: set[int] = set()
    for path, module in model.named_modules():
        for name in sorted(TABLE_NAMES):
            value = getattr(module, name, None)
            parameter = value.weight if isinstance(value, nn.Embedding) else value
            if not isinstance(parameter, nn.Parameter) or type(value).__name__ in ROTATING_TABLES:
                continue
            if _is_table(parameter) and id(parameter) not in seen:
                seen.add(id(parameter))
                yield PositionRows(f"{path}.{name}".lstrip("."), parameter, _offset(module, value))


def _is_table(parameter: nn.Parameter) -> bool:
    return parameter.ndim == 2 or (parameter.ndim == 3 and parameter.shape[0] == 1)


def _offset(owner: nn.Module, table: Any) -> int:
    """Rows before position 0: named by the table, implied by its padding row, or counted in by its owner."""
    offset = getattr(table, "offset", None)
    if isinstance(offset, int):
        return offset
    padding_idx = getattr(table, "padding_idx", None)
    if padding_idx is not None:
        return padding_idx + 1
    position_ids = getattr(owner, "position_ids", None)
    return int(position_ids.min()) if isinstance(position_ids, Tensor) and position_ids.numel() else 0


def _what_instead(model: nn.Module) -> str:
    # ALiBi first: Falcon builds a rotary module even where its configuration says alibi.
    switched_on = bool(getattr(getattr(model, "config", None), "alibi", False))
    if switched_on or any("alibi_tensor" in name for name in dir(type(model))):
        return "; it has ALiBi's biases, computed from the distance"
    named = (model.named_modules(), model.named_parameters(), model.named_buffers())
    names = [name for kind in named for name, _ in kind]
    for pattern, description in INSTEAD.items():
        if any(pattern in name for name in names):
            return f"; it has {description}"
    kinds = {type(module).__name__ for module in model.modules()}
    if kinds & ROTATING_TABLES:
        return "; it has rotary embeddings (RoPE)"
    if any("Sinusoid" in kind for kind in kinds):
        return "; it adds a sinusoid that it computes, which is no table to change"
    return f"; none of its modules has one of the names {', '.join(sorted(TABLE_NAMES))}"
