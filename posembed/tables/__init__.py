"""Position tables: of any checkpoint, and of a live model, where one can be put in another's place or made longer."""

from .live import PositionRows, find_position_rows
from .load import load_table
from .replace import with_position_table
from .resize import resize_table
from .table import PositionTable, RowChoice, check_finite_rows, row_positions

__all__ = [
    "PositionRows",
    "PositionTable",
    "RowChoice",
    "check_finite_rows",
    "find_position_rows",
    "load_table",
    "resize_table",
    "row_positions",
    "with_position_table",
]
