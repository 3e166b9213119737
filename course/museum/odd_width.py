"""Odd width: an odd d_model crashes, and two quick mends make another table.

Symptom: RuntimeError: "The expanded size of the tensor (3) must match the
    existing size (4)". Rounding the width up, or leaving a column zero, ends
    the crash and changes the encoding without a word.
Hint: count the columns 0::2 and 1::2 of a table that is 7 wide.
Property: at every width no column is constant, and pair 1 turns by
    10000^(-2 / d_model) from one position to the next.
Report: codertimo/BERT-pytorch#78; also zhouhaoyi/Informer2020#224
"""

import torch
from torch import Tensor


def broken(n_positions: int, d_model: int) -> Tensor:
    """Make the sinusoidal table, (positions, d_model)."""
    frequencies = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    angles = torch.arange(n_positions)[:, None] * frequencies
    table = torch.zeros(n_positions, d_model)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table


def mended(n_positions: int, d_model: int) -> Tensor:
    """Make the sinusoidal table, (positions, d_model)."""
    frequencies = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    angles = torch.arange(n_positions)[:, None] * frequencies
    table = torch.zeros(n_positions, d_model)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()[:, : d_model // 2]
    return table


def check(candidate):
    """Assert that widths 3 to 9 work and keep columns and exponents."""
    for width in range(3, 10):
        try:
            rows = candidate(64, width)
        except RuntimeError as error:
            why = f"width {width} crashes: keep d_model // 2 of the cosines"
            raise AssertionError(why) from error
        n, flat = rows.shape[1], int((rows.std(0) == 0).sum())
        why = f"width {width} has {n} columns, {flat} of them constant"
        assert n == width and not flat, f"{why}: fill {width}, with sines"
        power = float(-rows[1, 2].asin().log10() / 4)
        why = f"at width {width} pair 1 has exponent {power:.3f}, not 2/{width}"
        assert abs(power - 2 / width) < 1e-3, f"{why}: do not round d_model up"


def picture(candidate):
    """Show position 3: row = width 2 to 13, column = column; NaN = nothing."""
    image = torch.full((12, 13), torch.nan)
    for row, width in enumerate(range(2, 14)):
        try:
            image[row, :width] = candidate(8, width)[3]
        except RuntimeError:
            continue
    return image
