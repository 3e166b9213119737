"""Which property of positions costs what, on which task? One property at a time, by a dose.

Published answers rest on correlations over a handful of schemes, which differ in everything at once (Wang et al. 2021).
Here the bias of attention is frozen, and turned by a dose so that it violates one property and keeps the other two
exactly (`posembed.similarity.perturbed_bias`). This plan was written before any of its runs.

Model: an encoder of two layers, width 32, four heads whose bias is the matrix times 1, 1/2, 1/4 and 1/8; weights start
with a deviation of 1 / sqrt(width), with which narrow models learn faster. Positions reach it by this bias alone. The
class is read from the mean of the last states, which itself knows no positions. 400 steps of 32 texts, each of 32
tokens, the first of which says that it is the first (see `posembed.data.synthetic_tasks`): so no task is out of reach.

Tasks: majority of 8 symbols, which needs nothing; the order of 4 marks; the distance between two marks, 1 to 8; the
symbol 2 places after a mark, which needs a direction.

Doses: 12, 24, 36 and 48 degrees of each property, and none. A degree is the same amount of change for all three: the
angle between what a softmax sees of the dosed bias and of the undosed one, at the same norm. By how much the property
itself is violated then differs, and is reported beside it (`violation`); no single scale is fair to all three.

Difficulty: chosen in runs with the seed 101, which no reported run has, without a dose, so that the undosed arm is
neither at the ceiling nor at chance.

The learning rate of each arm on each task is that with the lowest mean validation loss of two seeds that no reported
run has, among three rates, in runs as long as the reported ones. Then five seeds.

What is compared, as shares of right answers on the test, seed by seed:

a. For each task and property: the mean of its four doses minus none. (12)
b. For each task and property: the largest dose minus none. (12)
c. For each task: the differences of a between the properties. (12)

Intervals are Student's over five seeds; beside them stands p after Holm's correction for all 36.

Added when these runs had been seen, because some undosed models were still learning after 400 steps:

d. For each task and property: the largest dose minus none, in 1200 steps, tuned likewise; with Holm's correction for
   these twelve. What a dose costs there is not a matter of 400 steps.

What we expect: nothing on majority beyond what a changed reach costs; the two violations that tell places or directions
apart (drift, one side) help with order and lookup, the drift harms distance, and a rise harms distance most. The
published signs would be: less monotone and less invariant is worse, less symmetric is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from posembed.similarity import perturbed_bias, properties_of_matrix
from posembed.stats import Interval, difference
from posembed.training.config import RunConfig
from posembed.training.plans import Arm
from posembed.training.results import RunResult

from .training.settings import run_of

NAME = "tasks"
TASKS = {"majority": 8, "order": 4, "distance": 8, "lookup": 2}
PROPERTIES = ("monotonicity", "translation_invariance", "symmetry")
DEGREES = (12.0, 24.0, 36.0, 48.0)
RATES, TUNING_SEEDS, SEEDS = (1e-3, 3e-3, 1e-2), (11, 12), (1, 2, 3, 4, 5)
LENGTH = 32
STEPS, LONGER = 400, 1200


def run(
    task: str, violated: str, degrees: float, *, seed: int, rate: float = RATES[0], steps: int = STEPS
) -> RunConfig:
    """One run of the study; of 0 degrees the same one whatever is violated."""
    return run_of(
        objective="task",
        task=task,
        difficulty=TASKS[task],
        dose={violated: degrees} if degrees else {},
        length=LENGTH,
        n_layers=2,
        d_model=32,
        n_heads=4,
        weight_std=32**-0.5,
        scale_embeddings=False,
        batch_size=32,
        steps=steps,
        warmup=50,
        learning_rate=rate,
        seed=seed,
        preset="cpu",
    )


def arm_of(task: str, violated: str, degrees: float, steps: int = STEPS) -> Arm:
    """The runs of one arm on one task and those that choose its learning rate.

    Args:
        task: of `TASKS`.
        violated: of `PROPERTIES`.
        degrees: of `DEGREES`, or 0.
        steps: of each run; `LONGER` for the none and the largest dose of contrast d.
    """
    arm = (task, violated, degrees)
    return Arm(
        (f"{task}, {violated} by {degrees:g}" if degrees else f"{task}, undosed")
        + ("" if steps == STEPS else ", long"),
        tuple(run(*arm, seed=seed, steps=steps) for seed in SEEDS),
        tuple(run(*arm, seed=seed, rate=rate, steps=steps) for rate in RATES for seed in TUNING_SEEDS),
    )


UNDOSED = (PROPERTIES[0], 0.0)
ARMS = (UNDOSED, *((violated, degrees) for violated in PROPERTIES for degrees in DEGREES))
LONGER_ARMS = (UNDOSED, *((violated, DEGREES[-1]) for violated in PROPERTIES))


def arms_of(task: str) -> list[Arm]:
    """All arms of one task."""
    return [arm_of(task, *arm) for arm in ARMS] + [arm_of(task, *arm, LONGER) for arm in LONGER_ARMS]


def dose_arms() -> tuple[Arm, ...]:
    """All arms, task by task."""
    return tuple(arm for task in TASKS for arm in arms_of(task))


def violation(violated: str, degrees: float) -> float:
    """By how much a dose violates its property: one less what `properties_of_matrix` says of the bias."""
    its: Any = violated
    return 1 - getattr(properties_of_matrix(perturbed_bias(its, degrees, length=LENGTH)), violated)


def accuracies(task: str, violated: str, degrees: float, runs: Sequence[RunResult], steps: int = STEPS) -> list[float]:
    """The share of right answers of an arm's reported runs, in the order of their seeds.

    Args:
        task: of `TASKS`.
        violated: of `PROPERTIES`.
        degrees: of `DEGREES`, or 0.
        runs: of the study, those that chose the rate among them.
        steps: of each run.

    Raises:
        RunError: not all runs of the arm are there.
    """
    return [run.metrics["accuracy"] for run in arm_of(task, violated, degrees, steps).reported(runs)]


def contrasts(runs: Sequence[RunResult], tasks: Sequence[str] = tuple(TASKS)) -> dict[str, Interval]:
    """Compute all that was planned to be compared, a to c, as shares of right answers.

    Args:
        runs: of the study, those that chose the rates among them.
        tasks: which of `TASKS`.

    Raises:
        RunError: not all runs are there.
    """
    found: dict[str, Interval] = {}
    for task in tasks:
        undosed = accuracies(task, PROPERTIES[0], 0.0, runs)
        means = {}
        for violated in PROPERTIES:
            by_dose = [accuracies(task, violated, degrees, runs) for degrees in DEGREES]
            means[violated] = [sum(each) / len(each) for each in zip(*by_dose, strict=True)]
            found[f"{task}: {violated}, doses minus none"] = difference(means[violated], undosed)
            found[f"{task}: {violated}, largest dose minus none"] = difference(by_dose[-1], undosed)
        for number, one in enumerate(PROPERTIES):
            for other in PROPERTIES[number + 1 :]:
                found[f"{task}: {one} minus {other}"] = difference(means[one], means[other])
    return found


def longer_contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """Compute d, what was added: the largest dose minus none in `LONGER` steps.

    Args:
        runs: of the study, those that chose the rates among them.

    Raises:
        RunError: not all runs are there.
    """
    found = {}
    for task in TASKS:
        undosed = accuracies(task, *UNDOSED, runs, LONGER)
        for violated in PROPERTIES:
            dosed = accuracies(task, violated, DEGREES[-1], runs, LONGER)
            found[f"{task}: {violated}, largest dose minus none"] = difference(dosed, undosed)
    return found
