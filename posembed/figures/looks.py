"""How each scheme looks in every figure, static or interactive: one colour, one dash, one marker."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import UInt8
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb

# By matplotlib's names: how long lines and gaps are, in widths of the line.
DASHES: Mapping[str, tuple[float, ...]] = {"-": (), "--": (3.7, 1.6), "-.": (6.4, 1.6, 1.0, 1.6), ":": (1.0, 1.65)}
LINE_STYLES = tuple(DASHES)
MARKERS = ("o", "s", "^", "D", "v", "P")

# Of what is no scheme: Okabe and Ito's colours, which colour-blind readers can tell apart, and the hue of each.
HUES = {
    "#0072B2": "blue",
    "#D55E00": "vermilion",
    "#009E73": "green",
    "#CC79A7": "purple",
    "#56B4E9": "blue",
    "#E69F00": "orange",
}
COLOURS = tuple(HUES)
INK = "#1f2328"
# Paper, words, ticks, frames, grids and empty cells of figures on light paper, and what they are on dark.
ON_DARK = {
    "#ffffff": "#121212",
    "#24292f": "#e6edf3",
    "#57606a": "#9aa4ae",
    "#8c959f": "#768390",
    "#e4e7eb": "#2d333b",
    # Lighter than any number near zero, which is nearly black there.
    "#c9d1d9": "#9aa4b0",
    # The first two colours, which most figures of one pair have, as bright there as they are on light paper.
    "#0072b2": "#5aa9e6",
    "#d55e00": "#f0883e",
}
# Where a map has no number.
NOTHING = "#c9d1d9"
# Of a line on its paper.
LEAST_CONTRAST = 4.0
# How far a colour of 256 is from one of a map at most: in steps of red, green and blue together.
MOST_OFF_A_MAP = 20

# Signed numbers: below zero, at zero, above zero; on light paper, on dark, and where a picture is drawn once for both.
BELOW, ZERO, ABOVE = "#2c5fa8", "#f1f2f4", "#e66100"
BELOW_ON_DARK, ZERO_ON_DARK, ABOVE_ON_DARK = "#5c9ded", "#2a313a", "#f28e2b"
BELOW_ON_BOTH, ABOVE_ON_BOTH = "#3e7ac6", "#ea7010"
_TO_BELOW = ["#fafafb", "#a3bce0", BELOW, "#173a72"]
_TO_ABOVE = ["#fafafb", "#fbbd90", ABOVE, "#983900"]
# For numbers of both signs: nearly white at zero, blue below, orange above; on dark paper nearly black at zero.
DIVERGING = LinearSegmentedColormap.from_list("diverging", _TO_BELOW[:0:-1] + _TO_ABOVE)
DIVERGING_ON_DARK = LinearSegmentedColormap.from_list("diverging on dark", [BELOW_ON_DARK, ZERO_ON_DARK, ABOVE_ON_DARK])
# For numbers of one sign: the half of it that they have.
SEQUENTIAL = LinearSegmentedColormap.from_list("sequential", _TO_ABOVE)
SEQUENTIAL_BELOW = LinearSegmentedColormap.from_list("sequential below zero", _TO_BELOW[::-1])


@dataclass(frozen=True)
class Look:
    """The look of a scheme.

    Args:
        hue: what its family has in common.
        light: its colour on light paper.
        dark: its colour on dark paper.
        dash: one of `DASHES`.
        marker: one of matplotlib's.
    """

    hue: str
    light: str
    dark: str
    dash: str
    marker: str


# A family has one hue; within it dashes and markers differ, and the shades a little. Two schemes with one dash are of
# two families, whose colours are told apart with any colour vision. What models most often have is a solid line.
LOOKS: Mapping[str, Look] = {
    "nopos": Look("ink", INK, "#e6edf3", "-", "o"),
    "learned": Look("blue", "#2f4db8", "#a3c3f1", "-", "s"),
    "sinusoidal": Look("blue", "#4a86d8", "#4d83d6", "--", "^"),
    "learnable_sinusoidal": Look("blue", "#1b3170", "#6fc3e6", "-.", ">"),
    "rope": Look("vermilion", "#a83a00", "#fd3e17", "-", "v"),
    "xpos": Look("vermilion", "#d9531e", "#ff9a76", "--", "<"),
    "alibi": Look("green", "#2a9483", "#40a76e", "-", "D"),
    "kerple": Look("green", "#0b5f52", "#6fd3bd", "--", "p"),
    "fire": Look("green", "#4f8f3c", "#a5cf5a", "-.", "h"),
    "t5": Look("purple", "#a968ea", "#b652fb", "-", "P"),
    "shaw": Look("purple", "#6a2c91", "#dcc2ff", "--", "X"),
    "cope": Look("orange", "#d07a00", "#fec632", "-", "*"),
    "forgetting": Look("rose", "#954d84", "#b75288", "-.", "d"),
    "pope": Look("vermilion", "#911008", "#f0c2c2", "-.", "H"),
}

# How the names of schemes are written.
WRITTEN = {
    **{"nopos": "NoPos", "shaw": "Shaw", "t5": "T5", "alibi": "ALiBi", "rope": "RoPE", "xpos": "xPos"},
    **{"kerple": "KERPLE", "fire": "FIRE", "cope": "CoPE", "learnable_sinusoidal": "learnable sinusoidal"},
    **{"p-rope": "p-RoPE", "pope": "PoPE"},
}

# What labels call a scheme beside its name, in lower case.
CALLED = {
    "no position": "nopos",
    "no positions": "nopos",
    "without positions": "nopos",
    "sinusoid": "sinusoidal",
    "sinusoids": "sinusoidal",
    "learnable sinusoids": "learnable_sinusoidal",
    "rotary": "rope",
}
_NAMES = CALLED | {name.replace("_", " "): name for name in LOOKS}
# The longest first: "learnable sinusoidal" is not sinusoidal.
_NAMED = re.compile(rf"(?<!\w)(?:{'|'.join(sorted(map(re.escape, _NAMES), key=len, reverse=True))})(?!\w)")


def written(label: str) -> str:
    """A label; where it begins with the name that code has for a scheme, as the scheme's name is written.

    Example:
        >>> from posembed.figures.looks import written
        >>> written("alibi"), written("rope, linear"), written("paper, nopos"), written("learned")
        ('ALiBi', 'RoPE, linear', 'paper, NoPos', 'learned')
    """
    return ", ".join(WRITTEN.get(part, part) for part in str(label).split(", "))


def signed(number: object) -> str:
    """Write a number with the sign that typesetters have for minus, as wide as a plus.

    Example:
        >>> from posembed.figures.looks import signed
        >>> signed(-0.5), signed(2)
        ('−0.5', '2')
    """
    return str(number).replace("-", "\u2212")


def look_of(label: str) -> Look | None:
    """The look of the one scheme that a label names; None where it names none, or several.

    Example:
        >>> from posembed.figures import look_of
        >>> look_of("ALiBi, head 1").marker, look_of("NoPos minus learned")
        ('D', None)
    """
    found = named(label)
    return LOOKS[found] if found else None


def named(label: str) -> str | None:
    """The one scheme that a label names, of those that have a look.

    Example:
        >>> from posembed.figures.looks import named
        >>> named("a learned table"), named("learnable sinusoidal"), named("a constant guess")
        ('learned', 'learnable_sinusoidal', None)
    """
    found = {_NAMES[each] for each in _NAMED.findall(str(label).lower().replace("_", " "))}
    return found.pop() if len(found) == 1 else None


def on_dark(colour: str) -> str:
    """What a colour of a figure on light paper is on dark: a scheme's own, or the same hue where it can be seen.

    Example:
        >>> from posembed.figures.looks import on_dark
        >>> on_dark("#2f4db8"), on_dark("#56B4E9"), on_dark("#0b1a3a")
        ('#a3c3f1', '#56b4e9', '#6d7689')
    """
    colour = colour.lower()
    known = ON_DARK | {look.light: look.dark for look in LOOKS.values()}
    known |= {_darker(look.light): _other_shade_on_dark(look.dark) for look in LOOKS.values()}
    if colour in known:
        return known[colour]
    # Mixed with white, as little as will do.
    mixed = (_mixed(colour, "#ffffff", part) for part in np.linspace(0, 1, 21))
    return next(each for each in mixed if _contrast_on_dark(each) >= LEAST_CONTRAST)


def cells_on_dark(cells: UInt8[np.ndarray, "*shape 3"]) -> UInt8[np.ndarray, "*shape 3"]:
    """Exchange the colours of a map on light paper, "... 3" as bytes, for those of the same numbers on dark.

    A colour that is on no map is exchanged as that of a line.

    Example:
        >>> import numpy as np
        >>> from posembed.figures.looks import cells_on_dark
        >>> cells_on_dark(np.array([[201, 209, 217]], dtype=np.uint8)).tolist()  # where there is no number
        [[154, 164, 176]]
    """
    light, dark = (each(np.linspace(0, 1, 511), bytes=True)[:, :3] for each in (DIVERGING, DIVERGING_ON_DARK))
    colours, which = np.unique(cells.reshape(-1, 3), axis=0, return_inverse=True)
    far = np.abs(colours[:, None].astype(int) - light).sum(-1)
    exchanged = dark[far.argmin(1)]
    for k in np.flatnonzero(far.min(1) > MOST_OFF_A_MAP):
        exchanged[k] = np.round(255 * np.array(to_rgb(on_dark(to_hex(colours[k] / 255)))))
    return exchanged[which.reshape(-1)].reshape(cells.shape)


def _other_shade_on_dark(colour: str) -> str:
    """Nearer to the paper, which keeps the hue, or to white where it could not be seen."""
    nearer = _mixed(colour, ON_DARK["#ffffff"], 0.4)
    return nearer if _contrast_on_dark(nearer) >= LEAST_CONTRAST else _mixed(colour, "#ffffff")


def _contrast_on_dark(colour: str) -> float:
    """Between a colour and dark paper (WCAG 2.2, contrast ratio)."""
    own, paper = (np.array(to_rgb(each)) for each in (colour, ON_DARK["#ffffff"]))
    linear = [np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) for c in (own, paper)]
    high, low = (float(each @ np.array([0.2126, 0.7152, 0.0722])) for each in linear)
    return (high + 0.05) / (low + 0.05)


def looks_of(labels: Iterable[str], schemes: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Colour, line and marker of the series of one figure, no two with the same colour and line.

    The first series of a scheme has its look, others of it the same hue in another shade and with another dash; what
    names no scheme has the colours of other series, without those whose hue a scheme of the figure has.

    Args:
        labels: of the series, in order.
        schemes: the schemes of labels that do not name them.

    Returns:
        For each label "color", "linestyle" and "marker", as matplotlib calls them.

    Example:
        >>> from posembed.figures.looks import looks_of
        >>> [look["color"] for look in looks_of(["a learned table", "a guess"])]
        ['#2f4db8', '#D55E00']
    """
    found = [named(label) or (schemes or {}).get(label) for label in labels]
    names = [name if name in LOOKS else None for name in found]
    taken: set[tuple[str, str]] = {(LOOKS[name].light, LOOKS[name].dash) for name in names if name}
    used = {LOOKS[name].hue for name in names if name}
    cycle = [colour for colour, hue in HUES.items() if hue not in used] or list(COLOURS)
    seen: list[str] = []
    styles: list[dict[str, Any]] = []
    for name in names:
        if name is None:
            n = len(styles) - len(seen)
            again, place = divmod(n, len(cycle))
            colour, dash = cycle[place], LINE_STYLES[(place + again) % len(LINE_STYLES)]
            marker = MARKERS[n % len(MARKERS)]
        else:
            look = LOOKS[name]
            colour, dash = (look.light, look.dash) if name not in seen else _variant(look, taken)
            marker = look.marker
            taken.add((colour, dash))
            seen.append(name)
        styles.append({"color": colour, "linestyle": dash, "marker": marker})
    return styles


def _variant(look: Look, taken: set[tuple[str, str]]) -> tuple[str, str]:
    """The next shade and dash of a scheme that are not taken; after eight they come again."""
    start = LINE_STYLES.index(look.dash)
    dashes: Sequence[str] = LINE_STYLES[start:] + LINE_STYLES[:start]
    shades = (look.light, _darker(look.light))
    # Shade and dash change at once, as long as there are new ones.
    variants = [(shades[(k + k // len(dashes)) % 2], dashes[k % len(dashes)]) for k in range(2 * len(dashes))]
    return next((each for each in variants if each not in taken), variants[0])


def _darker(colour: str) -> str:
    return _mixed(colour, "#0c0f12")


def _mixed(colour: str, other: str, part: float = 0.55) -> str:
    red, green, blue = (1 - part) * np.array(to_rgb(colour)) + part * np.array(to_rgb(other))
    return to_hex((red, green, blue))
