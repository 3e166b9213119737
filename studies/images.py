"""Positions in images: which of them names a digit, and do early layers hold places and late ones what is shown?

Of Transformers that read images it is said that their early layers are dominated by position and that what the image
shows takes over later. Here that is measured for five schemes that differ in nothing else. The plan was written before
any of its runs; what it chooses was chosen in pilot runs, which are not kept.

Task: digits of 8 x 8 pixels at one of 25 places of a ground of 12 x 12, read in 36 patches of 2 x 2 (`image_task`).
Positions matter, for without them the patches are a bag; the place is drawn, so that contents alone tell little of
where a patch stands; and the ground is small, so that learned rows can learn each place: in pilots on a ground of 24 x
24 they named hardly a third of the digits.

Model: six layers, width 64, four heads; weights start with a deviation of 1 / sqrt(width); the class is read from the
mean of the last states. 1200 steps of 32 images, each at a place drawn anew.

Arms: none; learned rows, one for each patch; sinusoids of the row and the column, half of the width each; RoPE by the
running number; RoPE by the row and the column, half of a head each. Learned rows start with a deviation of sqrt(1/2),
the size of a sinusoid's entries: of 0.02, 1/8 and that, in pilots of the first with 1200 steps, the smaller ones were
behind by 0.18 and 0.11.

The learning rate of each arm is that with the lowest mean validation loss of two seeds that no reported run has, in
runs of 600 steps, among three; where it is the first or the last of them, the next one (a third or three times as high)
is tried too. Then five seeds.

What is compared, seed by seed; "early" is after the first layer, "late" after the last but one, since the last state is
normalised, which changes shares:

a. Right answers on the test: each arm with positions minus none; the sinusoids, and RoPE on two axes, minus learned;
   RoPE on two axes minus the sinusoids, and minus RoPE by the running number. (8)
b. The same images with sides twice as long, on which no model was trained: the learned rows interpolated (bicubically,
   as in ViT) minus the sinusoids, and minus RoPE on two axes, both as they are; of these two, interpolated minus as
   they are; RoPE on two axes minus RoPE by the running number. (5)
c. For each arm, early minus late: the share of the variance between patches that their places add to their contents,
   and of the nearest patches in images of other digits the share at the same place; late minus early: the share of the
   variance between classes, and of the nearest patches the share from the same class. (20)
d. For each arm with positions, early: the share that places add to contents minus the share that contents add to
   places; above zero, position dominates. (4)

Intervals are Student's over five seeds; p is corrected after Holm in one family with the text side's contrasts
(`studies.depth`). Untrained models, principal components, probes, and what it costs to take the place out
of the states of one layer (`posembed.layers.ablate`) are reported beside them, not tested.

What we expect: where rows are added, c holds, for the sum of all layers can only dilute them; d holds for learned rows
alone, which start the largest. RoPE adds nothing to the stream, so its early layers cannot be dominated by position:
there the share of places rises before it falls, if it falls at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from posembed.stats import Interval, difference
from posembed.training.config import RunConfig
from posembed.training.plans import Arm
from posembed.training.results import RunResult

from .training.settings import run_of

ARMS: dict[str, tuple[str, dict[str, Any]]] = {
    "none": ("nopos", {}),
    "learned": ("learned", {"learned": {"std": 0.5**0.5}}),
    "sinusoidal, 2-D": ("sinusoidal", {"sinusoidal": {"axes": 2}}),
    "rope, 1-D": ("rope", {}),
    "rope, 2-D": ("rope", {"rope": {"axes": (8, 8)}}),
}
RATES, TUNING_SEEDS, SEEDS = (1e-3, 3e-3, 1e-2), (11, 12), (1, 2, 3, 4, 5)
STEPS, TUNING_STEPS = 1200, 600
# By the rule of the plan, after an arm had chosen the first or the last rate.
FURTHER_RATES: dict[str, tuple[float, ...]] = {"none": (3e-4,)}
N_LAYERS, WIDTH, PATCHES = 6, 64, 36
EARLY, LATE = 1, N_LAYERS - 1
# The side of the enlarged images that are compared, in pixels.
TWICE = "24"


def run(
    arm: str, *, seed: int, rate: float = RATES[0], steps: int = STEPS, inspections: Sequence[str] = ()
) -> RunConfig:
    """One run of an arm of `ARMS`."""
    scheme, options = ARMS[arm]
    return run_of(
        objective="task",
        task="digits",
        length=PATCHES,
        scheme=scheme,
        scheme_options=options,
        n_layers=N_LAYERS,
        d_model=WIDTH,
        n_heads=4,
        weight_std=WIDTH**-0.5,
        scale_embeddings=False,
        batch_size=32,
        steps=steps,
        learning_rate=rate,
        seed=seed,
        inspections=list(inspections),
        preset="cpu",
    )


def arm_of(arm: str) -> Arm:
    """The runs of one arm of `ARMS` and those that choose its learning rate."""
    rates = sorted({*RATES, *FURTHER_RATES.get(arm, ())})
    return Arm(
        f"images, {arm}",
        tuple(run(arm, seed=seed, inspections=("patches",)) for seed in SEEDS),
        tuple(run(arm, seed=seed, rate=rate, steps=TUNING_STEPS) for rate in rates for seed in TUNING_SEEDS),
    )


def vision_arms() -> tuple[Arm, ...]:
    """All arms of the plan."""
    return tuple(arm_of(arm) for arm in ARMS)


def vision_contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """Compute all that was planned to be compared, a to d, as shares.

    Args:
        runs: of the plan, those that chose the rates among them.

    Raises:
        RunError: not all runs are there.
    """
    reported = {arm: arm_of(arm).reported(runs) for arm in ARMS}

    def between(one: str, other: str, of: Callable[[RunResult], float], of_other: Any = None) -> Interval:
        return difference([of(each) for each in reported[one]], [(of_other or of)(each) for each in reported[other]])

    found = _accuracies(between) | _enlarged(between)
    for arm in ARMS:
        for name, measure, kind, (one, other) in BY_DEPTH:
            found[f"images, {arm}: {name}"] = between(
                arm, arm, _state(measure, kind, one), _state(measure, kind, other)
            )
    place, contents = (_state("shares", kind, EARLY) for kind in ("place beyond contents", "contents beyond place"))
    for arm in [*ARMS][1:]:
        found[f"images, {arm}: early, place minus contents"] = between(arm, arm, place, contents)
    return found


# What c compares: its name, what is measured of which kind, and the states whose difference is taken.
BY_DEPTH = (
    ("share of place, early minus late", "shares", "place beyond contents", (EARLY, LATE)),
    ("neighbours at the same place, early minus late", "neighbours", "place", (EARLY, LATE)),
    ("share of class, late minus early", "shares", "class", (LATE, EARLY)),
    ("neighbours of the same class, late minus early", "neighbours", "class", (LATE, EARLY)),
)


def _accuracies(between: Callable[..., Interval]) -> dict[str, Interval]:
    none, learned, sinusoidal, by_number, axial = ARMS
    pairs = [(arm, none) for arm in (learned, sinusoidal, by_number, axial)]
    pairs += [(sinusoidal, learned), (axial, learned), (axial, sinusoidal), (axial, by_number)]
    return {
        f"images: {one} minus {other}": between(one, other, lambda result: result.metrics["accuracy"])
        for one, other in pairs
    }


def _enlarged(between: Callable[..., Interval]) -> dict[str, Interval]:
    _, learned, sinusoidal, by_number, axial = ARMS
    as_it_is, interpolated = _at(TWICE, "as it is"), _at(TWICE, "interpolated")
    named = "images twice as long"
    found = {
        f"{named}: {learned}, interpolated, minus {other}": between(learned, other, interpolated, as_it_is)
        for other in (sinusoidal, axial)
    }
    for arm in (sinusoidal, axial):
        found[f"{named}: {arm}, interpolated minus as it is"] = between(arm, arm, interpolated, as_it_is)
    return found | {f"{named}: {axial} minus {by_number}": between(axial, by_number, as_it_is)}


def _at(size: str, how: str) -> Callable[[RunResult], float]:
    return lambda result: result.metrics["patches"]["sizes"][size][how]


def _state(measure: str, kind: str, state: int) -> Callable[[RunResult], float]:
    return lambda result: result.metrics["patches"]["layers"][measure][kind][state]
