"""Wrong exponent: the column stands where the formula has the pair.

Symptom: it trains, and nobody notices. Half of the columns hardly move, and
    no rotation takes one position to the next.
Hint: draw the table and look at its right half; or add the squares of
    columns 2i and 2i + 1.
Property: columns 2i and 2i + 1 are a point on the unit circle, and the
    exponents of the pairs go from 0 to just below 1 in equal steps, as in
    the paper; at odd widths too.
Report: jadore801120/attention-is-all-you-need-pytorch#32; that such a table
    still trains: harvardnlp/annotated-transformer#131. Odd widths crash:
    codertimo/BERT-pytorch#78
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
    for d in (32, 31):
        rows = candidate(64, d)
        sines, cosines = rows[:, 0::2], rows[:, 1::2]
        radius = sines[:, : d // 2] ** 2 + cosines**2
        why = f"at width {d} the squares of columns 2i and 2i + 1 do not add up"
        why += " to 1: is c // 2 the pair of column c in the exponent?"
        assert (radius - 1).abs().max() < 1e-4, why
        found, paper = -sines[1].asin().log10() / 4, torch.arange(0, d, 2) / d
        why = f"at width {d} pair 1 has exponent {found[1]:.3f}, not 2/{d}, and"
        why += f" the last {found[-1]:.3f}, not {paper[-1]:.3f}: divide 2i by d"
        assert torch.allclose(found, paper, atol=1e-3), why


def picture(candidate):
    """Show the table: row = position 0 to 63, column = column 0 to 63."""
    return candidate(64, 64)
