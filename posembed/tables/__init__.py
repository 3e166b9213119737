"""Position tables: where a model keeps one, and what happens when it is changed."""

from .locate import PositionRows, find_position_rows
from .replace import with_position_table

__all__ = ["PositionRows", "find_position_rows", "with_position_table"]
