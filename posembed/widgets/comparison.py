"""Figure 12: arms of a study along one axis, with seeds and intervals, and how far each is from the arm of choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..errors import FigureInputError
from ..figures.looks import named, written
from .chart import ChartFigure, chart_series


class ComparisonFigure(ChartFigure):
    """Compare the arms of a study along one axis, and take one of them as zero.

    Differences are taken seed by seed, as `posembed.stats.difference` does, and their intervals are of these.

    Args:
        results: for each arm, by its name, numbers "seeds places", of the same seeds in the same order, though an arm
            may have fewer; NaN where one was not run. A name that names one scheme has its colour, dash and mark, and
            is written as that is: "NoPos" for "nopos".
        title: of the figure, which must differ from those of others on its page.
        x: the places: numbers in rising order, which lines connect, or names, which they do not.
        xlabel: what the places are.
        ylabel: what the numbers are, with their unit.
        less: the arm that is taken away from all at first, and so is zero; None shows all as they are.
        at: the place that is read off at first; the one in the middle by default.
        shown: the arms that are switched on at first; all by default.
        marks: places of vertical lines, by their text.
        guess: the arm that a reader may draw before it is shown; by default all are shown at once.

    Raises:
        FigureInputError: places that do not rise, two arms that are written alike, numbers that do not fit the places
            or are of fewer than two seeds.

    Example:
        >>> from posembed.widgets import ComparisonFigure
        >>> results = {"learned": [[1.6, 1.9], [1.7, 1.8]], "nopos": [[2.9, 3.0], [2.9, 3.1]]}
        >>> figure = ComparisonFigure(results, title="Loss by rate", x=[15, 40], xlabel="hidden, %", ylabel="nats")
        >>> [each["name"] for each in figure.views[0]["series"]]
        ['learned', 'NoPos']
    """

    # Without its arms, and for each of them, or of two beside each other.
    height = (495, 496)
    of_an_arm = (43, 37)

    def __init__(
        self,
        results: Mapping[str, Any],
        *,
        title: str,
        x: Sequence[float | int | str],
        xlabel: str,
        ylabel: str,
        less: str | None = None,
        at: float | int | str | None = None,
        shown: Sequence[str] | None = None,
        marks: Mapping[str, float | int] | None = None,
        guess: str | None = None,
    ) -> None:
        places = _places(x)
        names = {name: written(name) for name in results}
        if len({*names.values()}) < len(names):
            raise FigureInputError(f"of {', '.join(names)} two are written alike; give one of them another name")
        at = places[len(places) // 2] if at is None else at
        n_rows = (len(names), -(-len(names) // 2))
        phone, wide = (h + n * row for h, n, row in zip(self.height, n_rows, self.of_an_arm, strict=True))
        # What is drawn first has a row of controls.
        self.height = (phone + 80 * bool(guess), wide + 80 * bool(guess))
        series = [
            chart_series(names[arm], _numbers(arm, numbers, len(places)), scheme=named(arm) or "")
            for arm, numbers in results.items()
        ]
        view = {
            "x": places,
            "xlabel": xlabel,
            "ylabel": ylabel,
            "series": series,
            "marks": dict(marks or {}),
            "digits": 3,
        }
        super().__init__(
            title,
            [view],
            at=places.index(at),
            minus=names[less] if less else "",
            minusOf=list(names.values()),
            guess=names[guess] if guess else "",
            hidden=names[guess] if guess else "",
            off=[name for arm, name in names.items() if shown is not None and arm not in shown],
            note="Means over seeds with their 95\u00a0% intervals; differences are taken seed by seed.",
        )


def _places(x: Sequence[float | int | str]) -> list[Any]:
    """The places as they are drawn: names as they are, numbers as numbers of Python."""
    array = np.asarray(list(x))
    rises = array.dtype.kind == "U" or (array.dtype.kind in "iuf" and (np.diff(array) > 0).all())
    if not rises or len(array) < 2 or len({*array.tolist()}) < len(array):
        raise FigureInputError(f"x is {errors.shown(x)}; give two or more numbers that rise, or names, each once")
    return array.tolist()


def _numbers(name: str, numbers: Any, n_places: int) -> np.ndarray:
    array = np.asarray(numbers, dtype=float)
    if array.ndim != 2 or array.shape[1] != n_places or len(array) < 2 or np.isinf(array).any():
        raise FigureInputError(
            f"the numbers of {name!r} are not (seeds, {n_places} places) with two seeds or more; give for each seed a "
            f"list of {n_places} finite numbers, NaN where it was not run"
        )
    return array
