"""Figure 13: a picture of what broken code makes, wiped over to what mended code makes, and the line to blame."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import Any

import numpy as np
from PIL import Image

from ..errors import FigureInputError
from ..figures.looks import ABOVE_ON_BOTH, BELOW_ON_BOTH
from ..figures.looks import NOTHING as GREY
from ..public import public
from .base import InteractiveFigure, html_table

# A number is one byte: 254 steps from the least to the largest, and this where there is none.
STEPS, NOTHING = 254, 255
# So much of what differs is shown broken at first, and the rest mended beside it.
SHOWN = 0.75
# Letters of a line of code, pixels of the rest of the figure, and of all at least.
PHONE, WIDE = (42, 455, 0), (46, 113, 413)


class RepairFigure(InteractiveFigure):
    r"""Wipe from what broken code makes to what mended code makes, in one place; and find the line that is to blame.

    Args:
        title: of the code, which must differ from those of others on its page.
        broken: what it makes, "rows columns"; NaN where nothing came back.
        mended: what it makes mended, of the same shape.
        code: the broken and the mended code. Lines of the first that the other lacks are to blame.
        alt: what there is to see, for readers who cannot see it.
        rows: what the rows are.
        columns: what the columns are.
        first_row: the number of the first row.

    Raises:
        FigureInputError: maps that are no matrices of one shape, or that hold infinity or no number.

    Example:
        >>> from posembed.widgets import RepairFigure
        >>> code = "def f(x):\n    return x[0]", "def g(x):\n    return x[1]"
        >>> RepairFigure("the clock that stands still", [[0, 0]], [[0, 1]], code).lines
        [['def f(x):', False], ['    return x[0]', True]]
    """

    module = "repairs.js"

    @public(FigureInputError)
    def __init__(
        self,
        title: str,
        broken: Any,
        mended: Any,
        code: tuple[str, str],
        *,
        alt: str = "",
        rows: str = "row",
        columns: str = "column",
        first_row: int = 0,
    ) -> None:
        maps = [np.asarray(each, dtype=float) for each in (broken, mended)]
        if maps[0].ndim != 2 or maps[0].shape != maps[1].shape or np.isinf(maps).any() or np.isnan(maps).all():
            raise FigureInputError(
                f"{title!r} are no two matrices of one shape; give rows and columns, NaN for nothing"
            )
        most = float(f"{np.nanmax(np.abs(maps)):.4g}") or 1.0
        lines, kept = ([line for line in each.splitlines() if line.strip()] for each in code)
        packed = [_bytes(each, most) for each in maps]
        # The name of the function is no mistake.
        blamed = [[line, k > 0 and line not in kept] for k, line in enumerate(lines)]
        self.height = _height(lines, *PHONE), _height(lines, *WIDE)
        super().__init__(
            title=title,
            alt=alt,
            shape=list(maps[0].shape),
            most=most,
            maps=packed,
            lines=blamed,
            rows=rows,
            columns=columns,
            first_row=first_row,
            wipe=_start(packed, maps[0].shape[1]),
            line=-1,
        )

    def fallback_html(self) -> str:
        """Show both maps beside each other."""
        caption = f"{self.title}. Down: {self.rows}; across: {self.columns}. Orange above zero, blue below."
        alts = (escape(self.alt), "the same, mended")
        cells = "".join(
            f'<td><img alt="{alt}" style="width: 14rem; height: 14rem; image-rendering: pixelated" '
            f'src="data:image/png;base64,{_picture(packed, self.shape, self.most)}"/></td>'
            for alt, packed in zip(alts, self.maps, strict=True)
        )
        return html_table(caption, ["broken", "mended"], []).replace("<tbody>", f"<tbody><tr>{cells}</tr>")


def _height(lines: list[str], letters: int, rest: int, least: int) -> int:
    """Pixels of the whole figure: a line of code has 18 for each row of letters, and 24 at least, to be pressed."""
    return max(least, rest + sum(max(24, 18 * -(-len(line) // letters)) for line in lines))


def _bytes(array: np.ndarray, most: float) -> str:
    """Of each number the nearest step between minus and plus the largest."""
    steps = np.round((np.nan_to_num(array) / most + 1) / 2 * STEPS)
    return base64.b64encode(np.where(np.isnan(array), NOTHING, steps).astype(np.uint8).tobytes()).decode()


def _start(packed: list[str], n_columns: int) -> float:
    """The share of the columns that shows most of the bug; with two columns or more some are mended."""
    broken, mended = (np.frombuffer(base64.b64decode(each), np.uint8).reshape(-1, n_columns) for each in packed)
    differing = (broken != mended).sum(axis=0).cumsum()
    enough = int(np.searchsorted(differing, SHOWN * differing[-1])) + 1
    return max(1, min(enough, n_columns - 1)) / n_columns


def _picture(packed: str, shape: list[int], most: float) -> str:
    """A picture with a point for each number, as the module draws it: a PNG."""
    steps = np.frombuffer(base64.b64decode(packed), np.uint8).reshape(shape)
    signed = (steps / STEPS * 2 - 1)[..., None]
    blue, orange, grey = (
        np.frombuffer(bytes.fromhex(each[1:]), np.uint8) for each in (BELOW_ON_BOTH, ABOVE_ON_BOTH, GREY)
    )
    colours = np.concatenate([np.where(signed < 0, blue, orange), 255 * np.abs(signed).clip(0, 1)], -1)
    colours[steps == NOTHING] = [*grey, 230]
    file = io.BytesIO()
    Image.fromarray(colours.astype(np.uint8)).save(file, "png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()
