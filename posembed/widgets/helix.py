"""Figure 15: the rows of a table as points in space, which the reader turns."""

from __future__ import annotations

import math
from html import escape
from typing import Any

import numpy as np

from ..errors import FigureInputError
from ..figures.looks import signed
from ..public import public
from .base import InteractiveFigure, html_table, rounded

DECIMALS = 3
# In degrees: neither from the front nor from the side.
TURN = 36
# So many rows stand in the table for readers without JavaScript.
N_ROWS = 6


class HelixFigure(InteractiveFigure):
    """Turn the rows of a position table in space, and see circles, waves and the spring that both are views of.

    Args:
        title: of the figure, which must differ from those of others on its page.
        scores: "rows 3", such as those of the rows on their first three principal components.
        positions: of the rows, in their order.

    Raises:
        FigureInputError: no three finite numbers for each of two positions or more.

    Example:
        >>> from posembed import sinusoidal
        >>> from posembed.probing import spectrum
        >>> from posembed.widgets import HelixFigure
        >>> found = spectrum(sinusoidal(64, 16))
        >>> HelixFigure("The sinusoidal table", found.components[:, :3], found.positions).turn
        36
    """

    module = "helix.js"
    # On a phone 514 or 543: how a line of its words breaks is decided by a hair.
    height = (528, 477)

    @public(FigureInputError)
    def __init__(self, title: str, scores: Any, positions: Any) -> None:
        points, places = np.asarray(scores, dtype=float), np.asarray(positions)
        if points.shape != (len(places), 3) or len(places) < 2 or not np.isfinite(points).all():
            raise FigureInputError(
                f"the scores of {title!r} are {points.shape} for {len(places)} positions; give three finite numbers "
                "for each of two or more"
            )
        points = points - points.mean(axis=0)
        reach = np.linalg.norm(points, axis=1).max()
        super().__init__(
            title=title,
            points=rounded((points / (reach or 1)).tolist(), DECIMALS),
            positions=places.tolist(),
            turn=TURN,
        )

    def fallback_html(self) -> str:
        """Draw it as it stands, and list a few rows."""
        some = sorted({round(each) for each in np.linspace(0, len(self.positions) - 1, N_ROWS)})
        table = html_table(
            f"{self.title}: the rows as points in space, from the mean of all, in units of the farthest. Some of them:",
            ["position", *(f"component {k}" for k in (1, 2, 3))],
            [[f"{self.positions[k]}", *(signed(f"{value:.2f}") for value in self.points[k])] for k in some],
        )
        return self._picture() + table

    def _picture(self) -> str:
        angle, size = math.radians(self.turn), 130
        places = [(size * (1 + a * math.cos(angle) + c * math.sin(angle)), size * (1 - b)) for a, b, c in self.points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="currentColor"/>' for x, y in places)
        return (
            f'<svg role="img" aria-label="{escape(self.title)}" viewBox="-5 -5 270 270" style="width:18rem">'
            f'<polyline points="{line}" fill="none" stroke="currentColor"/>{dots}</svg>'
        )
