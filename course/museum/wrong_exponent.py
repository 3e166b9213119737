"""Wrong exponent: the column stands where the formula has the pair.

Symptom: it trains, and nobody notices. Half of the columns hardly move, and
    no rotation takes one position to the next.
Hint: draw the table and look at its right half; or add the squares of
    columns 2i and 2i + 1.
Property: columns 2i and 2i + 1 are a point on the unit circle, and the
    exponents of the pairs go from 0 to just below 1 in equal steps, as in
    the paper.
Report: jadore801120/attention-is-all-you-need-pytorch#32; that such a table
    still trains: harvardnlp/annotated-transformer#131
"""

import torch
from torch import Tensor


def broken(n_positions: int, d_model: int) -> Tensor:
    """Make the sinusoidal table, (positions, d_model)."""
    column = torch.arange(d_model)
    exponents = 2 * column / d_model
    angles = torch.arange(n_positions)[:, None] / 10000.0**exponents
    return torch.where(column % 2 == 0, angles.sin(), angles.cos())


def mended(n_positions: int, d_model: int) -> Tensor:
    """Make the sinusoidal table, (positions, d_model)."""
    column = torch.arange(d_model)
    exponents = 2 * (column // 2) / d_model
    angles = torch.arange(n_positions)[:, None] / 10000.0**exponents
    return torch.where(column % 2 == 0, angles.sin(), angles.cos())


def check(candidate):
    """Assert that pairs stay on the circle and slow down in equal steps."""
    sines, cosines = candidate(64, 32).unflatten(1, (16, 2)).unbind(2)
    assert (sines**2 + cosines**2 - 1).abs().max() < 1e-4, (
        "the squares of columns 2i and 2i + 1 do not add up to 1: does each "
        "column have an exponent of its own? Use 2 * (column // 2) for both"
    )
    exponents = -torch.atan2(sines[1], cosines[1]).log10() / 4
    assert torch.allclose(exponents, torch.arange(16) / 16, atol=1e-3), (
        f"the exponents of the pairs end at {exponents[-1]:.3f}, not 15/16: "
        "is 2i doubled twice, or not at all? In the paper pair i has 2i / d"
    )


def picture(candidate):
    """Show the table: row = position 0 to 63, column = column 0 to 63."""
    return candidate(64, 64)
