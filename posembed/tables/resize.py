"""A position table for another number of positions, or for another grid of patches."""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from ..errors import PositionTableError
from ..public import Count, Whole, public


@public(PositionTableError)
def resize_table(
    table: Float[Tensor, "n_positions d_model"],
    n_positions: Count,
    *,
    how: Literal["repeat", "tile", "linear", "bicubic"],
    old_grid: tuple[Count, Count] | None = None,
    new_grid: tuple[Count, Count] | None = None,
    prefix: Whole = 0,
) -> Float[Tensor, "new_positions d_model"]:
    """Make a table of other length from the rows of one, by the ways in use.

    Args:
        table: its row p is for position p.
        n_positions: how many rows the new one has, the prefix among them.
        how: "repeat" stretches the table, so that neighbours get one row (torch's "nearest"); "tile" begins it anew
            where it ends, as Longformer's was made from RoBERTa's; "linear" (bilinear on a grid) and "bicubic" (on a
            grid only) stretch it smoothly, as `torch.nn.functional.interpolate` does with ``align_corners=False``: so
            ViT and DINOv2 take images of other sizes. Without ``antialias``: a smaller grid takes single points.
        old_grid: of a table of patches row by row: how many patches it is high and wide.
        new_grid: how many the new one is.
        prefix: how many rows at the front belong to no place and are kept: a class token, the rows before position 0.

    Returns:
        The new rows, in the format of the table, computed in float32 at least.

    Raises:
        PositionTableError: one grid without the other, a grid that the rows do not fill, no row left behind the prefix,
            an unknown way, "bicubic" without grids.

    Example:
        Give a BERT room for more tokens; its config follows, and all other weights are the same.

        >>> import torch
        >>> from transformers import BertConfig, BertModel
        >>> from posembed.tables import find_position_rows, resize_table
        >>> small = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        ...                    intermediate_size=8, max_position_embeddings=16)
        >>> model = BertModel(small).eval()
        >>> found = find_position_rows(model)
        >>> kept = found.offset  # rows before position 0, two of them in RoBERTa and OPT
        >>> rows = resize_table(found.parameter.detach(), 64 + kept, how="linear", prefix=kept)
        >>> weights = model.state_dict() | {found.name + ".weight": rows}
        >>> longer = BertModel(BertConfig(**small.to_dict() | {"max_position_embeddings": 64})).eval()
        >>> longer.load_state_dict(weights)
        <All keys matched successfully>
        >>> longer(torch.ones(1, 64, dtype=torch.long)).last_hidden_state.shape
        torch.Size([1, 64, 8])

        A ViT for images of 384 pixels from one for 224 has a class token and 24 by 24 patches, and its table an axis
        more at the front; the config's ``image_size`` follows.

        >>> resize_table(torch.zeros(197, 8), 577, how="bicubic", old_grid=(14, 14), new_grid=(24, 24), prefix=1).shape
        torch.Size([577, 8])
    """
    old, new = _sides(table, n_positions, old_grid, new_grid, prefix)
    if how == "bicubic" and len(old) == 1:
        raise PositionTableError("bicubic needs two axes; give old_grid and new_grid, or use linear")
    computed = torch.promote_types(table.dtype, torch.float32)
    image = table[prefix:].T.reshape(1, table.shape[1], *old).to(computed)
    if how in ("repeat", "tile"):
        for axis, (before, after) in enumerate(zip(old, new, strict=True), start=2):
            places = torch.arange(after, device=table.device)
            image = image.index_select(axis, places * before // after if how == "repeat" else places % before)
    else:
        mode = "bilinear" if how == "linear" and len(old) == 2 else how
        image = F.interpolate(image, size=new, mode=mode, align_corners=False)
    return torch.cat([table[:prefix], image[0].flatten(1).T.to(table.dtype)])


def _sides(
    table: Tensor,
    n_positions: int,
    old_grid: tuple[Count, Count] | None,
    new_grid: tuple[Count, Count] | None,
    prefix: int,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The lengths of the axes before and after, one without grids, checked to be filled by the rows."""
    if (old_grid is None) != (new_grid is None):
        raise PositionTableError("one grid is given without the other; give old_grid and new_grid")
    for rows, grid, what in ((len(table), old_grid, "the table"), (n_positions, new_grid, "the new table")):
        if rows <= prefix:
            raise PositionTableError(f"{what} has {rows} rows, and {prefix} of them are the prefix; none is left")
        if grid is not None and prefix + math.prod(grid) != rows:
            raise PositionTableError(
                f"{what} has {rows} rows, but a prefix of {prefix} and a grid of {grid[0]} by {grid[1]} are "
                f"{prefix + math.prod(grid)}"
            )
    return old_grid or (len(table) - prefix,), new_grid or (n_positions - prefix,)
