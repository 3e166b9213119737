"""The causes of `length`, one knob at a time: does what a longer text costs move as the formula says?

`length` compared schemes, and its formula (`studies.length_law`) did worse than copying the most similar scheme.
Schemes differ in many things at once. Here one number of one scheme is turned, and copying says that nothing happens.

Written before its runs. Known were those of `length` and `past-length`, which have RoPE's bases 100 and 10000, FIRE
from 512 and none as they are here (five runs each, taken over, not run again), T5 to 128 at three times the rate, and
T5 to 32 in `nopos`, whose rise at four times the length is a tenth of that to 128 (three runs, another rate); and that
FIRE from 32 and from 512 could not be told apart.

Models: those of `length`, 4 layers of width 64, pieces of 64 characters, start B, 1500 steps, seeds 1 to 5. The rate is
0.01 in all arms, which all twelve arms of `own-rates` chose, T5, RoPE, a table and none among them.

Doses, of which the law says something, for it reads them in a model at its trained length:

- T5, whose 32 buckets end at 32, 64, 128, 256 and 512. The first offset of an untrained bucket is none, none, 67, 64
  and 73.
- RoPE with a base of 100, 1000, 10000, 100000 and 1000000. Another base has other pairs that have not gone round.
- FIRE, whose threshold starts at 8, 128 and 512.

And changes of the training, of which it says nothing:

- Logits that grow with the logarithm of the number of keys (scalable softmax), for none, T5 and RoPE.
- Positions drawn from 256 in training, for a table and for RoPE (`studies.training.drawn`).
- RoPE trained on pieces of 256, eight a step, where the fastest pair turns 40 times and YaRN keeps it: asked at 512 and
  1024 under each scaling (`studies.training.stretched`).

Measured: as in `length`, without remedies.

The law, with its coefficients of before: R2 by seed over the ten doses that are not the usual one (128, 10000, 512), at
its nine lengths, and by scheme; the rival "as usual" says of each dose what the run of the same seed with the usual one
loses. It held for doses from 0.7 on, if the rival is not better; not below 0.3, or where the rival is better; in part
between. Also: in how many of the ten the mean rise at 256 lies on the side of the usual one that the law says.

Planned contrasts, nats a character, differences between runs with one seed, Student's 95 % interval, one family after
Holm; the rise is the loss at a length minus that at 64:

a. T5 to 32, 64, 256, 512, minus to 128: the rise at 256. (4)
b. RoPE with 100, 1000, 100000, 1000000, minus 10000: the rise at 128, and at 256. (8)
c. FIRE from 8 and 128, minus 512: the rise at 256. (2)
d. Scaled minus not, for none, T5 to 128, RoPE: the rise at 256; and the loss at 64. (6)
e. Drawn minus not, for a table and RoPE, each read as it was trained: the loss at 64, and at 256. (4)
f. Each of linear, NTK and YaRN minus none at 1024; YaRN minus NTK at 1024 and at 512. (5)

Added when all of the above was there, before its runs, for which the five models without any scheme are trained anew:
what a stack costs them may be its beginnings, of which such a model makes a mark. A stored model of another study loses
1.6 nats in a stack and 0.7 where its last block does not see the first token of the six added ones; hiding another
place changes that by less than 0.2.

g. none, in a stack of 256: without the first tokens of the added blocks, and without one in their middle, minus the
   whole stack; with their first tokens alone, and without these, minus none of them. A family of its own.

What we expect: without the first tokens it costs less by 0.5 at least, without the middle ones the same within 0.2; six
more first tokens alone cost 0.5 at least, and the other 186 keys cost less than 1, but not nothing.

And when the package had PoPE, before any of its models was trained: it gives each column of a head a magnitude by the
word and a phase by the position alone, and is said to read longer texts than it was trained on without further training
(Gopalakrishnan et al. 2025, at sizes from 124 million parameters on). Five seeds, the rate of RoPE and of all others.

h. PoPE minus RoPE with 10000: the loss at 64; the rise at 128 and at 256. A family of its own.

What we expect: at 64 it is within 0.05 of RoPE. If waves that have not gone round do the harm, it loses more than half
a nat at 128, for its columns have waves of 63, 112 and 199 among others; if the paper's finding holds at this size, it
loses less than half of what RoPE does at 256. We expect the first. The formula reads it as it reads RoPE, each column
by its share of the products of magnitudes.

And when f had been read: YaRN was not asked of RoPE trained on 64 because no pair turns 32 times there, but its ramp is
clipped, so the fastest pair keeps its speed there too. To be fair the five models of the base of 10000 are trained anew
and asked at two and four times 64 under each scaling. A stored model of another study loses 0.03 and 0.21 with YaRN
there, 1.2 and 2.4 without.

i. Trained on 64: each scaling minus none, and YaRN minus NTK, at 128 and at 256; and what YaRN loses at two and four
   times the length, trained on 64 minus trained on 256. A family of its own.

What we expect: YaRN takes most of the loss at both lengths, also trained on 64, and loses more there than trained on
256 at four times.

What counts as nothing: the 90 % interval lies within 0.02 nats of zero.

What we expect: T5 to 32 and to 64 lose less than 0.3 at 256, to 256 and to 512 as much as to 128 or more. RoPE: at 128
the base of 100000, whose third pair has a wave of 112, loses more than 10000, whose fourth has one of 199, and 1000000,
whose third has that of 199, as much. FIRE's start moves nothing by more than 0.1. Scaling takes less than a third of
what none loses, and moves T5 and RoPE by less than 0.2. Drawn positions take nearly all of the rise (less than 0.1 is
left) and cost 0.05 to 0.3 at 64. YaRN is the best of the scalings at 1024, and all three are better than none. The law
says the right side for seven of ten, and its R2 over doses is below 0.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from posembed import RunConfig, RunResult
from posembed.data import load_corpus
from posembed.stats import Interval, difference, interval
from posembed.training import run_grid

from .length_law import explained, predicted, rises
from .nopos import SMALL, run_of
from .search import Search
from .training.drawn import inspect_drawn
from .training.longer import LENGTHS, inspect_beginnings, inspect_longer
from .training.reach import inspect_reach
from .training.runs import train
from .training.settings import changed, setting
from .training.stretched import inspect_stretched

NAME = "length-doses"
SEEDS, RATE = (1, 2, 3, 4, 5), 1e-2
DRAWN_FROM, LONG = 256, 256
# By scheme the option that is turned, its doses, and the usual one.
DOSES: dict[str, tuple[str, tuple[float, ...], float]] = {
    "t5": ("max_distance", (32, 64, 128, 256, 512), 128),
    "rope": ("base", (1e2, 1e3, 1e4, 1e5, 1e6), 1e4),
    "fire": ("threshold", (8, 128, 512), 512),
}
SCALED = ("nopos", "t5", "rope")


def dose_name(scheme: str, dose: float) -> str:
    """The name of an arm, "rope, base 100"."""
    return f"{scheme}, {DOSES[scheme][0]} {dose:.0f}"


def usual(scheme: str) -> str:
    """The arm that others of the scheme are compared with."""
    return dose_name(scheme, DOSES[scheme][2]) if scheme in DOSES else scheme


def _run(scheme: str, **changes: Any) -> RunConfig:
    return run_of(SMALL, scheme, learning_rate=RATE, **({"test_length": None} | changes))


def _dose(scheme: str, dose: float) -> RunConfig:
    option, _, of_old = DOSES[scheme]
    return _run(scheme, **({} if dose == of_old else {"scheme_options": {scheme: {option: dose}}}))


def runs() -> dict[str, RunConfig]:
    """By arm a run, its seed a placeholder."""
    doses = {dose_name(name, dose): _dose(name, dose) for name, (_, its, _) in DOSES.items() for dose in its}
    table = {"test_length": DRAWN_FROM}
    return {
        **doses,
        "nopos": _run("nopos"),
        "pope": _run("pope"),
        **{f"{name}, scaled": _run(f"scaled_logits+{name}") for name in SCALED},
        "learned": _run("learned", **table),
        "learned, drawn": changed(_run("learned", **table), drawn_positions=DRAWN_FROM),
        "rope, drawn": changed(_run("rope"), drawn_positions=DRAWN_FROM),
        "rope, long": _run("rope", length=LONG, batch_size=SMALL.batch_size * SMALL.length // LONG),
    }


def arms(_: Sequence[RunResult] = ()) -> list[Search]:
    """All arms."""
    return [Search(name, run, SEEDS) for name, run in runs().items()]


def run_study(out: Path, **how: Any) -> None:
    """Train what is not there, all arms of a seed before the next, and ask."""
    run_grid([replace(each.run, seed=seed) for seed in SEEDS for each in arms()], out=out, train=trained, **how)


def trained(run: RunConfig, **how: Any) -> RunResult:
    """Train a run and ask what is asked of its arm."""
    result = train(run, **how)
    asked = {name: ask(result.model, run, load_corpus(run.data)) for name, ask in asked_of(run).items()}
    return replace(result, metrics=result.metrics | asked)


def asked_of(run: RunConfig) -> dict[str, Callable[..., Any]]:
    """The inspections of a run."""
    if run.length == LONG:
        return {"stretched": inspect_stretched}
    if run.scheme == "learned" or setting(run, "drawn_positions"):
        return {"drawn": lambda *given: inspect_drawn(*given, DRAWN_FROM)}
    found: dict[str, Callable[..., Any]] = {"longer": inspect_longer}
    if run.scheme == "nopos":
        found["beginnings"] = inspect_beginnings
    if run == replace(runs()[usual("rope")], seed=run.seed):
        found["stretched"] = inspect_stretched
    return found if "+" in run.scheme else found | {"reach": inspect_reach}


def contrasts(results: Sequence[RunResult]) -> dict[str, Interval]:
    """All that was planned but for the law, in nats a character."""
    asked = {each.name: [run.metrics for run in each.reported(results)] for each in arms()}

    def loss(name: str, n: int) -> list[float]:
        if "drawn" in asked[name][0]:
            how = "drawn" if name.endswith("drawn") else "as they stand"
            return [its["drawn"][how][str(n)] for its in asked[name]]
        return [its["longer"]["plain"][str(n)] for its in asked[name]]

    def rise(name: str, n: int) -> list[float]:
        return [far - near for far, near in zip(loss(name, n), loss(name, 64), strict=True)]

    found = {}
    for scheme, (_, doses, of_old) in DOSES.items():
        for n in (128, 256) if scheme == "rope" else (256,):
            for dose in doses:
                if dose != of_old:
                    its = rise(dose_name(scheme, dose), n)
                    found[f"{dose_name(scheme, dose)} minus {of_old:.0f}: rise at {n}"] = difference(
                        its, rise(usual(scheme), n)
                    )
    for scheme in SCALED:
        its, other = f"{scheme}, scaled", usual(scheme)
        found[f"{its} minus not: rise at 256"] = difference(rise(its, 256), rise(other, 256))
        found[f"{its} minus not: loss at 64"] = difference(loss(its, 64), loss(other, 64))
    for scheme in ("learned", "rope"):
        for n in (64, 256):
            its, other = loss(f"{scheme}, drawn", n), loss(usual(scheme), n)
            found[f"{scheme}, drawn minus not: loss at {n}"] = difference(its, other)
    pairs = [(name, "none", 4) for name in ("linear", "ntk", "yarn")] + [("yarn", "ntk", 4), ("yarn", "ntk", 2)]
    for one, other, factor in pairs:
        its = [[each["stretched"][name][str(factor * LONG)] for each in asked["rope, long"]] for name in (one, other)]
        found[f"{one} minus {other}, trained on {LONG}: loss at {factor * LONG}"] = difference(*its)
    return found


def added_contrasts(results: Sequence[RunResult]) -> dict[str, Interval]:
    """What was added, of models without any scheme, in nats a character."""
    none = next(each for each in arms() if each.name == "nopos")
    asked = [run.metrics["beginnings"] for run in none.reported(results)]
    pairs = [("first", "all"), ("middle", "all"), ("but the first", "none"), ("first", "none")]
    names = {
        "all": "all of them",
        "none": "none of them",
        "first": "without first tokens",
        "middle": "without middle tokens",
        "but the first": "first tokens alone",
    }
    return {
        f"nopos, added blocks: {names[one]} minus {names[other]}": difference(
            [its[one] for its in asked], [its[other] for its in asked]
        )
        for one, other in pairs
    }


def pope_contrasts(results: Sequence[RunResult]) -> dict[str, Interval]:
    """PoPE beside RoPE, in nats a character."""
    plain = {
        each.name: [run.metrics["longer"]["plain"] for run in each.reported(results)]
        for each in arms()
        if each.name in ("pope", usual("rope"))
    }
    found = {}
    for what, n in (("loss", 64), ("rise", 128), ("rise", 256)):
        at = {name: [its[str(n)] - (what == "rise") * its["64"] for its in asked] for name, asked in plain.items()}
        found[f"pope minus rope: {what} at {n}"] = difference(at["pope"], at[usual("rope")])
    return found


def short_contrasts(results: Sequence[RunResult]) -> dict[str, Interval]:
    """The scalings of RoPE trained on 64, beside none and beside those trained on 256, in nats a character."""
    asked = {
        each.name: [run.metrics["stretched"] for run in each.reported(results)]
        for each in arms()
        if each.name in ("rope, long", usual("rope"))
    }
    found = {}
    for factor in (2, 4):
        at = {
            name: {how: [its[how][str(factor * n)] for its in asked[name]] for how in asked[name][0]}
            for name, n in (("rope, long", LONG), (usual("rope"), 64))
        }
        for one, other in [(name, "none") for name in ("linear", "ntk", "yarn")] + [("yarn", "ntk")]:
            short = at[usual("rope")]
            found[f"{one} minus {other}, trained on 64: loss at {64 * factor}"] = difference(short[one], short[other])
        costs = [
            [loss - its["none"][str(n)] for loss, its in zip(at[name]["yarn"], asked[name], strict=True)]
            for name, n in ((usual("rope"), 64), ("rope, long", LONG))
        ]
        found[f"yarn, trained on 64 minus trained on {LONG}: rise at {factor} times"] = difference(*costs)
    return found


def law_contrasts(results: Sequence[RunResult]) -> dict[str, Interval]:
    """How well the law says what doses lose, as R2 by seed, and its R2 minus that of "as usual"."""
    reported, found = {each.name: each.reported(results) for each in arms()}, {}
    doses = {name: [dose_name(name, dose) for dose in its if dose != old] for name, (_, its, old) in DOSES.items()}
    for kind, by_scheme in {"all doses": doses, **{name: {name: its} for name, its in doses.items()}}.items():
        verdicts = []
        for place in range(len(SEEDS)):
            its = [
                (reported[name][place], reported[usual(scheme)][place])
                for scheme in by_scheme
                for name in doses[scheme]
            ]
            seen = [rises(run) for run, _ in its]
            verdicts.append(
                (
                    explained([predicted(run, "law") for run, _ in its], seen),
                    explained([rises(old) for _, old in its], seen),
                )
            )
        law, rival = zip(*verdicts, strict=True)
        found[f"{kind}: law"] = interval(law)
        found[f"{kind}: law minus as usual"] = difference(law, rival)
    return found


def right_sides(results: Sequence[RunResult]) -> Mapping[str, bool]:
    """By dose whether its mean rise at 256 lies on the side of the usual one that the law says."""
    reported, place = {each.name: each.reported(results) for each in arms()}, LENGTHS.index(256)

    def mean(name: str, of: Callable[[RunResult], Sequence[float]]) -> float:
        return float(np.mean([of(run)[place] for run in reported[name]]))

    def side(name: str, other: str, of: Callable[[RunResult], Sequence[float]]) -> bool:
        return mean(name, of) > mean(other, of)

    return {
        dose_name(scheme, dose): side(dose_name(scheme, dose), usual(scheme), rises)
        == side(dose_name(scheme, dose), usual(scheme), lambda run: predicted(run, "law"))
        for scheme, (_, doses, of_old) in DOSES.items()
        for dose in doses
        if dose != of_old
    }
