"""Figure 3: the sinusoidal table, its wavelengths, and the dot products of its rows, by width and base."""

from __future__ import annotations

import math

import torch

from ..encodings import sinusoidal
from .base import InteractiveFigure, html_table

WIDTHS = [4, 8, 16, 32, 64, 128, 256, 512, 768]
BASES = [10.0, 100.0, 1000.0, 10000.0, 100000.0, 1000000.0]
# Pairs that the form without JavaScript has room for.
N_ROWS = 8


class SinusoidFigure(InteractiveFigure):
    """Change width, base and position, and see the table, a row, the wavelengths and the dot products of rows.

    Example:
        >>> from posembed.widgets import SinusoidFigure
        >>> SinusoidFigure().widths
        [4, 8, 16, 32, 64, 128, 256, 512, 768]
    """

    module = "sinusoids.js"
    height = (1272, 737)

    def __init__(self) -> None:
        super().__init__(d_model=64, base=10000.0, position=20, n_positions=128, widths=WIDTHS, bases=BASES)

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
