"""Figures 8, 9, 11 and 12, one chart of runs: series along an axis with their seeds and intervals, of a chosen view."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from .. import errors
from ..errors import FigureInputError
from ..figures.looks import named, signed, written
from ..similarity import perturbed_bias, properties_of_matrix
from ..stats import interval
from .base import InteractiveFigure, html_table, rounded

if TYPE_CHECKING:
    from ..training import RunResult

Arms = Mapping[str, Mapping[str, "Sequence[RunResult]"]]
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
# What is drawn of a run that was inspected, and its name there.
SHARES = {"position": "position", "token": "token"}
READ = {"position": "read position", "token": "read token", "token before": "read before"}
COST = "cost of shuffling position"
# Positions of a dosed bias.
LENGTH = 32


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
        FigureInputError: places that do not rise, two arms that are written alike, an arm that there is not, numbers
            that do not fit the places or are of fewer than two seeds.

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
        if other := {*(shown or ()), *filter(None, (less, guess))} - {*names}:
            raise FigureInputError(f"there is no arm {', '.join(map(repr, other))}; the arms are {', '.join(names)}")
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


class LayerErrorFigure(ChartFigure):
    """See which layers know positions: how far off a probe reads them, layer by layer.

    The axis is as high for models of each size, in units of the error of always guessing the middle: so that of the
    paper can stand beside them.

    Args:
        groups: for each group of models, the runs of each arm, by their names; probed with the inspection "layers", and
            those that were watched at some steps at each of them.
        paper: for each scheme the published errors by layer, as shares of that of always guessing the middle.
        source: of the published errors.
        shown: the arms that are switched on at first; all by default.

    Example:
        >>> from posembed import RunConfig, RunResult
        >>> from posembed.widgets import LayerErrorFigure
        >>> layers = {"mae": [20.0, 9.0, 3.0, 4.0, 8.0], "middle_guess": 16.0, "random_guess": 21.3}
        >>> runs = [RunResult(RunConfig(seed=seed), {"layers": layers}, {}, "", 1.0) for seed in (1, 2)]
        >>> LayerErrorFigure({"small": {"nopos": runs}}).views[0]["labels"]
        ['small: 4 layers, width 64', '2000 of 2000']
    """

    height = (971, 557)

    def __init__(
        self,
        groups: Arms,
        *,
        paper: Mapping[str, Sequence[float]] | None = None,
        source: str = "",
        shown: Sequence[str] | None = None,
    ) -> None:
        arms = [arm for of in groups.values() for arm in of]
        seeds = sorted({run.config.seed for of in groups.values() for runs in of.values() for run in runs})
        views = [view for name, of in groups.items() for view in _errors(name, of, seeds, paper or {})]
        first = [view["labels"] for view in views if view["labels"][0] == views[0]["labels"][0]]
        super().__init__(
            "Probe error by layer",
            views,
            selectors=["models", "steps"],
            running=["steps"],
            # The last step of the first models, at the layer in the middle.
            labels=first[-1],
            at=len(views[0]["x"]) // 2,
            singles=True,
            off=[] if shown is None else [written(arm) for arm in dict.fromkeys(arms) if arm not in shown],
            seedNames=seeds,
            besides="the paper’s curves" if paper else "",
            note="Thin lines: one seed each; thick: their mean."
            + (f" Dotted: {source}, at the same depth, where always the middle is as far off." if paper else ""),
        )


def _errors(name: str, arms: Mapping[str, Any], seeds: Sequence[int], paper: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The views of a group, one for each step at which all of its runs were probed."""
    config, guesses = (getattr(next(iter(arms.values()))[0], each) for each in ("config", "metrics"))
    middle, size = guesses["layers"]["middle_guess"], f"{config.n_layers} layers, width {config.d_model}"
    steps = sorted(set.intersection(*({*_probes(run)} for runs in arms.values() for run in runs)))
    return [
        {
            "labels": [f"{name}: {size}", f"{step} of {config.steps}" if step else "untrained"],
            "about": f"{config.objective.capitalize()} models of {size}, trained for {config.steps} steps on texts of "
            f"{config.length} characters. ",
            "x": list(range(config.n_layers + 1)),
            "xlabel": "layer",
            "ylabel": "error, positions",
            "reach": [0, 2 * middle],
            "levels": {
                f"always the middle: {middle:.1f}": middle,
                f"at random: {guesses['layers']['random_guess']:.1f}": guesses["layers"]["random_guess"],
            },
            "besideName": "paper" if paper else "",
            "series": [
                chart_series(
                    written(arm),
                    by_seed(runs, seeds, lambda run, step=step: _probes(run)[step]),
                    scheme=(scheme := runs[0].config.scheme),
                    beside=[share * middle for share in paper.get(scheme, [])] or None,
                )
                for arm, runs in arms.items()
            ],
        }
        for step in steps
    ]


def _probes(run: RunResult) -> dict[int, list[float]]:
    """The errors by layer, by the number of steps before them."""
    probed = {int(step): found["mae"] for step, found in run.metrics.get("watched", {}).items()}
    untrained = {0: run.metrics["untrained"]["mae"]} if "untrained" in run.metrics else {}
    return untrained | probed | {run.config.steps: run.metrics["layers"]["mae"]}


class DepthFigure(ChartFigure):
    """Move through the layers of a model: how much of its states is position and how much content, a panel an arm.

    Beside a trained model stands the one that its training began with, and one measure is what it costs to shuffle
    the position in the states of one layer, beside a change of the same size (`posembed.layers.ablate`).

    Args:
        models: for each model, the runs of each arm, by their names; inspected for "depth".

    Example:
        >>> from posembed import RunConfig, RunResult
        >>> from posembed.widgets import DepthFigure
        >>> names = ("position", "token", "read position", "read token", "read before")
        >>> its = {name: [0.5, 0.25] for name in names} | {f"{name}, chance": [0.1] for name in names}
        >>> its |= {"shuffle": [1.9, 0.1], "shuffle, control": [0.0, 0.0]}
        >>> run = RunResult(RunConfig(), {"depth": {"trained": its, "untrained": its}}, {}, "", 1.0)
        >>> [view["labels"][-1] for view in DepthFigure({"texts": {"learned": [run, run]}}).views]
        ['share of the variance', 'read from one state', 'cost of shuffling position']
    """

    height = (933, 731)

    def __init__(self, models: Arms) -> None:
        super().__init__(
            "Position and content by layer",
            [view for model, arms in models.items() for view in _inspected(model, arms)],
            selectors=["model", "measure"],
            labels=[next(iter(models)), "read from one state"],
            at=1,
            small=True,
            besides="dashed lines",
            note="Line and band: mean and 95\u00a0% interval over seeds.",
        )


def _inspected(model: str, arms: Mapping[str, Sequence[RunResult]]) -> list[dict[str, Any]]:
    """The views of a model, one for each measure, with a panel for each arm."""
    found = {arm: [_measures(run.metrics["depth"]) for run in runs] for arm, runs in arms.items()}
    n_layers = next(iter(arms.values()))[0].config.n_layers
    return [
        {
            "labels": [model, measure],
            "about": "Thin and dashed: "
            + ("a change of the same size. " if measure == COST else "the same models untrained. "),
            "x": list(range(n_layers + 1)),
            "xlabel": "state (0 enters the first layer)",
            "ylabel": "cost, nats" if measure == COST else measure,
            "reach": None if measure == COST else [0, 1],
            "besideName": "control" if measure == COST else "untrained",
            "series": [
                chart_series(
                    name,
                    [each[measure][name][0] for each in its],
                    beside=np.mean([each[measure][name][1] for each in its], axis=0),
                    chance=next(iter(chance), None),
                )
                | {"panel": arm}
                for arm, its in found.items()
                for name, (_, _, *chance) in its[0][measure].items()
            ],
        }
        for measure in next(iter(found.values()))[0]
    ]


def _measures(its: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Of each measure and series: trained, what stands beside it, and a constant guess where there is one."""
    trained, untrained = its["trained"], its["untrained"]
    return {
        "share of the variance": {name: (trained[key], untrained[key]) for name, key in SHARES.items()},
        "read from one state": {
            name: (trained[key], untrained[key], trained[f"{key}, chance"][0]) for name, key in READ.items()
        },
        COST: {"cost": (trained["shuffle"], trained["shuffle, control"])},
    }


class DoseFigure(ChartFigure):
    """Choose a property and a dose: see the bias, its three numbers, and the share of right answers on each task.

    Args:
        results: for each task, and each property that is violated, by their names, the shares of right answers "seeds
            doses", the first without a dose.
        degrees: the doses, from 0.
        guesses: for each task, the share that a constant guess gets right.

    Raises:
        FigureInputError: results of other properties, or numbers that do not fit the doses.

    Example:
        >>> from posembed.widgets import DoseFigure
        >>> results = {"order": {"symmetry": [[0.8, 1.0], [0.7, 0.9]]}}
        >>> figure = DoseFigure(results, degrees=[0, 48], guesses={"order": 1 / 24})
        >>> figure.views[0]["matrices"][1]["numbers"]
        ['monotonicity 1.000', 'translation invariance 1.000', 'symmetry 0.310 ✗']
    """

    height = (1332, 735)

    def __init__(
        self,
        results: Mapping[str, Mapping[str, Any]],
        *,
        degrees: Sequence[float | int],
        guesses: Mapping[str, float | int],
    ) -> None:
        properties, doses = list(next(iter(results.values()))), [round(each) for each in degrees]
        for task, of in results.items():
            if list(of) != properties or any(np.shape(of[each])[1:] != (len(doses),) for each in of):
                raise FigureInputError(f"the results of {task!r} are not of {properties} with {len(doses)} doses each")
        views = [
            {
                "labels": [each.replace("_", " ")],
                "x": doses,
                "xlabel": "dose, degrees",
                "ylabel": "right answers",
                "reach": [0, 1],
                "since": 0,
                "besideName": "constant guess",
                "matrices": [_matrix(each, dose) for dose in doses],
                "series": [chart_series(task, of[each], beside=[guesses[task]] * 2) for task, of in results.items()],
            }
            for each in properties
        ]
        super().__init__(
            "A dose of one property",
            views,
            selectors=["violated"],
            at=len(doses) - 2,
            singles=True,
            small=True,
            besides="constant guesses",
            query=LENGTH // 8,
            note="Bands: 95\u00a0% intervals of the mean; thin lines: one seed each. Dashed: a constant guess. Thin "
            "line below the map: no dose. Differences are taken seed by seed.",
        )


def _matrix(violated: Any, degrees: int) -> dict[str, Any]:
    """A bias as its rows, or as its first column and row where it depends on the offset alone; and its numbers."""
    bias = perturbed_bias(violated, degrees, length=LENGTH)
    by_offset = violated != "translation_invariance" or not degrees
    packed = [*bias[:, 0].tolist()[::-1], *bias[0, 1:].tolist()] if by_offset else bias.tolist()
    numbers = [
        f"{name.replace('_', ' ')} {value:.3f}{' ✗' if degrees and name == violated else ''}"
        for name, value in properties_of_matrix(bias).to_dict().items()
        if name != "locality"
    ]
    return {"n": LENGTH, "values": rounded(packed, 2), "numbers": numbers}
