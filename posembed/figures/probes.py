"""What a probe reads off a position table, row by row and region by region."""

from __future__ import annotations

import numpy as np

from ..errors import FigureInputError
from ..probing import ProbeResult, constant_guess
from ..public import public
from .looks import COLOURS
from .style import DescribedFigure, new_figure, styled

# How far beyond the table, in tables, a prediction is drawn where it is.
MARGIN = 0.25


@public(FigureInputError)
@styled
def probe_scatter(
    result: ProbeResult, *, alt: str | None = None, size: tuple[float, float] = (4.8, 3.8)
) -> DescribedFigure:
    """Draw the position that a probe predicts for each row it was tested on, against the true one.

    The title names the probe, the split, the error and that of a constant guess, which is a dashed line. Predictions
    far outside the table are drawn as triangles at the edge, and counted.

    Args:
        result: from `posembed.probe_table`.
        alt: the description; by default one of what is drawn, in words and numbers.
        size: width and height in inches.

    Returns:
        The figure, with a point for each row, the line on which a perfect probe lies, and that of a constant guess.

    Raises:
        FigureInputError: what is no result.

    Example:
        >>> from posembed import probe_table, sinusoidal
        >>> from posembed.figures import probe_scatter
        >>> figure = probe_scatter(probe_table(sinusoidal(64, 32)), alt="Points on the diagonal.")
        >>> figure.axes[0].get_xlabel()
        'true position'
    """
    true, predicted = np.asarray(result.positions, dtype=float), np.asarray(result.predictions, dtype=float)
    rows = np.concatenate([result.positions, result.train_positions]).astype(float)
    first, last = rows.min(), rows.max()
    reach = MARGIN * (last - first) or 1.0
    low, high = first - reach, last + reach
    figure, axes = new_figure(alt, size=size)
    axes.plot([first, last], [first, last], color="#8c959f", linewidth=1.2, label="exact")
    guess = constant_guess(np.asarray(result.train_positions))
    axes.axhline(guess, color="#57606a", linestyle="--", linewidth=1.2, label="constant guess")
    inside = (predicted >= low) & (predicted <= high)
    dots = {"linestyle": "", "markersize": 2.6, "color": COLOURS[0], "alpha": 0.75}
    axes.plot(true[inside], predicted[inside], "o", **dots, label="tested row")
    for beyond, edge, marker in ((predicted > high, high, "^"), (predicted < low, low, "v")):
        if beyond.any():
            axes.plot(true[beyond], np.full(beyond.sum(), edge), marker, **dots | {"color": COLOURS[1]})
    axes.set_title(_title(result, int((~inside).sum())), fontsize=11, fontweight="normal")
    axes.set(
        xlabel="true position",
        ylabel="predicted position",
        xlim=(first - 0.1 * reach, last + 0.1 * reach),
        ylim=(low, high),
    )
    figure.legend(loc="outside upper center", ncols=3, columnspacing=1, handletextpad=0.4)
    return figure


def _title(result: ProbeResult, n_beyond: int) -> str:
    tested = "error" if result.held_out else "no test, error"
    found = f"{tested} {result.test_mae:.1f}, constant guess {result.baselines.constant:.0f}"
    beyond = f"\n{n_beyond} beyond the edge" if n_beyond else ""
    return f"{result.probe}, {result.split}: {found}{beyond}"
