"""Figure 9: how far off a probe reads positions from each layer, by scheme, seed and step; the paper's beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..checks import check_each
from ..errors import FigureInputError, RunError
from ..figures.looks import signed
from ..training import RunResult, interval
from ..training.nopos import PUBLISHED_SCHEMES, published_probe, reported
from ..training.nopos.published import PUBLISHED_LENGTH
from .base import InteractiveFigure, html_table, rounded

NAMES = {"nopos": "no positions", "learned": "learned", "sinusoidal": "sinusoidal", "alibi": "ALiBi", "rope": "RoPE"}
# Those parts of the study whose models were probed at every layer: a name, that of the part, and the schemes.
GROUPS = {
    "causal": ("small causal", "causal, {}", tuple(NAMES)),
    "watched": ("small causal, step by step", "causal, {}, watched", ("nopos", "learned", "alibi")),
    "larger": ("larger causal", "larger, {}", ("nopos", "learned", "alibi")),
    "masked": ("small masked", "masked, {}", ("nopos", "learned")),
}
DECIMALS = 4


class LayerErrorFigure(InteractiveFigure):
    """See which layers know positions: how far off a probe reads them, layer by layer.

    Errors are shares of that of always guessing the middle, and layers shares of the depth: in these units models of 4
    and 6 layers stand in one picture with the paper's, which have 24. Groups of models whose runs are not all there are
    left out.

    Args:
        runs: of the study, those that chose the learning rates among them.

    Raises:
        FigureInputError: what are no runs, or none of which a group is complete.

    Example:
        >>> from posembed.widgets import LayerErrorFigure
        >>> from posembed.training import load_runs
        >>> group = LayerErrorFigure(load_runs("nopos")).groups[-1]
        >>> group["name"], group["middle"], [scheme["key"] for scheme in group["schemes"]]
        ('small masked: 4 layers, width 64', 16.0, ['nopos', 'learned'])
    """

    module = "layer_errors.js"
    height = (1045, 573)

    def __init__(self, runs: Sequence[RunResult]) -> None:
        groups = _groups(runs)
        chosen = groups[0]
        n_layers = chosen["n_layers"]
        super().__init__(
            groups=groups,
            known=[{"key": key, "name": name} for key, name in NAMES.items()],
            published=_published(),
            group=chosen["key"],
            # No positions, some that are added, some that attention alone is told: all five at once are a tangle.
            schemes=["nopos", "learned", "alibi"],
            seeds=sorted({seed for each in groups for seed in each["seeds"]}),
            step=chosen["steps"][-1],
            # The layer in the middle, as a share of the depth.
            depth=n_layers // 2 / n_layers,
            paper=True,
        )

    def fallback_html(self) -> str:
        """Show the mean error of the chosen models by layer and scheme, at each step where they were probed."""
        group = next(group for group in self.groups if group["key"] == self.group)
        return html_table(
            "how far off a probe reads positions from each layer, in positions, "
            f"on the mean of {len(group['seeds'])} seeds with 95 % intervals. {group['about']} Always the middle: "
            f"{_words(group['middle'])}; at random: {_words(group['random'])}.",
            ["after steps", "layer", *(NAMES[scheme["key"]] for scheme in group["schemes"])],
            [
                [str(step), str(layer), *(_cell(scheme, k, layer) for scheme in group["schemes"])]
                for k, step in enumerate(group["steps"])
                for layer in range(group["n_layers"] + 1)
            ],
        )


def _groups(runs: Any) -> list[dict[str, Any]]:
    """The groups of which all runs are there."""
    wanted = "a list of results, such as load_runs('nopos') or read_results(folder) returns"
    runs = check_each("runs", runs, RunResult, wanted, FigureInputError)
    parts = {key: _parts(pattern, schemes, runs) for key, (_, pattern, schemes) in GROUPS.items()}
    groups = [_group(key, its) for key, its in parts.items() if its is not None]
    if not groups:
        raise FigureInputError("no group of models is complete among these runs; run posembed grid nopos")
    return groups


def _parts(pattern: str, schemes: Sequence[str], runs: Sequence[RunResult]) -> dict[str, list[RunResult]] | None:
    """The runs of each scheme; None where some are missing."""
    # A part is found by the keys of all runs that it is looked for in, which take their time.
    own = {scheme: [run for run in runs if run.config.scheme == scheme] for scheme in schemes}
    try:
        return {scheme: reported(pattern.format(scheme), its) for scheme, its in own.items()}
    except RunError:
        return None


def _group(key: str, parts: Mapping[str, list[RunResult]]) -> dict[str, Any]:
    """What the module needs of a group."""
    first = next(iter(parts.values()))
    config, guesses = first[0].config, first[0].metrics["layers"]
    probes = {scheme: [_probes(run) for run in runs] for scheme, runs in parts.items()}
    steps = sorted(set.intersection(*(set(probe) for its in probes.values() for probe in its)))
    size = f"{config.n_layers} layers, width {config.d_model}"
    return {
        "key": key,
        "name": f"{GROUPS[key][0]}: {size}",
        "about": f"{config.objective.capitalize()} models of {size}, trained for {config.steps} steps on texts of "
        f"{config.length} characters.",
        "n_layers": config.n_layers,
        "steps": steps,
        "seeds": [run.config.seed for run in first],
        "middle": guesses["middle_guess"],
        "random": guesses["random_guess"],
        "schemes": [_scheme(scheme, its, steps) for scheme, its in probes.items()],
    }


def _probes(run: RunResult) -> dict[int, list[float]]:
    """The errors by layer, by the number of steps before them."""
    probed = {int(step): found for step, found in run.metrics.get("watched", {}).items()}
    if "untrained" in run.metrics:
        probed[0] = run.metrics["untrained"]
    probed[run.config.steps] = run.metrics["layers"]
    return {step: found["mae"] for step, found in probed.items()}


def _scheme(key: str, probes: list[dict[int, list[float]]], steps: list[int]) -> dict[str, Any]:
    """The errors "step seed layer" of a scheme, and their means and 95 % intervals "step layer"."""
    errors = [[probe[step] for probe in probes] for step in steps]
    return {
        "key": key,
        "errors": errors,
        "intervals": [[_interval(layer) for layer in zip(*of_seeds, strict=True)] for of_seeds in errors],
    }


def _interval(errors: Sequence[float]) -> list[float]:
    found = interval(errors)
    return rounded([found.mean, found.low, found.high], DECIMALS)


def _published() -> dict[str, Any]:
    """The paper's curves, in shares of always guessing the middle."""
    shares = {scheme: rounded(list(published_probe(scheme)), DECIMALS) for scheme in PUBLISHED_SCHEMES}
    n_layers = len(shares["nopos"]) - 1
    about = f"Haviv et al. (2022), causal models of {n_layers} layers, texts of {PUBLISHED_LENGTH} tokens"
    return {"about": about, "shares": shares}


def _cell(scheme: Mapping[str, Any], step: int, layer: int) -> str:
    mean, low, high = map(_words, scheme["intervals"][step][layer])
    return f"{mean} ({low} to {high})"


def _words(error: float) -> str:
    """An error in positions, as exact as a few seeds can tell; never minus zero."""
    decimals = 1 if abs(error) >= 0.995 else 2
    return signed(f"{round(error, decimals) + 0.0:.{decimals}f}")
