"""Figure 11: a bias that violates one property by a dose, its three numbers, and what the dose cost on each task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..checks import check_choice
from ..errors import FigureInputError, RunError, shown
from ..similarity import perturbed_bias, properties_of_matrix
from ..stats import Interval, difference
from ..training import RunResult, doses, interval
from .base import InteractiveFigure, html_table, rounded

NAMES = {"monotonicity": "monotonicity", "translation_invariance": "translation invariance", "symmetry": "symmetry"}
ALL_DOSES = (0.0, *doses.DEGREES)
DECIMALS = 4


class DoseFigure(InteractiveFigure):
    """Choose a property and a dose: see the bias, its three numbers, and the share of right answers on four tasks.

    Args:
        runs: of the study `posembed.training.doses`, those that chose the learning rates among them.
        violated: the property that is chosen first, one of `doses.PROPERTIES`.
        degrees: the dose that is chosen first, one of `doses.DEGREES`, or 0.

    Raises:
        FigureInputError: runs of which some are missing; an unknown property or dose.

    Example:
        >>> from posembed.training import load_runs
        >>> from posembed.widgets import DoseFigure
        >>> figure = DoseFigure(load_runs("tasks"), violated="symmetry", degrees=48)
        >>> [task["name"] for task in figure.tasks]
        ['majority', 'order', 'distance', 'lookup']
    """

    module = "doses.js"
    height = (1210, 650)

    def __init__(
        self, runs: Sequence[RunResult], *, violated: str = "monotonicity", degrees: float | int = 36.0
    ) -> None:
        check_choice("violated", violated, NAMES, FigureInputError)
        if degrees not in ALL_DOSES:
            those = ", ".join(f"{each:g}" for each in ALL_DOSES)
            raise FigureInputError(f"degrees is {shown(degrees)}; choose among {those}")
        try:
            tasks = [_measured(task, runs) for task in doses.TASKS]
        except RunError as error:
            raise FigureInputError(
                f"the runs of the doses are not all there ({error}); give load_runs('tasks')"
            ) from None
        super().__init__(
            names=NAMES,
            doses=[int(degrees) for degrees in ALL_DOSES],
            biases={name: [_bias(name, degrees) for degrees in ALL_DOSES] for name in NAMES},
            tasks=tasks,
            violated=violated,
            dose=int(degrees),
            query=doses.LENGTH // 8,
        )

    def fallback_html(self) -> str:
        """Show the mean share of right answers by property, dose and task."""
        return html_table(
            "share of right answers on made tasks, mean of five seeds, by violated property and dose in degrees.",
            ["violated", "dose", *(task["name"] for task in self.tasks)],
            [
                [words, str(degrees), *(f"{task['right'][name][k][0]:.2f}" for task in self.tasks)]
                for name, words in NAMES.items()
                for k, degrees in enumerate(self.doses)
            ],
        )


def _bias(violated: Any, degrees: float) -> dict[str, Any]:
    """A bias as its rows, or as its first column and row where it depends on the offset alone; and its numbers."""
    bias = perturbed_bias(violated, degrees, length=doses.LENGTH)
    by_offset = violated != "translation_invariance" or not degrees
    # The offset -31 first.
    packed = [*bias[:, 0].tolist()[::-1], *bias[0, 1:].tolist()] if by_offset else bias.tolist()
    found = properties_of_matrix(bias).to_dict()
    return {
        "by_offset": by_offset,
        "values": rounded(packed, 2),
        "numbers": {name: rounded(found[name], 3) for name in NAMES},
    }


def _measured(task: str, runs: Sequence[RunResult]) -> dict[str, Any]:
    """Of each property and dose: mean, interval, seeds; and the difference to no dose with its interval."""
    undosed = doses.accuracies(task, *doses.UNDOSED, runs)
    right: dict[str, list[list[float]]] = {}
    lost: dict[str, list[list[float]]] = {}
    for name in NAMES:
        by_dose = [undosed, *(doses.accuracies(task, name, degrees, runs) for degrees in doses.DEGREES)]
        right[name] = [[*_ends(interval(each)), *each] for each in by_dose]
        lost[name] = [_ends(difference(each, undosed)) for each in by_dose[1:]]
    guess = doses.part(task, *doses.UNDOSED).reported(runs)[0].metrics["baseline"]
    numbers: dict[str, Any] = {"right": right, "lost": lost}
    return {"name": task, "guess": rounded(guess, DECIMALS)} | {
        kind: {name: rounded(each, DECIMALS) for name, each in of.items()} for kind, of in numbers.items()
    }


def _ends(found: Interval) -> list[float]:
    return [found.mean, found.low, found.high]
