"""Each study as the package ships it: its plan in words, its arms, its runs and its contrasts in one file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

from posembed.errors import RunError
from posembed.stats import Interval
from posembed.stored.studies import bundle
from posembed.training import RunResult, read_results, read_tables
from posembed.training.plans import Plan

from . import (
    beginning,
    causes,
    depth,
    doses,
    encodings,
    far_questions,
    images,
    ladder,
    length,
    length_doses,
    length_law,
    nopos,
    nopos_contrasts,
    nopos_large,
    once_or_again,
    one_start,
    own_rates,
    past_length,
    starts,
    trained_tables,
)
from . import which_positions as positions

Families: TypeAlias = Mapping[str, Mapping[str, Interval]]
Runs: TypeAlias = Sequence[RunResult]


@dataclass(frozen=True)
class Shipped:
    """A study that ships.

    Attributes:
        told: the modules whose docstrings are its plan in words.
        plan: its arms; what is trained further needs the runs that it goes on from.
        contrasts: what was to be compared, by family, from its runs and the folder that they are in.
    """

    told: tuple[ModuleType, ...]
    plan: Callable[[Runs], Plan]
    contrasts: Callable[[Runs, Path], Families]


def _tasks(runs: Runs) -> Plan:
    return Plan(doses.NAME, (*doses.dose_arms(), *positions.pretraining_arms(), *positions.further_arms(runs)))


def _of_tasks(runs: Runs, _: Path) -> Families:
    return {
        "doses": doses.contrasts(runs),
        "doses, longer": doses.longer_contrasts(runs),
        "schemes": positions.contrasts(runs),
    }


def _searched(study: ModuleType, contrasts: Callable[[Runs, Path], Mapping[str, Interval]] | None = None) -> Shipped:
    """A study whose rates were searched."""
    return Shipped(
        (study,),
        lambda runs: Plan(study.NAME, tuple(each.arm(runs) for each in study.arms(runs))),
        lambda runs, folder: {"planned": contrasts(runs, folder) if contrasts else study.contrasts(runs)},
    )


def _with_law(study: ModuleType) -> Callable[[Runs, Path], Families]:
    return lambda runs, _: {"planned": study.contrasts(runs), "law": study.law_contrasts(runs)}


SHIPPED = {
    beginning.NAME: _searched(beginning),
    causes.NAME: _searched(causes),
    depth.NAME: Shipped((depth, images), lambda _: depth.plan(), lambda runs, _: {"planned": depth.contrasts(runs)}),
    encodings.NAME: Shipped(
        (encodings,), lambda _: encodings.plan(), lambda runs, _: {"planned": encodings.contrasts(runs)}
    ),
    far_questions.NAME: replace(_searched(far_questions), contrasts=lambda runs, _: far_questions.contrasts(runs)),
    ladder.NAME: _searched(ladder),
    length.NAME: replace(_searched(length), told=(length, length_law), contrasts=_with_law(length)),
    length_doses.NAME: replace(
        _searched(length_doses),
        contrasts=lambda runs, folder: {
            **_with_law(length_doses)(runs, folder),
            "added": length_doses.added_contrasts(runs),
            "pope": length_doses.pope_contrasts(runs),
            "short": length_doses.short_contrasts(runs),
        },
    ),
    nopos.NAME: Shipped((nopos,), lambda _: nopos.plan(), lambda runs, _: {"planned": nopos_contrasts.contrasts(runs)}),
    nopos_large.NAME: Shipped(
        (nopos_large,), lambda _: nopos_large.plan(), lambda runs, _: {"planned": nopos_large.contrasts(runs)}
    ),
    once_or_again.NAME: _searched(once_or_again),
    one_start.NAME: _searched(
        one_start, lambda runs, folder: one_start.contrasts(runs, read_results(folder.parent / encodings.NAME))
    ),
    own_rates.NAME: replace(_searched(own_rates), contrasts=lambda runs, _: own_rates.contrasts(runs)),
    past_length.NAME: _searched(past_length),
    starts.NAME: Shipped((starts,), lambda _: starts.plan(), lambda runs, _: {"planned": starts.contrasts(runs)}),
    doses.NAME: Shipped((doses, positions), _tasks, _of_tasks),
    trained_tables.NAME: Shipped(
        (trained_tables,),
        lambda _: trained_tables.plan(),
        lambda runs, folder: {"planned": trained_tables.contrasts(runs, read_tables(folder))},
    ),
}


def bundle_of(name: str, folder: Path) -> bytes:
    """The content of a study's file.

    Args:
        name: of `SHIPPED`.
        folder: of its results.

    Raises:
        RunError: runs of the plan are not there.
    """
    study, runs = SHIPPED[name], read_results(folder)
    plan = with_rates(study.plan(runs), runs)
    about = "\n\n".join((module.__doc__ or "").strip() for module in study.told)
    # As they stand in their files, for a setting that has been retired since is not lost; in the order of their keys.
    stored = {run.config.key: json.loads((folder / f"{run.config.key}.json").read_text("utf-8")) for run in runs}
    return bundle(about, plan, stored, study.contrasts(runs, folder))


def with_rates(plan: Plan, runs: Runs) -> Plan:
    """The plan with the learning rates that its trials have chosen."""
    arms = []
    for arm in plan.arms:
        if (chosen := arm.chosen(runs)) is None:
            raise RunError(f"the arm {arm.name!r} of {plan.name} has no trials yet; run its study")
        arms.append(replace(arm, runs=chosen))
    return replace(plan, arms=tuple(arms))
