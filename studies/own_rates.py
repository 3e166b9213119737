"""Rates of their own: does the order of the schemes of chapters 3 and 4 stand where rates are tuned over whole runs?

In *one-start* each scheme's rate was chosen in runs of 500 steps and used for 1500. That chose 0.03 for the learned
table, the sines and T5, and 0.01 for the others; in the study `ladder`, whose trials are as long as its runs, a table
of nearly this size is better at 0.01. In *encodings* (start A) trials were whole runs, but one a rate.

Written before its runs. Known then, beside these studies: of start B one run each of the table and of the sines at
0.01, whose losses are 1.314 and 1.318, lower than with 0.03 by 0.024 and 0.054; and of start A five runs of the table
at 0.01, which are level with the sines.

Arms: from start B all eight schemes, from start A none and the three absolute ones. Models, text, steps and reported
seeds are those of the two studies; reported runs that have the same settings are taken over. Rates: two trial seeds,
runs of 1500 steps, three rates by steps of about three, more at an edge.

Planned contrasts of the loss of the test text, each the mean of differences between runs with the same seed, Student's
95 % interval, Holm within a family:

Primary:

a. In each start: learned, and learnable sinusoidal, minus sinusoidal.
b. In start B: each of the four relative schemes minus each of the three absolute ones.

Secondary:

c. In each start: each scheme minus none.
d. Start B minus A: of the two differences in a.
e. In start B: each scheme past the trained length, the loss at positions 64 to 511 minus that at 48 to 63.

What counts as equal: as in one-start, the 90 % interval lies within 0.02 nats of zero.

What we expect. All rates are 0.01 or lower but perhaps T5's. a: from both starts learned and sinusoidal are equal, and
learnable sinusoidal loses no less than sinusoidal. b: each relative scheme is ahead of each absolute one in the mean,
ALiBi by less than 0.02. d: both differences of differences lie within 0.02 of zero. e: as before, Shaw and ALiBi stay
within 0.05 and all others lose more than half a nat.

Added when these results had been seen, and before its runs. The five pairs of a in start A were taken over from
*encodings* and known. In the two pairs of trials at the same rate the table is behind by 0.061 and 0.046. So eight
further seeds of both from start A, at the rate that was chosen, asked for this loss alone:

f. In start A, later seeds: learned minus sinusoidal, with the same margin, a family of its own.

Nothing is expected: the five pairs say level, the two say behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from posembed import RunResult
from posembed.stats import Interval, difference
from posembed.training import RunConfig

from . import encodings, one_start
from .search import Search

NAME = "own-rates"
ABSOLUTE, RELATIVE = encodings.ABSOLUTE[1:], encodings.RELATIVE
TRIAL_SEEDS, RATES = (0, 6), (3e-3, 1e-2, 3e-2)
LATER_SEEDS = tuple(range(7, 15))
OF_START = {
    "A": {name: encodings.arm(name).runs[0] for name in encodings.ABSOLUTE},
    "B": {name: one_start.arm(name).run for name in one_start.SCHEMES},
}


def arm(scheme: str, start: str, run: RunConfig) -> Search:
    """The runs of a scheme from a start; trials are the same but for the longer texts, which they are not asked."""
    trial = replace(run, test_length=None, test_scalings=())
    return Search(f"{scheme}, start {start}", run, one_start.SEEDS, trial, TRIAL_SEEDS, RATES)


def arms(_: Sequence[RunResult] = ()) -> list[Search]:
    """All arms."""
    found = [arm(scheme, start, run) for start, its in OF_START.items() for scheme, run in its.items()]
    pair = [each for each in found if each.name in ("learned, start A", "sinusoidal, start A")]
    return found + [
        replace(each, name=f"{each.name}, later seeds", seeds=LATER_SEEDS, run=each.trial or each.run) for each in pair
    ]


def contrasts(runs: Sequence[RunResult]) -> dict[str, dict[str, Interval]]:
    """All that was planned, by family, in nats a character."""
    reported = {each.name: each.reported(runs) for each in arms()}
    loss = {name: [run.metrics["loss"] for run in its] for name, its in reported.items()}

    def minus(one: str, other: str, start: str) -> list[float]:
        return [a - b for a, b in zip(loss[f"{one}, start {start}"], loss[f"{other}, start {start}"], strict=True)]

    pairs = [(one, "sinusoidal") for one in ("learned", "learnable_sinusoidal")]
    primary = {f"{a} minus {b}, start {s}": minus(a, b, s) for s in OF_START for a, b in pairs}
    primary |= {f"{a} minus {b}, start B": minus(a, b, "B") for a in RELATIVE for b in ABSOLUTE}
    found = {name: difference(gaps, [0.0] * len(gaps)) for name, gaps in primary.items()}
    secondary = {
        f"{scheme} minus nopos, start {s}": difference(loss[f"{scheme}, start {s}"], loss[f"nopos, start {s}"])
        for s, its in OF_START.items()
        for scheme in its
        if scheme != "nopos"
    }
    secondary |= {f"{a} minus {b}, start B minus A": difference(minus(a, b, "B"), minus(a, b, "A")) for a, b in pairs}
    for scheme in OF_START["B"]:
        its = reported[f"{scheme}, start B"]
        secondary[f"{scheme}, past the trained length"] = encodings.past_the_trained_length(its)
    later = (f"{scheme}, start A, later seeds" for scheme in ("learned", "sinusoidal"))
    fresh = {"learned minus sinusoidal, start A, later seeds": difference(*(loss[name] for name in later))}
    return {"primary": found, "secondary": secondary, "later seeds": fresh}
