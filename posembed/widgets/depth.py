"""Figure 8: position and content in the states of each layer, by model and scheme, and what it costs to take it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import FigureInputError, RunError
from ..training import RunResult, depth, images, interval
from .base import InteractiveFigure, html_table, rounded

# What is drawn, and its name in a result, of texts and of images.
TEXT_SHARES = {"position": "position", "token": "token"}
TEXT_READ = {"position": "read position", "token": "read token", "token before": "read before"}
IMAGE_SHARES = {"place": "place beyond contents", "contents": "contents beyond place", "class": "class"}
IMAGE_READ = {"place": "place", "contents": "contents", "class": "class"}
KIND = "project out"
DECIMALS = 4

Columns = Callable[[RunResult], Sequence[float]]


class DepthFigure(InteractiveFigure):
    """Choose a model, its positions and a layer: how much of its states is position and how much content.

    Beside a trained model stands the one that its training began with, and a switch shows what it costs to take the
    position out of the states of one layer.

    Args:
        runs: of the study `posembed.training.depth`, those that chose the learning rates among them.

    Raises:
        FigureInputError: runs of which some are missing.

    Example:
        >>> from posembed.training import load_runs
        >>> from posembed.widgets import DepthFigure
        >>> [model["name"] for model in DepthFigure(load_runs("depth")).models]
        ['texts, 4 layers', 'texts, 12 layers', 'hidden characters, 4 layers', 'images, 6 layers']
    """

    module = "depth.js"
    height = (662, 507)

    def __init__(self, runs: Sequence[RunResult]) -> None:
        try:
            models = [_text(f"texts, {n} layers", _arms(n, runs)) for n in depth.WIDTHS]
            models.append(_text("hidden characters, 4 layers", {"input": depth.masked_part().reported(runs)}))
            models.append(_images({arm: images.part(arm).reported(runs) for arm in images.ARMS}))
        except RunError as error:
            raise FigureInputError(f"the runs by depth are not all there ({error}); give load_runs('depth')") from None
        super().__init__(models=models, model=3, arm="learned", measure="shares", layer=1, taken=False)

    def fallback_html(self) -> str:
        """Show the shares of position and content after the first layer and before the last."""
        rows = []
        for model in self.models:
            for found in model["arms"]:
                first, second, *_ = found["shares"]
                early, late = 1, len(first["trained"]) - 2
                cells = [f"{each['trained'][state][0]:.2f}" for each in (first, second) for state in (early, late)]
                rows.append([model["name"], found["name"], *cells])
        return html_table(
            "share of the variance between states, mean of five seeds, after the first layer and after the last but "
            "one.",
            [
                "model",
                "positions",
                "position, first",
                "position, last but one",
                "content, first",
                "content, last but one",
            ],
            rows,
        )


def _arms(n_layers: int, runs: Sequence[RunResult]) -> dict[str, list[RunResult]]:
    return {arm: depth.part(n_layers, arm).reported(runs) for arm in depth.ARMS}


def _text(name: str, arms: dict[str, list[RunResult]]) -> dict[str, Any]:
    def column(of: str, key: str) -> Columns:
        return lambda result: result.metrics["depth"][of][key]

    def series(name: str, key: str, reported: list[RunResult]) -> dict[str, Any]:
        found = _series(name, column("trained", key), column("untrained", key), reported)
        chance = reported[0].metrics["depth"]["trained"].get(f"{key}, chance")
        return found | {"chance": None if chance is None else rounded(chance[0], DECIMALS)}

    return {
        "name": name,
        "unit": "nats",
        "arms": [
            {
                "name": arm,
                "shares": [series(each, key, reported) for each, key in TEXT_SHARES.items()],
                "read": [series(each, key, reported) for each, key in TEXT_READ.items()],
                "cost": _series("cost", column("trained", KIND), column("trained", f"{KIND}, control"), reported),
            }
            for arm, reported in arms.items()
        ],
    }


def _images(arms: dict[str, list[RunResult]]) -> dict[str, Any]:
    def column(of: str, measure: str, key: str) -> Columns:
        return lambda result: result.metrics["patches"][of][measure][key]

    def series(name: str, measure: str, key: str, reported: list[RunResult]) -> dict[str, Any]:
        found = _series(name, column("layers", measure, key), column("untrained", measure, key), reported)
        chance = reported[0].metrics["patches"]["layers"]["chance"]["read"][key] if measure == "read" else None
        return found | {"chance": chance}

    return {
        "name": f"images, {images.N_LAYERS} layers",
        "unit": "of the answers",
        "arms": [
            {
                "name": arm,
                "shares": [series(each, "shares", key, reported) for each, key in IMAGE_SHARES.items()],
                "read": [series(each, "read", key, reported) for each, key in IMAGE_READ.items()],
                "cost": _series(
                    "cost", column("ablations", KIND, "cost"), column("ablations", KIND, "control"), reported
                ),
            }
            for arm, reported in arms.items()
        ],
    }


def _series(name: str, of: Columns, beside: Columns, reported: list[RunResult]) -> dict[str, Any]:
    """For each state mean and interval of one column over seeds, and the mean of the one that stands beside it."""
    ends = [interval(values) for values in zip(*map(of, reported), strict=True)]
    others = [interval(values).mean for values in zip(*map(beside, reported), strict=True)]
    return {
        "name": name,
        "trained": rounded([[each.mean, each.low, each.high] for each in ends], DECIMALS),
        "beside": rounded(others, DECIMALS),
    }
