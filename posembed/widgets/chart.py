"""One chart for all figures of runs: series along an axis with their seeds and intervals, of a view that is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit

from ..figures.looks import signed
from ..stats import interval
from .base import InteractiveFigure, html_table, rounded

# Of a number behind the point, and of Student's quantiles.
DECIMALS = 5
# So many places stand in the table for readers without JavaScript.
MOST_COLUMNS = 6
# Of a view, where it says nothing else: its labels, one for each selector; what stands below it; the ends of its
# vertical axis, by default around what is on; named levels and places; what the curves beside are; the place that
# others are taken from in a column of their own; and a matrix for each place.
VIEW: dict[str, Any] = {
    "labels": [],
    "about": "",
    "reach": None,
    "levels": {},
    "marks": {},
    "besideName": "",
    "since": None,
    "digits": 2,
    "matrices": [],
}


class ChartFigure(InteractiveFigure):
    """See series along an axis, each of its seeds and the interval of their mean, in a view of the reader's choice.

    Args:
        title: of the figure, which must differ from those of others on its page.
        views: each has its places "x", numbers in rising order or names, "xlabel", "ylabel" and "series" of
            `chart_series`, and what of `VIEW` is other than there.
        selectors: the names of the labels that views are chosen by.
        running: those of them that a reader can let run.
        labels: of the view that is shown first; by default those of the first.
        at: the number of the place that is read off at first.
        state: what else the module reads.
    """

    module = "chart.js"

    def __init__(
        self,
        title: str,
        views: Sequence[Mapping[str, Any]],
        *,
        selectors: Sequence[str] = (),
        running: Sequence[str] = (),
        labels: Sequence[str] | None = None,
        at: int = 0,
        **state: Any,
    ) -> None:
        whole = [VIEW | dict(view) for view in views]
        n_seeds = max(len(each["seeds"]) for view in whole for each in view["series"])
        settings: dict[str, Any] = {
            "note": "Means over seeds with their 95\u00a0% intervals.",
            "minus": "",
            "minusOf": [],
            "off": [],
            "singles": False,
            "seedNames": [],
            "besides": "",
            "small": False,
            "guess": "",
            "hidden": "",
            "drawn": [],
            "query": 0,
        }
        super().__init__(
            title=title,
            views=whole,
            quantiles=[0, 0, *stdtrit(np.arange(1, n_seeds), 0.975).round(DECIMALS).tolist()],
            selectors=[{"name": name, "runs": name in running} for name in selectors],
            view=[view["labels"] for view in whole].index(list(labels)) if labels else 0,
            at=at,
            seeds=list(range(n_seeds)),
            beside=True,
            **settings | state,
        )

    def fallback_html(self) -> str:
        """Show mean and interval of each series at up to six places, of all views that share the last label."""
        now, several = self.views[self.view], len(self.selectors) > 1
        views = [view for view in self.views if not several or view["labels"][-1] == now["labels"][-1]]
        alike = all(view["x"] == now["x"] for view in views)
        return html_table(
            f"{self.title}. {now['ylabel']}, mean over seeds with 95 % interval, by {now['xlabel']}. {now['about']}",
            [*(each["name"] for each in self.selectors), "", *(f"{now['x'][k]}" if alike else "" for k in _some(now))],
            [
                [*view["labels"], ": ".join((*filter(None, [series.get("panel")]), series["name"]))]
                + [("" if alike else f"{view['x'][k]}: ") + _words(series, k, view["digits"]) for k in _some(view)]
                for view in views
                for series in view["series"]
            ],
        )


def chart_series(name: str, seeds: Iterable[Any], *, scheme: str = "", **more: Any) -> dict[str, Any]:
    """A series of a view.

    Args:
        name: as it is written.
        seeds: for each seed, numbers by place, with NaN where one was not run; or None.
        scheme: whose look it has.
        more: numbers "beside" it, evenly spread over the axis, and the "chance" of a constant guess.
    """
    numbers = {key: rounded(value, DECIMALS) for key, value in more.items() if value is not None}
    return {"name": name, "scheme": scheme, "seeds": [rounded(each, DECIMALS) for each in seeds]} | numbers


def by_seed(runs: Iterable[Any], seeds: Sequence[int], measure: Any) -> list[Any]:
    """What is measured of the run with each of these seeds; None where there is none."""
    found = {run.config.seed: measure(run) for run in runs}
    return [found.get(seed) for seed in seeds]


def _some(view: Mapping[str, Any]) -> list[int]:
    """Up to six places, with the first and the last."""
    n = len(view["x"])
    return [round(each) for each in np.linspace(0, n - 1, min(n, MOST_COLUMNS))]


def _words(series: Mapping[str, Any], place: int, digits: int) -> str:
    found = [line[place] for line in series["seeds"] if line and line[place] is not None]
    if len(found) < 2:
        return f"{found[0]:.{digits}f}" if found else ""
    ends = interval(found)
    mean, low, high = (signed(f"{round(each, digits) + 0.0:.{digits}f}") for each in (ends.mean, ends.low, ends.high))
    return f"{mean} ({low} to {high})"
