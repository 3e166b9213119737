"""Values in the types that JSON has."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from .errors import SHOWN


def plain(value: Any) -> Any:
    """Return the same value in the types that JSON has; NaN and infinity, which it has not, become None.

    Args:
        value: numbers, texts, lists, mappings, records; arrays and tensors become lists.

    Example:
        >>> import numpy as np
        >>> from posembed.serialization import plain
        >>> plain({1: np.array([1.0, np.inf]), "rows": range(2)})
        {'1': [1.0, None], 'rows': [0, 1]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in value._asdict().items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(each) for each in value]
    return value


def in_short(record: Any) -> str:
    """A dataclass without what is long in it, for a notebook or a list.

    Example:
        >>> from posembed.serialization import in_short
        >>> from posembed.probing import BootstrapInterval
        >>> in_short(BootstrapInterval(0.5, 0.75, 0.95, 16))
        'BootstrapInterval(low=0.5, high=0.75, level=0.95, block=16)'
    """
    told = {field.name: repr(getattr(record, field.name)) for field in fields(record) if field.repr}
    short = [f"{name}={text if len(text) <= SHOWN else '...'}" for name, text in told.items()]
    return f"{type(record).__name__}({', '.join(short)})"


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, for ``object_pairs_hook``; of two entries of one name nobody says which is meant: a ValueError."""
    if len(made := dict(pairs)) < len(pairs):
        raise ValueError("two entries have one name")
    return made


class Record:
    """What results have in common: a dataclass that can be written as JSON, and shown without its arrays."""

    def __repr__(self) -> str:
        return in_short(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, text, lists and dictionaries, ready for JSON (NaN becomes None)."""
        return plain(self)
