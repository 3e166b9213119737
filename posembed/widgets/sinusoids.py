"""Figures 3 and 4: the sinusoidal table by width and base; pairs of columns that an offset turns, there and in RoPE."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from ..encodings import RoPE, sinusoidal
from ..errors import FigureInputError
from ..public import public
from .base import InteractiveFigure, html_table, rounded

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


VIEWS = {"offset": "sinusoids: an offset is a rotation", "rope": "RoPE: a query and a key"}
# A base that lets four pairs turn visibly.
D_MODEL, BASE = 8, 100.0
# All four pairs of its query and its key are long enough to be seen.
SEED = 43
FARTHEST = {"position": 40, "offset": 24, "query_position": 32, "key_position": 32, "shift": 100}


class RotationFigure(InteractiveFigure):
    """Turn pairs of columns like the hands of clocks, each at its own speed.

    One view turns row p of the sinusoidal table by an offset k, into row p + k. The other turns a query and a key by
    their positions, as RoPE does: their product stays when both shift together.

    Args:
        view: "offset" or "rope", the view at first.

    Raises:
        FigureInputError: another view.

    Example:
        >>> from posembed.widgets import RotationFigure
        >>> figure = RotationFigure(view="rope")
        >>> len(figure.query), len(figure.key)
        (8, 8)
    """

    module = "rotation.js"
    height = (1222, 807)

    @public(FigureInputError)
    def __init__(self, *, view: Literal["offset", "rope"] = "offset") -> None:
        generator = torch.Generator().manual_seed(SEED)
        query, key = (rounded(torch.randn(D_MODEL, generator=generator).tolist(), 2) for _ in range(2))
        super().__init__(
            view=view,
            views=VIEWS,
            farthest=FARTHEST,
            base=BASE,
            query=query,
            key=key,
            position=3,
            offset=5,
            query_position=9,
            key_position=3,
            shift=0,
        )

    def fallback_html(self) -> str:
        """Show the turned pairs of two rows, or the product of the query and the key at several places."""
        return self._offset_table() if self.view == "offset" else self._rope_table()

    def _offset_table(self) -> str:
        first, second = self.position, self.position + self.offset
        width = len(self.query)
        rows = sinusoidal(second + 1, width, base=self.base, dtype=torch.float64)
        turns = [self.offset * self.base ** (-2 * pair / width) for pair in range(width // 2)]
        return html_table(
            "an offset turns each pair (sin, cos) by an angle of its own, wherever it starts. Here:",
            ["pair", f"row {first}", f"turned by, at offset {self.offset}", f"row {second}"],
            [
                [str(pair), _words(rows[first], pair), f"{turn:.3f} rad", _words(rows[second], pair)]
                for pair, turn in enumerate(turns)
            ],
        )

    def _rope_table(self) -> str:
        m, n = self.query_position + self.shift, self.key_position + self.shift
        places = [(m, n), (m + 1, n + 1), (m + 10, n + 10), (m + 1, n), (m, n + 1)]
        return html_table(
            "the product of a query and a key that RoPE turns by their positions depends on the offset alone:",
            ["query at", "key at", "offset", "product"],
            [[str(m), str(n), str(n - m), f"{self._product(m, n):.3f}"] for m, n in places],
        )

    def _product(self, query_position: int, key_position: int) -> float:
        turn = RoPE(len(self.query), base=self.base, layout="interleaved").rotate
        vectors = torch.tensor([self.query, self.key], dtype=torch.float64)
        query, key = turn(vectors, torch.tensor([query_position, key_position]))
        return float(query @ key)


def _words(row: Tensor, pair: int) -> str:
    sine, cosine = row[2 * pair : 2 * pair + 2].tolist()
    return f"({sine:.3f}, {cosine:.3f})"
