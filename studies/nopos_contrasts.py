"""What was to be compared, computed from the runs; the letters are those of the plan."""

from __future__ import annotations

from collections.abc import Sequence

from posembed.data import frequency_loss
from posembed.errors import RunError, shown
from posembed.stats import Interval, difference
from posembed.training.measure import GROUP, mean_between
from posembed.training.results import RunResult

from .nopos import ALL_SCHEMES, ARMS, DROPPED, FEW_SEEDS, OTHER_LENGTHS, OTHER_RATES, SCHEMES

BY_NAME = {arm.name: arm for arms in ARMS.values() for arm in arms}
# E and f: compared at the trained length, and past it.
PAST = {"rope in three layers of four minus rope": ("causal, rope in three layers of four", "few, rope")}
for _scheme in DROPPED:
    _without = f"causal, {_scheme}, further without"
    PAST[f"{_scheme}, further: without minus with"] = (_without, f"causal, {_scheme}, further")
    PAST[f"{_scheme}, further without, minus nopos"] = (_without, "causal, nopos, further")
# A, b and c, and those: each one part minus another.
LOSSES = {
    **{f"causal: {each} minus nopos": (f"causal, {each}", "causal, nopos") for each in SCHEMES[1:]},
    **{f"larger: {each} minus nopos": (f"larger, {each}", "larger, nopos") for each in ("learned", "alibi")},
    **{
        f"larger, length {length}: learned minus nopos": (
            f"larger, learned, length {length}",
            f"larger, nopos, length {length}",
        )
        for length in OTHER_LENGTHS
    },
    "masked: learned minus nopos": ("masked, learned", "masked, nopos"),
    **{
        f"masked, {rate:.0%} hidden: learned minus nopos": (
            f"masked, learned, {rate:.0%} hidden",
            f"masked, nopos, {rate:.0%} hidden",
        )
        for rate in OTHER_RATES
    },
    **PAST,
}


def reported(name: str, runs: Sequence[RunResult]) -> list[RunResult]:
    """The runs of a part with the learning rate that was chosen for it, one for each seed, in order.

    Args:
        name: of the part.
        runs: of the study, those that chose the rate among them.

    Raises:
        RunError: no such part, or one whose runs are not all there.
    """
    if name not in BY_NAME:
        raise RunError(f"there is no arm {shown(name)}; there are: {'; '.join(BY_NAME)}")
    return BY_NAME[name].reported(runs)


def contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """Compute every planned contrast; losses in nats a character, errors of probes in positions.

    Raises:
        RunError: a part that is not complete.
    """
    parts = {name: reported(name, runs) for name in BY_NAME}
    # E compares as many seeds as both have.
    parts["few, rope"] = parts["causal, rope"][: len(FEW_SEEDS)]
    nopos = [run.metrics["loss"] for run in parts["masked, nopos"]]
    return {
        **{name: difference(*(_losses(parts[part]) for part in pair)) for name, pair in LOSSES.items()},
        "masked: nopos minus frequency": difference(nopos, [frequency_loss()] * len(nopos)),
        **{f"past the trained length: {each}": rise_past(parts[f"causal, {each}"]) for each in ALL_SCHEMES},
        **{
            f"{name}, past the trained length": difference(*([loss_past(run) for run in parts[part]] for part in pair))
            for name, pair in PAST.items()
        },
        **_layers(parts),
    }


def loss_past(run: RunResult, first: int = 64, end: int = 256) -> float:
    """The mean loss of a run at positions from ``first`` to before ``end``, both multiples of 16.

    Raises:
        RunError: the run was not tested there.
    """
    losses = run.metrics.get("loss_by_position", [])
    if first % GROUP or end % GROUP or not 0 <= first < end <= len(losses) * GROUP:
        raise RunError(
            f"the run {run.config.key} has no loss at positions {first} to {end - 1} in groups of {GROUP}; "
            "choose others"
        )
    return mean_between(losses, first, end)


def rise_past(runs: Sequence[RunResult]) -> Interval:
    """By how much the loss past the trained length is above that at the end of it, in nats; one number for each run.

    The mean at positions 64 to 255 minus the mean at 48 to 63; 0 where a model does not notice the end.

    Raises:
        RunError: a run that was not tested there, or fewer than two runs.
    """
    return difference([loss_past(run) for run in runs], [loss_past(run, 48, 64) for run in runs])


def lowest_error(run: RunResult, inspection: str = "layers") -> float:
    """The lowest error of the probe over all layers that attend, in positions.

    Raises:
        RunError: the layers of the run were not probed.
    """
    if inspection not in run.metrics:
        raise RunError(f"the run {run.config.key} has no inspection {inspection!r}; choose one that has")
    return min(run.metrics[inspection]["mae"][1:])


Parts = dict[str, list[RunResult]]


def _losses(runs: Sequence[RunResult]) -> list[float]:
    return [run.metrics["loss"] for run in runs]


def _layers(parts: Parts) -> dict[str, Interval]:
    """G and h."""
    found: dict[str, Interval] = {}
    for size in ("causal", "larger"):
        nopos, learned = parts[f"{size}, nopos"], parts[f"{size}, learned"]
        errors = [lowest_error(run) for run in nopos]
        untrained = [lowest_error(run, "untrained") for run in nopos]
        found[f"{size}, probe: nopos, trained minus untrained"] = difference(errors, untrained)
        found[f"{size}, probe: nopos minus learned"] = difference(errors, [lowest_error(run) for run in learned])
        found[f"{size}, shuffled prefix: nopos minus learned"] = difference(_lost(nopos), _lost(learned))
    masked = parts["masked, nopos"]
    middle = [run.metrics["layers"]["middle_guess"] for run in masked]
    found["masked, probe: nopos minus the middle"] = difference([lowest_error(run) for run in masked], middle)
    return found


def _lost(runs: Sequence[RunResult]) -> list[float]:
    return [run.metrics["prefix"]["shuffled"] - run.metrics["prefix"]["intact"] for run in runs]
