"""Other grid: a table of patches is kept because its number of rows fits.

Symptom: a model takes images of another shape without a word, and patches
    get the rows of other places.
Hint: what does a table say of places, if its numbers are those of columns?
Property: a table that tells how far down and how far across a patch stands
    still tells it after it was stretched to another grid.
Report: huggingface/pytorch-image-models#2737; a grid one patch too small by
    rounding: facebookresearch/dinov2#378
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def broken(table: Tensor, old: tuple, new: tuple) -> Tensor:
    """Stretch a table from old rows and columns of patches to new ones."""
    if len(table) == new[0] * new[1]:
        return table
    image = table.T.unflatten(1, old)[None]
    return F.interpolate(image, new, mode="bilinear")[0].flatten(1).T


def mended(table: Tensor, old: tuple, new: tuple) -> Tensor:
    """Stretch a table from old rows and columns of patches to new ones."""
    if old == new:
        return table
    image = table.T.unflatten(1, old)[None]
    return F.interpolate(image, new, mode="bilinear")[0].flatten(1).T


def check(candidate):
    """Assert that down stays down and across stays across on other grids."""
    table = torch.cartesian_prod(torch.arange(4.0), torch.arange(16.0))
    for new in ((8, 8), (5, 16), (4, 16)):
        rows, n = candidate(table, (4, 16), new), new[0] * new[1]
        why = f"a grid of {new} got {len(rows)} rows: give it {n}"
        assert len(rows) == n, f"{why}, by the size and not by a factor"
        down, across = rows.T.unflatten(1, new)
        off = max(down.std(1).max(), across.std(0).max())
        why = f"on {new} a row of patches is no row: its places differ by"
        assert off < 1e-4, f"{why} {off:.1f}: compare grids, not their sizes"
        full = down[-1].min() - down[0].max() > 2, across[:, -1].min() > 13
        assert all(full), f"on {new} ends are lost: stretch, do not cut"


def picture(candidate):
    """Show how far across 8 x 8 patches stand by a table of 4 x 16."""
    across = torch.linspace(0, 1, 16).repeat(4)[:, None]
    return candidate(across, (4, 16), (8, 8)).view(8, 8)
