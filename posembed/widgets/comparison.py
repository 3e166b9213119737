"""Figure 12: arms of a study along one axis, with seeds and intervals, and how far each is from the arm of choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..checks import check_choice
from ..errors import FigureInputError
from ..figures.looks import named, signed, written
from ..stats import interval
from .base import InteractiveFigure, html_table, rounded

DECIMALS = 4
# So many places stand in the table for readers without JavaScript.
MOST_COLUMNS = 6

# Of each place: mean and ends of the interval; none where fewer than two seeds were run.
Ends = list[list[float] | None]


class ComparisonFigure(InteractiveFigure):
    """Compare the arms of a study along one axis, and take one of them as zero.

    Differences are taken seed by seed, as `posembed.stats.difference` does, and their intervals are of these.

    Args:
        results: for each arm, by its name, numbers "seeds places", the same seeds in the same order; NaN where one was
            not run. A name that names one scheme has its colour, dash and mark, and is written as that is: "NoPos" for
            "nopos".
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
        >>> results = {"learned": [[1.6, 1.9], [1.7, 1.8]], "NoPos": [[2.9, 3.0], [2.9, 3.1]]}
        >>> figure = ComparisonFigure(results, title="Loss by rate", x=[15, 40], xlabel="hidden, %", ylabel="nats")
        >>> [round(each[0], 3) for each in figure.differences["learned"]["NoPos"]]
        [1.25, 1.2]
    """

    module = "comparison.js"
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
        arms = {name: _numbers(name, numbers, len(places)) for name, numbers in results.items()}
        if len({len(numbers) for numbers in arms.values()}) > 1:
            of = ", ".join(f"{name} {len(numbers)}" for name, numbers in arms.items())
            raise FigureInputError(f"the arms have different numbers of seeds ({of}); give NaN where one was not run")
        if less is not None:
            check_choice("less", less, arms, FigureInputError)
        if len({*map(written, arms)}) < len(arms):
            raise FigureInputError(f"of {', '.join(arms)} two are written alike; give one of them another name")
        at = places[len(places) // 2] if at is None else at
        if at not in places:
            raise FigureInputError(f"at is {at!r}; choose one of the places, {places[0]!r} to {places[-1]!r}")
        for name in shown or ():
            check_choice("shown", name, arms, FigureInputError)
        arms = {written(name): numbers for name, numbers in arms.items()}
        n_rows = (len(arms), -(-len(arms) // 2))
        phone, wide = (h + n * row for h, n, row in zip(self.height, n_rows, self.of_an_arm, strict=True))
        self.height = (phone, wide)
        super().__init__(
            title=title,
            x=places,
            xlabel=xlabel,
            ylabel=ylabel,
            marks=dict(marks or {}),
            series=[
                {
                    "name": name,
                    "scheme": named(name) or "",
                    "seeds": [[_stored(each) for each in seed] for seed in numbers.tolist()],
                    "ends": _ends(numbers),
                }
                for name, numbers in arms.items()
            ],
            differences={
                zero: {name: _ends(arms[name] - arms[zero]) for name in arms if name != zero} for zero in arms
            },
            less=written(less or ""),
            shown=list(arms if shown is None else map(written, shown)),
            at=places.index(at),
            singles=False,
        )

    def fallback_html(self) -> str:
        """Show the mean and interval of each arm, at up to six places."""
        picked = sorted({round(each) for each in np.linspace(0, len(self.x) - 1, min(len(self.x), MOST_COLUMNS))})
        return html_table(
            f"{self.title}. {self.ylabel}, mean over seeds with 95 % interval, by {self.xlabel}.",
            ["", *(f"{self.x[k]}" for k in picked)],
            [[each["name"], *(_words(each["ends"][k]) for k in picked)] for each in self.series],
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
    if array.ndim != 2 or array.shape[1] != n_places or len(array) < 2:
        raise FigureInputError(
            f"the numbers of {name!r} are not (seeds, {n_places} places) with two seeds or more; give a list of "
            f"{n_places} numbers for each seed, NaN where it was not run"
        )
    if np.isinf(array).any():
        raise FigureInputError(f"the numbers of {name!r} have an infinite one; leave that seed out, or give NaN")
    return array


def _ends(numbers: np.ndarray) -> Ends:
    found: Ends = []
    for values in numbers.T:
        run = values[~np.isnan(values)].tolist()
        ends = interval(run) if len(run) > 1 else None
        found.append(None if ends is None else rounded([ends.mean, ends.low, ends.high], DECIMALS))
    return found


def _stored(value: float) -> float | None:
    return None if np.isnan(value) else rounded(value, DECIMALS)


def _words(ends: list[float] | None) -> str:
    if ends is None:
        return ""
    mean, low, high = (signed(f"{each:.3f}") for each in ends)
    return f"{mean} ({low} to {high})"
