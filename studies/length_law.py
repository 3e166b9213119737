"""The formula of the study of length, its rivals, and how well each says what arms lose that it was not fitted to.

Written before any of these arms was asked past the trained length; coefficients are those of the fitted arms, and stand
below once they are there. `studies.length` asks no other arm before.

The law. At length n, attention weights A of the last query, a longer text made up of a short one (`reach`):

    rise(n) = a N(n) + b D(n)
    N(n) = sum over heads of worth x (attention on what no training touched, each key by how much of it is untouched)
    D(n) = sum over heads of worth x (attention on keys further back than any in training, less the attention of N)

*Worth* is what the trained length loses where the head gives its mean everywhere: attention that goes astray costs no
more than what it was good for. N is novelty times attention; D is dilution, in heads that matter. What is untouched is
`studies.training.reach.novelty`: rows, buckets, counts, values below all seen, angles outside the trained arc.

Rivals, each fitted on the same arms and in the same way, by least squares without a constant:

- "draft": a x mean novel attention + b x mean growth of the attention's entropy, every head alike.
- "name": each arm loses what the fitted arm does that acts most like it (`KIN`).
- "first untrained": one number for every arm and length where anything is untouched, else nothing.
- "receptive field": a x the attention that falls at the trained length on the further half x log2(n / 64).
- "critical dimension": a x the share of pairs that have not gone round within the trained length; 0 without pairs.

"unfitted" is the law with a = b = 1: attention that goes astray costs what it was good for. It was added when seed 1 of
none, learned and Shaw had been asked, and no other arm; so T5, ALiBi and RoPE are predictions of it too.

Fitted: seed 1 of the six arms, nine lengths from 80 to 512. Asked: the mean over seeds of six other arms at the same
lengths, and of the new ones. The number that says whether the law held is R2, 1 minus the squared errors over the
squared distances from the mean rise of the asked arms, without fitting anew: held from 0.7 on, if no rival is better;
not held below 0.3, or where "name" is better; in part between. The onset, the first length with a rise above 0.1, is
told beside it.

What we expect: the law's R2 is above 0.5 and above that of "draft", whose entropies grow in Shaw and in none alike;
p-RoPE with a quarter is said to lose nearly nothing, and does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from posembed import RunResult

from .training.longer import LENGTHS

FITTED = ("nopos", "learned", "shaw", "t5", "alibi", "rope")
ASKED_AFTER = ("sinusoidal", "learnable_sinusoidal", "xpos", "kerple", "fire", "cope")
# Of the arms that are not fitted, the fitted one that acts most like it.
KIN = {
    "sinusoidal": "learned",
    "learnable_sinusoidal": "learned",
    "xpos": "rope",
    "kerple": "alibi",
    "fire": "alibi",
    "cope": "shaw",
    "p-rope, a quarter": "rope",
    "p-rope, half": "rope",
    "rope, base 100": "rope",
    "forgetting": "alibi",
}
# By predictor the coefficients of its terms, from seed 1 of the fitted arms.
COEFFICIENTS: dict[str, tuple[float, ...]] = {
    "law": (1.0919, 1.1097),
    "draft": (2.0796, 0.1608),
    "first untrained": (1.2659,),
    "receptive field": (2.6873,),
    "critical dimension": (1.988,),
}
# Those that are not fitted.
GIVEN: dict[str, tuple[float, ...]] = {"unfitted": (1.0, 1.0)}
RISE = 0.1
Reach = Mapping[str, Any]


def law(reach: Reach, n: int) -> list[float]:
    """N and D."""
    worth, new, far = (torch.tensor(each) for each in (reach["worth"], reach[str(n)]["new"], reach[str(n)]["far"]))
    return [float((worth * new).sum()), float((worth * (far - new).clamp(min=0)).sum())]


def draft(reach: Reach, n: int) -> list[float]:
    """Mean novel attention, and how much the mean entropy grows."""
    new, entropy, before = (
        torch.tensor(each).mean() for each in (reach[str(n)]["new"], reach[str(n)]["entropy"], reach["64"]["entropy"])
    )
    return [float(new), float(entropy - before)]


def first_untrained(reach: Reach, n: int) -> list[float]:
    """Whether anything is untouched."""
    return [float(torch.tensor(reach[str(n)]["new"]).max() > 0)]


def receptive_field(reach: Reach, n: int) -> list[float]:
    """Attention to the further half, and by how many doublings the text is longer."""
    return [float(torch.tensor(reach["back"]).mean()) * float(np.log2(n / 64))]


def critical_dimension(reach: Reach, _: int) -> list[float]:
    """The share of pairs that have not gone round."""
    return [reach["unfinished"]]


TERMS: dict[str, Callable[[Reach, int], list[float]]] = {
    "law": law,
    "unfitted": law,
    "draft": draft,
    "first untrained": first_untrained,
    "receptive field": receptive_field,
    "critical dimension": critical_dimension,
}


def rises(run: RunResult) -> list[float]:
    """What a run loses at each length beside the last 64 alone."""
    plain = run.metrics["longer"]["plain"]
    return [plain[str(n)] - plain["64"] for n in LENGTHS]


def fit(runs: Sequence[RunResult]) -> dict[str, tuple[float, ...]]:
    """The coefficients of each predictor, from the runs of the fitted arms that are given, all with equal weight."""
    wanted, found = np.array([rise for run in runs for rise in rises(run)]), {}
    for name, terms in ((name, terms) for name, terms in TERMS.items() if name not in GIVEN):
        columns = np.array([terms(run.metrics["reach"], n) for run in runs for n in LENGTHS])
        found[name] = tuple(round(float(each), 4) for each in np.linalg.lstsq(columns, wanted, rcond=None)[0])
    return found


def predicted(run: RunResult, name: str) -> list[float]:
    """What a predictor says of a run, from ``reach`` alone, at each length."""
    return [float(np.dot((COEFFICIENTS | GIVEN)[name], TERMS[name](run.metrics["reach"], n))) for n in LENGTHS]


def onset(rises: Sequence[float]) -> int | None:
    """The first length with a rise above 0.1; None where there is none."""
    return next((n for n, rise in zip(LENGTHS, rises, strict=True) if rise > RISE), None)


def explained(said: Sequence[Sequence[float]], seen: Sequence[Sequence[float]]) -> float:
    """R2 of what was said of some arms, without fitting anew."""
    wanted, errors = np.array(seen), np.array(seen) - np.array(said)
    return float(1 - (errors**2).sum() / ((wanted - wanted.mean()) ** 2).sum())


def verdicts(by_arm: Mapping[str, Sequence[RunResult]], names: Sequence[str]) -> dict[str, float]:
    """R2 of each predictor over some arms, means over their runs.

    Args:
        by_arm: the runs of each arm that were asked, of the fitted ones too, which "name" takes its answer from.
        names: of the arms that are predicted.
    """
    seen = {name: np.mean([rises(run) for run in runs], 0) for name, runs in by_arm.items()}
    wanted = [seen[name] for name in names]
    found = {
        predictor: explained(
            [np.mean([predicted(run, predictor) for run in by_arm[name]], 0) for name in names], wanted
        )
        for predictor in TERMS
    }
    return found | {"name": explained([seen[KIN[name]] for name in names], wanted)}
