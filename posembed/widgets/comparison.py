"""Figure 12: arms of a study along one axis, with seeds and intervals, and how far each is from the arm of choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..checks import check_choice
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

    Raises:
        FigureInputError: fewer than two arms, arms that do not fit the places or have fewer than two seeds, or choices
            that are not among them.

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
    remedy = "compare fewer arms, or at fewer places"

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
    ) -> None:
        places = _places(x)
        if not isinstance(results, Mapping) or len(results) < 2:
            raise FigureInputError(
                "results are not of two arms or more; give a mapping, such as {'learned': numbers, ...}"
            )
        names = [written(name) for name in results]
        if len({*names}) < len(names):
            raise FigureInputError(f"of {', '.join(results)} two are written alike; give one of them another name")
        for name in [*([] if less is None else [less]), *(shown or ())]:
            check_choice("less" if name == less else "shown", name, results, FigureInputError)
        at = places[len(places) // 2] if at is None else at
        if at not in places:
            raise FigureInputError(f"at is {at!r}; choose one of the places, {places[0]!r} to {places[-1]!r}")
        n_rows = (len(names), -(-len(names) // 2))
        phone, wide = (h + n * row for h, n, row in zip(self.height, n_rows, self.of_an_arm, strict=True))
        self.height = (phone, wide)
        series = [
            chart_series(name, _numbers(arm, numbers, len(places)), scheme=named(arm) or "")
            for name, (arm, numbers) in zip(names, results.items(), strict=True)
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
            minus=written(less or ""),
            minusOf=names,
            off=[name for name, arm in zip(names, results, strict=True) if shown is not None and arm not in shown],
            note="Means over seeds with their 95\u00a0% intervals; differences are taken seed by seed.",
        )


def _places(x: Sequence[float | int | str]) -> list[Any]:
    """The places as they are drawn: names as they are, numbers as numbers of Python."""
    if len(x) and all(isinstance(each, str) for each in x):
        places: list[Any] = list(x)
    else:
        try:
            places = [int(each) if float(each).is_integer() else float(each) for each in x]
        except (TypeError, ValueError):
            raise FigureInputError("x has what is neither a number nor a name; give the one or the other") from None
        if not np.isfinite(places).all() or places != sorted(places):
            raise FigureInputError("the numbers of x do not rise; give places in order, without NaN")
    if len(places) < 2 or len({*places}) < len(places):
        raise FigureInputError(f"x has {len({*places})} different places of {len(places)}; give two or more, each once")
    return places


def _numbers(name: str, numbers: Any, n_places: int) -> np.ndarray:
    try:
        array = np.asarray(numbers, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 2 or array.shape[1] != n_places or len(array) < 2 or np.isinf(array).any():
        raise FigureInputError(
            f"the numbers of {name!r} are not finite and (seeds, {n_places} places) with two seeds or more; give a list "
            f"of {n_places} numbers for each seed, NaN where it was not run"
        )
    return array
