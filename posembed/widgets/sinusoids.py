"""Figure 3: the sinusoidal table, its wavelengths, and the dot products of its rows, by width and base."""

from __future__ import annotations

import math
from typing import Any

import torch
import traitlets

from ..encodings import sinusoidal
from ..errors import FigureInputError
from .base import InteractiveFigure, html_table

WIDTHS = [4, 8, 16, 32, 64, 128, 256, 512, 768]
BASES = [10.0, 100.0, 1000.0, 10000.0, 100000.0, 1000000.0]
# What a phone draws at once while a slider moves.
WIDEST, MOST_POSITIONS = 1024, 512
# Pairs that the form without JavaScript has room for.
N_ROWS = 8


class SinusoidFigure(InteractiveFigure):
    """Change width, base and position, and see the table, a row, the wavelengths and the dot products of rows.

    Args:
        d_model: the width at first: even, and at most 1024. It joins the widths that the slider offers.
        base: the base at first: above 1. It joins the bases that the slider offers.
        n_positions: how many rows to draw, 2 to 512.
        position: the row that is picked out at first.

    Raises:
        FigureInputError: a size, base or position outside these.

    Example:
        >>> from posembed.widgets import SinusoidFigure
        >>> SinusoidFigure(d_model=96).widths
        [4, 8, 16, 32, 64, 96, 128, 256, 512, 768]
    """

    module = "sinusoids.js"

    d_model = traitlets.Int().tag(sync=True, figure=True)
    base = traitlets.Float().tag(sync=True, figure=True)
    position = traitlets.Int().tag(sync=True, figure=True)
    n_positions = traitlets.Int().tag(sync=True, figure=True)
    widths = traitlets.List(traitlets.Int()).tag(sync=True, figure=True)
    bases = traitlets.List(traitlets.Float()).tag(sync=True, figure=True)

    def __init__(
        self,
        *,
        d_model: int = 64,
        base: float = 10000.0,
        n_positions: int = 128,
        position: int = 20,
        **traits: Any,
    ) -> None:
        _check(d_model, base, n_positions, position)
        choices = {"widths": sorted({*WIDTHS, d_model}), "bases": sorted({*BASES, base})}
        super().__init__(d_model=d_model, base=base, n_positions=n_positions, position=position, **choices, **traits)

    def fallback_html(self) -> str:
        """Show some pairs of the table: how fast each turns, and what it is at the position."""
        caption = (
            "Interactive figure (needs JavaScript): the sinusoidal table by width and base. "
            f"Pairs of the table of width {self.d_model} with base {self.base:.12g}:"
        )
        header = [
            "columns",
            "wavelength in positions",
            f"sine in row {self.position}",
            f"cosine in row {self.position}",
        ]
        return html_table(caption, header, [self._pair(pair) for pair in _spread(self.d_model // 2, N_ROWS)])

    def _pair(self, pair: int) -> list[str]:
        row = sinusoidal(self.position + 1, self.d_model, base=self.base, dtype=torch.float64)[-1]
        wavelength = 2 * math.pi * self.base ** (2 * pair / self.d_model)
        sine, cosine = row[2 * pair : 2 * pair + 2].tolist()
        return [f"{2 * pair} and {2 * pair + 1}", f"{wavelength:.2f}", f"{sine:.4f}", f"{cosine:.4f}"]


def _spread(n: int, most: int) -> list[int]:
    """At most so many of n numbers, evenly, with the first and the last."""
    kept = min(n, most)
    return sorted({round(k * (n - 1) / max(kept - 1, 1)) for k in range(kept)})


def _check(d_model: int, base: float, n_positions: int, position: int) -> None:
    if d_model % 2 or not 2 <= d_model <= WIDEST:
        raise FigureInputError(
            f"d_model is {d_model}; the figure draws pairs of columns: give an even width up to {WIDEST}"
        )
    if not 1 < base < math.inf:
        raise FigureInputError(f"base is {base}; give a number above 1, such as 10000")
    if not 2 <= n_positions <= MOST_POSITIONS:
        raise FigureInputError(f"n_positions is {n_positions}; the figure draws 2 to {MOST_POSITIONS} rows")
    if not 0 <= position < n_positions:
        raise FigureInputError(f"position is {position}; the table's rows are 0 to {n_positions - 1}")
