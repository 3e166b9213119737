"""Which property of positions costs what, on which task? Two forms for each property, and a rise that has a direction.

The first study of doses (`tasks`) could not carry its sentence: its violation of monotonicity began at a distance of
16 to 24, where no task asks, and *order* stood at the ceiling of every bias that takes a text and its mirror image for
one. Here each property is violated in two forms at least, near and far apart, and a rise is put on a one-sided bias
too.

Model, as there: an encoder of two layers, width 32, four heads whose bias is the matrix times 1, 1/2, 1/4 and 1/8;
weights of standard deviation 1 / sqrt(width); positions reach it by this bias alone; the class is read from the mean of
the last states; texts of 32 tokens, the first of which says that it is the first. 1200 steps of 32 texts.

Forms (`studies.forms`), each an angle of 30 degrees from minus the distance, at the same norm; the evidence page
prints what the three properties measure of each, over all offsets and over those to 8, and where it turns:

- monotonicity: "far rise" turns round beyond a distance of 19; "near peak" rises up to a distance of 6; "near ripple"
  goes up and down to a distance of 8.
- translation invariance: "drift", steps that grow; "wave", steps that are short in the middle.
- symmetry: "one side", steeper ahead; "curve", another shape behind than ahead.
- on one side: "far rise" and "near peak" on a bias that is one-sided by 30 degrees, beside that bias itself.

Tasks, as there: majority of 8 symbols, which needs nothing; the order of 4 marks; the distance of two marks, 1 to 8;
the symbol 2 places after a mark.

Written before its runs; known were the doses of `tasks`.

Rates: each arm on each task has its own, from trials as long as the reported runs with two trial seeds, three rates,
more at an edge (see `Arm`). Reported: five seeds.

Planned contrasts, in shares of right answers on the test, pairs with one seed, Student's 95 % interval, one family
after Holm:

a. Each form minus undosed, on each task. (28)
b. On one side: far rise, and near peak, minus one side alone, on each task. (8)
c. Of one property, one form minus another: near peak minus far rise, near ripple minus near peak, wave minus drift,
   curve minus one side, on each task. (16)

What counts as nothing: a form costs nothing on a task where the 90 % interval of a lies within 0.02 of zero. What
counts as a finding about a property, and not about a form: two of its forms have corrected p below 0.05 and one sign.

What we expect: nothing on majority; both near forms cost distance and the far rise does not; both forms without
symmetry help order and lookup, and with them order leaves its mirror ceiling; a near peak on one side costs lookup less
than half of what one side gains; drift and wave cost distance a little and help lookup a little.
"""

from __future__ import annotations

from collections.abc import Sequence

from posembed import RunResult
from posembed.stats import Interval, difference

from .forms import FORMS
from .search import Search
from .training.settings import run_of

NAME = "causes"
TASKS = {"majority": 8, "order": 4, "distance": 8, "lookup": 2}
DEGREES = 30.0
SEEDS, TRIAL_SEEDS, RATES = (1, 2, 3, 4, 5), (11, 12), (1e-3, 3e-3, 1e-2)
LENGTH, STEPS, WIDTH = 32, 1200, 32
UNDOSED, ONE_SIDE = "undosed", "one side"
# By arm the form and whether it stands on one side.
BIASES: dict[str, tuple[str | None, bool]] = {
    UNDOSED: (None, False),
    **{form: (form, False) for form in FORMS},
    "far rise on one side": ("far rise", True),
    "near peak on one side": ("near peak", True),
}
WITHIN = (
    ("near peak", "far rise"),
    ("near ripple", "near peak"),
    ("wave", "drift"),
    ("curve", "one side"),
)
SCHEME = "studies.forms:FormBias"


def arm(task: str, bias: str) -> Search:
    """The runs of a bias on a task.

    Args:
        task: of `TASKS`.
        bias: of `BIASES`.
    """
    form, on_one_side = BIASES[bias]
    options = {"form": form, "degrees": DEGREES if form else 0.0, "sided": DEGREES if on_one_side else 0.0}
    run = run_of(
        scheme=SCHEME,
        scheme_options={SCHEME: options},
        objective="task",
        task=task,
        difficulty=TASKS[task],
        length=LENGTH,
        n_layers=2,
        d_model=WIDTH,
        n_heads=4,
        weight_std=WIDTH**-0.5,
        scale_embeddings=False,
        batch_size=32,
        steps=STEPS,
        warmup=50,
        preset="cpu",
    )
    return Search(f"{task}, {bias}", run, SEEDS, run, TRIAL_SEEDS, RATES)


def arms(_: Sequence[RunResult] = ()) -> list[Search]:
    """All arms."""
    return [arm(task, bias) for task in TASKS for bias in BIASES]


def contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """All that was planned, in shares of right answers."""
    right = {each.name: [run.metrics["accuracy"] for run in each.reported(runs)] for each in arms()}
    pairs = [(form, UNDOSED) for form in FORMS]
    pairs += [(f"{form} on one side", ONE_SIDE) for form in ("far rise", "near peak")]
    return {
        f"{task}: {one} minus {other}": difference(right[f"{task}, {one}"], right[f"{task}, {other}"])
        for task in TASKS
        for one, other in (*pairs, *WITHIN)
    }
