"""Figure 3: the sinusoidal table, its wavelengths, and the dot products of its rows, by width and base."""

from __future__ import annotations

import math

import torch

from ..encodings import sinusoidal
from ..errors import FigureInputError
from .base import InteractiveFigure, html_table

WIDTHS = [4, 8, 16, 32, 64, 128, 256, 512, 768]
BASES = [10.0, 100.0, 1000.0, 10000.0, 100000.0, 1000000.0]
# What a phone draws at once while a slider moves.
WIDEST = 1024
# Pairs that the form without JavaScript has room for.
N_ROWS = 8


class SinusoidFigure(InteractiveFigure):
    """Change width, base and position, and see the table, a row, the wavelengths and the dot products of rows.

    Args:
        d_model: the width at first: even, and at most 1024. It joins the widths that the slider offers.
        base: the base at first: above 1. It joins the bases that the slider offers.

    Raises:
        FigureInputError: a width or base outside these.

    Example:
        >>> from posembed.widgets import SinusoidFigure
        >>> SinusoidFigure(d_model=96).widths
        [4, 8, 16, 32, 64, 96, 128, 256, 512, 768]
    """

    module = "sinusoids.js"

    def __init__(self, *, d_model: int = 64, base: float = 10000.0) -> None:
        check_waves(d_model, base, WIDEST)
        super().__init__(
            d_model=d_model,
            base=float(base),
            position=20,
            n_positions=128,
            widths=sorted({*WIDTHS, d_model}),
            bases=sorted({*BASES, float(base)}),
        )

    def fallback_html(self) -> str:
        """Show some pairs of the table: how fast each turns, and what it is at the position."""
        n_pairs = self.d_model // 2
        last = max(min(n_pairs, N_ROWS) - 1, 1)
        # Spread evenly, with the first and the last.
        pairs = sorted({round(k * (n_pairs - 1) / last) for k in range(last + 1)})
        row = f"row {self.position}"
        return html_table(
            "the sinusoidal table by width and base. "
            f"Pairs of the table of width {self.d_model} with base {self.base:.12g}:",
            ["columns", "wavelength in positions", f"sine in {row}", f"cosine in {row}"],
            [self._pair(pair) for pair in pairs],
        )

    def _pair(self, pair: int) -> list[str]:
        row = sinusoidal(self.position + 1, self.d_model, base=self.base, dtype=torch.float64)[-1]
        wavelength = 2 * math.pi * self.base ** (2 * pair / self.d_model)
        sine, cosine = row[2 * pair : 2 * pair + 2].tolist()
        return [f"{2 * pair} and {2 * pair + 1}", f"{wavelength:.2f}", f"{sine:.4f}", f"{cosine:.4f}"]


def check_waves(d_model: int, base: float, widest: int) -> None:
    """Refuse a width or a base that has no pairs of columns to draw."""
    if d_model % 2 or not 2 <= d_model <= widest:
        raise FigureInputError(
            f"d_model is {d_model}; the figure draws pairs of columns: give an even width up to {widest}"
        )
    if not 1 < base < math.inf:
        raise FigureInputError(f"base is {base}; give a number above 1, such as 10000")
