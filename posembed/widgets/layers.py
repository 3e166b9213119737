"""Figures 8 and 9: what the layers of trained models hold, from the runs of each arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..figures.looks import written
from .chart import ChartFigure, by_seed, chart_series

if TYPE_CHECKING:
    from ..training import RunResult

Arms = Mapping[str, Mapping[str, "Sequence[RunResult]"]]
# What is drawn of a run that was inspected, and its name there: of texts, and of images.
SHARES = {"position": "position", "token": "token"}
READ = {"position": "read position", "token": "read token", "token before": "read before"}
IMAGE_SHARES = {"place": "place beyond contents", "contents": "contents beyond place", "class": "class"}
IMAGE_READ = {"place": "place", "contents": "contents", "class": "class"}
COST = "cost of shuffling position"


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
        models: for each model, the runs of each arm, by their names; inspected for "depth" or "patches".

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
            at=1,
            small=True,
            besides="dashed lines",
            note="Line and band: mean and 95\u00a0% interval over seeds. Dashed: the untrained models, or the control "
            "of the change.",
        )


def _inspected(model: str, arms: Mapping[str, Sequence[RunResult]]) -> list[dict[str, Any]]:
    """The views of a model, one for each measure, with a panel for each arm."""
    found = {
        arm: [
            _images(run.metrics["patches"]) if "patches" in run.metrics else _texts(run.metrics["depth"])
            for run in runs
        ]
        for arm, runs in arms.items()
    }
    first = next(iter(arms.values()))[0]
    unit = "of the answers" if "patches" in first.metrics else "nats"
    return [
        {
            "labels": [model, measure],
            "x": list(range(first.config.n_layers + 1)),
            "xlabel": "state (0 enters the first layer)",
            "ylabel": f"cost, {unit}" if measure == COST else measure,
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


def _texts(its: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Of each measure and series: trained, what stands beside it, and a constant guess where there is one."""
    trained, untrained = its["trained"], its["untrained"]
    return {
        "share of the variance": {name: (trained[key], untrained[key]) for name, key in SHARES.items()},
        "read from one state": {
            name: (trained[key], untrained[key], trained[f"{key}, chance"][0]) for name, key in READ.items()
        },
        COST: {"cost": (trained["shuffle"], trained["shuffle, control"])},
    }


def _images(its: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    trained, untrained, cost = its["layers"], its["untrained"], its["ablations"]["shuffle"]
    shares, read, chance = trained["shares"], trained["read"], trained["chance"]["read"]
    return {
        "share of the variance": {name: (shares[key], untrained["shares"][key]) for name, key in IMAGE_SHARES.items()},
        "read from one state": {
            name: (read[key], untrained["read"][key], chance[key]) for name, key in IMAGE_READ.items()
        },
        COST: {"cost": (cost["cost"], cost["control"])},
    }
