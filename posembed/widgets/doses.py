"""Figure 11: a bias that violates one property by a dose, its three numbers, and what the dose cost on each task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import FigureInputError
from ..similarity import perturbed_bias, properties_of_matrix
from .base import rounded
from .chart import ChartFigure, chart_series


class DoseFigure(ChartFigure):
    """Choose a property and a dose: see the bias, its three numbers, and the share of right answers on each task.

    Args:
        results: for each task, and each property that is violated, by their names, the shares of right answers "seeds
            doses", the first without a dose.
        degrees: the doses, from 0.
        guesses: for each task, the share that a constant guess gets right.
        length: the number of positions.
        violated: the property that is chosen first; by default the first.
        dose: the dose that is chosen first; by default the last but one.

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
        length: int = 32,
        violated: str | None = None,
        dose: float | int | None = None,
    ) -> None:
        properties, doses = list(next(iter(results.values()))), [round(each) for each in degrees]
        violated, dose = violated or properties[0], doses[-2] if dose is None else dose
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
                "matrices": [_matrix(each, dose, length) for dose in doses],
                "series": [chart_series(task, of[each], beside=[guesses[task]] * 2) for task, of in results.items()],
            }
            for each in properties
        ]
        super().__init__(
            "A dose of one property",
            views,
            selectors=["violated"],
            labels=[violated.replace("_", " ")],
            at=doses.index(round(dose)),
            singles=True,
            small=True,
            besides="constant guesses",
            query=length // 8,
            note="Bands: 95\u00a0% intervals of the mean; thin lines: one seed each. Dashed: a constant guess. Thin "
            "line below the map: no dose. Differences are taken seed by seed.",
        )


def _matrix(violated: Any, degrees: int, length: int) -> dict[str, Any]:
    """A bias as its rows, or as its first column and row where it depends on the offset alone; and its numbers."""
    bias = perturbed_bias(violated, degrees, length=length)
    by_offset = violated != "translation_invariance" or not degrees
    packed = [*bias[:, 0].tolist()[::-1], *bias[0, 1:].tolist()] if by_offset else bias.tolist()
    numbers = [
        f"{name.replace('_', ' ')} {value:.3f}{' ✗' if degrees and name == violated else ''}"
        for name, value in properties_of_matrix(bias).to_dict().items()
        if name != "locality"
    ]
    return {"n": length, "values": rounded(packed, 2), "numbers": numbers}
