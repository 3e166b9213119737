"""The looks of the schemes, and the colours of signed numbers, as a style sheet and as constants of modules."""

from __future__ import annotations

import json

import numpy as np
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path

from ..figures import looks
from ..figures.looks import DASHES, LOOKS

# The book's, Colab's and JupyterLab's dark pages.
DARK = ('html[data-theme="dark"]', 'html[theme="dark"]', 'body[data-jp-theme-light="false"]')
# How wide a line with dashes is, in pixels.
WIDTH = 2
LETTERS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C", Path.CLOSEPOLY: "Z"}


def stylesheet() -> str:
    """Define each scheme's colour, and those of signed numbers, on light paper and on dark."""
    light = {"negative": looks.BELOW, "zero": looks.ZERO, "positive": looks.ABOVE}
    dark = {"negative": looks.BELOW_ON_DARK, "zero": looks.ZERO_ON_DARK, "positive": looks.ABOVE_ON_DARK}
    light |= {name: look.light for name, look in LOOKS.items()}
    dark |= {name: look.dark for name, look in LOOKS.items()}
    on_dark = ", ".join(f"{page} .pe-figure" for page in DARK)
    classes = "\n".join(f".pe-scheme-{name} {{ --pe-series: var(--pe-{name}); }}" for name in LOOKS)
    return (
        f".pe-figure {{ {_variables(light)} }}\n@media not print {{ {on_dark} {{ {_variables(dark)} }} }}\n{classes}\n"
    )


def constants() -> str:
    """Define the dashes and marks of the schemes, and the colours of pictures that are drawn once for any page."""
    schemes = {
        name: {"dash": " ".join(f"{WIDTH * each:g}" for each in DASHES[look.dash]) or "none", "mark": mark(look.marker)}
        for name, look in LOOKS.items()
    }
    colours = [[int(each[k : k + 2], 16) for k in (1, 3, 5)] for each in (looks.BELOW_ON_BOTH, looks.ABOVE_ON_BOTH)]
    return f"const LOOKS = {json.dumps(schemes)};\nconst [BELOW, ABOVE] = {json.dumps(colours)};\n"


def mark(marker: str) -> str:
    """A marker of matplotlib as the outline of a path, of the size of a circle of radius 1."""
    style = MarkerStyle(marker)
    outline = style.get_path().transformed(style.get_transform())
    # Upside down: pages count y from above. Markers are 1 wide.
    steps = [((2 * np.reshape(points, (-1, 2)) * [1, -1]).round(3), code) for points, code in outline.iter_segments()]
    return "".join(
        # Adding zero turns minus zero into zero.
        LETTERS[code] + ("" if code == Path.CLOSEPOLY else " ".join(f"{each + 0.0:g}" for each in points.flat))
        for points, code in steps
    )


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--pe-{name}: {colour};" for name, colour in colours.items())
