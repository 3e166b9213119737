"""Small pictures of letters, for a terminal."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

BLOCKS = " ▁▂▃▄▅▆▇█"
# For an output that cannot show blocks.
LETTERS = " .:-=+*#@"
UNKNOWN = "?"


def strip(
    values: Sequence[float | int],
    width: int,
    *,
    low: float | int,
    high: float | int,
    choose: Callable[..., Any] = max,
    plain: bool = False,
) -> str:
    """Draw numbers as a row of blocks, the higher the larger.

    Args:
        values: the numbers; NaN among others is passed over.
        width: the most blocks; where there are more numbers, several share one.
        low: the number of the lowest block. All above it are at least one step high.
        high: the number of the highest.
        choose: what stands for several numbers: their largest, or ``min`` where a low one is what matters.
        plain: whether to draw in ASCII.

    Returns:
        One line.

    Example:
        >>> from posembed.cli._pictures import strip
        >>> strip([1, 2, 3, 4], 4, low=0, high=4)
        '▂▄▆█'
        >>> strip([1, 2, 3, 4], 2, low=0, high=4, choose=min, plain=True)
        ':*'
    """
    width = min(width, len(values))
    bounds = [round(place * len(values) / width) for place in range(width + 1)]
    groups = [
        [value for value in values[start:stop] if not math.isnan(value)] for start, stop in itertools.pairwise(bounds)
    ]
    return "".join(_block(choose(group), low, high, plain) if group else UNKNOWN for group in groups)


def _block(value: float | int, low: float | int, high: float | int, plain: bool) -> str:
    steps = LETTERS if plain else BLOCKS
    part = (value - low) / (high - low) if high > low else 0.0
    # Up, so that what is little is not shown as nothing.
    return steps[min(len(steps) - 1, max(0, math.ceil(part * (len(steps) - 1) - 1e-9)))]


def bar(value: float | int, full: float | int, width: int, *, plain: bool = False) -> str:
    """Draw a number as a horizontal bar.

    Args:
        value: the number; NaN has no bar.
        full: the number whose bar has the whole width; a larger one ends in an arrow.
        width: letters.
        plain: whether to draw in ASCII.

    Returns:
        The bar, without spaces after it.

    Example:
        >>> from posembed.cli._pictures import bar
        >>> bar(0.5, 1, 8), bar(2, 1, 4), bar(0.01, 1, 8)
        ('████', '███>', '▏')
    """
    if math.isnan(value) or full <= 0 or value <= 0:
        return ""
    if value > full:
        return ("#" if plain else "█") * (width - 1) + ">"
    eighths = max(1, round(8 * width * value / full))
    whole, rest = divmod(eighths, 8)
    if plain:
        return "#" * max(1, round(eighths / 8))
    return "█" * whole + ("", *"▏▎▍▌▋▊▉")[rest]


def under(left: str, right: str, width: int) -> str:
    """Write the two ends of an axis below a picture.

    Example:
        >>> from posembed.cli._pictures import under
        >>> under("0", "1023", 12)
        '0       1023'
    """
    return left + right.rjust(width - len(left))
