"""Refused by the room of position tables."""

import torch
from torch import nn

from posembed import load_table, with_position_table
from posembed.errors import PositionTableError
from posembed.tables import PositionTable, find_position_rows, resize_table, row_positions

TABLE = torch.ones(4, 2)


def position_table(weight, **more):
    return lambda: PositionTable(weight, name="wpe", offset=0, source="here", bytes_read=0, **more)


def loaded(source, **options):
    return PositionTableError, lambda: load_table(source, **options)


def placed(new, **options):
    model = nn.ModuleDict({"pos_emb": nn.Embedding(4, 2)}).half()
    return PositionTableError, lambda: with_position_table(model, new, **options).__enter__()


def resized(n_positions, **options):
    return PositionTableError, lambda: resize_table(TABLE, n_positions, **options)


CASES = {
    "a vector for a table": (*loaded(torch.ones(4)), "is no position table: that is a matrix"),
    "a table without rows": (*loaded(torch.ones(0, 3)), "and not empty"),
    "whole numbers, which may need a scale": (*loaded(TABLE.to(torch.int8)), "have no scale here"),
    "no row left behind the offset": (*loaded(TABLE, offset=4), "has 4 rows, so 4 cannot stand before position 0"),
    "an offset from the end": (*loaded(TABLE, offset=-1), "offset is -1; it must be a whole number of at least 0"),
    "an offset of True": (*loaded(TABLE, offset=True), "offset is True; it must be"),
    "a part of a tensor": (*loaded(TABLE, part="text"), "part='text' fits none"),
    "another tensor of a model than there is": (*loaded(nn.Linear(2, 2), name="wpe"), "holds no tensor 'wpe'"),
    "a number for a name": (*loaded(TABLE, name=3), "name is 3; give a text"),
    "what has no table": (*loaded(None), "a NoneType has no position table; give an id"),
    "a name where a model is meant": (PositionTableError, lambda: find_position_rows("gpt2"), "give a Module"),
    "a number for a part of a model": (*placed("zeroed", part=1), "part is 1; give a text, or None"),
    "a record without a name for its source": (
        PositionTableError,
        lambda: PositionTable(TABLE, name="wpe", offset=0, source=None, bytes_read=0),
        "source is None; give a text",
    ),
    "a record of halves": (PositionTableError, position_table(TABLE.half()), "not torch.float16 with the shape (4, 2)"),
    "a grid of other patches than rows": (
        PositionTableError,
        position_table(TABLE, grid=(2, 3)),
        "0 class tokens and a grid of (2, 3) patches are not 4 positions",
    ),
    "a new table of another shape, which would be broadcast": (*placed(torch.ones(1, 2)), "but pos_emb needs (4, 2)"),
    "a new table with NaN": (*placed(TABLE * torch.nan), "holds NaN or infinity"),
    "a new table of numbers that are too large for the model": (*placed(TABLE * 1e6), "too large for torch.float16"),
    "a new table of whole numbers": (*placed(TABLE.long()), "choose among zeroed, shuffled, or give"),
    "a new table as a list": (*placed(TABLE.tolist()), "table is"),
    "a word that is no table": (*placed("zero"), "table is 'zero'; choose among zeroed, shuffled"),
    "a seed that is none": (*placed("shuffled", seed=1.5), "seed is 1.5; it must be a whole number"),
    "one grid of two": (*resized(4, how="linear", old_grid=(2, 2)), "one grid is given without the other"),
    "a grid that the new rows do not fill": (
        *resized(9, how="bicubic", old_grid=(2, 2), new_grid=(2, 4)),
        "the new table has 9 rows, but a prefix of 0 and a grid of 2 by 4 are 8",
    ),
    "a table with nothing but its prefix": (*resized(1, how="tile", prefix=1), "1 rows, and 1 of them are the prefix"),
    "a curve through a line by two axes": (*resized(8, how="bicubic"), "bicubic needs two axes; give old_grid"),
    "a way to resize that nobody knows": (*resized(8, how="cubic"), "choose among repeat, tile, linear, bicubic"),
    "rows that go beyond the table": (ValueError, lambda: row_positions(9, 4), "goes beyond the table"),
    "rows that begin before the table": (ValueError, lambda: row_positions((-1, 3), 4), "holds no rows"),
}
