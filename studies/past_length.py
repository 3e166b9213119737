"""Past the trained length, fairly: what of the loss there is the scheme, and what is how it was asked.

*After NoPos* compares twelve schemes at positions 64 to 255 of models that were trained on 64. Four things stood in the
way of a fair comparison. FIRE ran with a threshold that starts at 512, beyond the longest test. xPos ran without the
blockwise attention that belongs to it (Sun et al. 2023). Nothing said what a scheme would lose if its model simply read
the last tokens alone, as any model can. And rates had been chosen by one seed each.

Written before its runs. Known then: the losses of the study `nopos` at 64 to 255 (none 2.43, RoPE 2.92, ALiBi 1.28,
xPos 2.34, FIRE 1.43; at 48 to 63 they are 1.20 to 1.40), that after 500 steps FIRE's rise is .155 from a threshold of
512 and .183 from 32, intervals overlapping, and that with the last 64 alone a loss near 1.20 was estimated.

Models: those of *No positions at all*, 4 layers of width 64, pieces of 64 characters, start B, 1500 steps. Arms: none,
RoPE, ALiBi, xPos, FIRE with a threshold that starts at 512, and at 32; five seeds. Rates: two trial seeds, runs as long
as the reported ones, three rates by steps of about three, more at an edge. (Until `own-rates` had shown what short
trials choose, runs of 500 steps were planned; no run had been made. Trials of none, RoPE and ALiBi are the same runs as
in that study, and taken over.)

Measured (`studies.training.far`), of the same guesses at positions up to 255: reading all that stands before; past 64
reading the last 63 characters alone, as many as in the training; reading in blocks of 32, each with the one before.

Planned contrasts, means over positions 64 to 255, differences between runs with the same seed, Student's 95 % interval,
one family after Holm:

a. FIRE from 32 minus from 512: the rise, that is the loss at 64 to 255 minus that at 48 to 63.
b. xPos, and RoPE: in blocks minus as it is.
c. Each of none, RoPE, ALiBi, xPos in blocks, FIRE from 512, as it is, minus none with the last 63; and the same minus
   RoPE with the last 63. A scheme that *reads* further has less than a model that looks no further than its training.

What counts as equal: the 90 % interval lies within 0.02 nats on both sides.

What we expect: FIRE's start makes no difference after 1500 steps; blocks take from xPos and from RoPE nearly all of the
rise; with the last 63 alone RoPE is better than every scheme as it is but ALiBi, and no worse than ALiBi; none with the
last 63 is better than none as it is by a nat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from posembed import RunResult
from posembed.stats import Interval, difference
from posembed.training.measure import GROUP

from .nopos import SMALL, run_of
from .search import Search
from .training.settings import changed

NAME = "past-length"
SEEDS, TRIAL_SEEDS, RATES = (1, 2, 3, 4, 5), (0, 6), (3e-3, 1e-2, 3e-2)
MARGIN = 0.02
# The scheme of each arm, and where FIRE's threshold starts.
SCHEMES: dict[str, tuple[str, int | None]] = {
    "none": ("nopos", None),
    "rope": ("rope", None),
    "alibi": ("alibi", None),
    "xpos": ("xpos", None),
    "fire, 512": ("fire", None),
    "fire, 32": ("fire", 32),
}


def arm(name: str) -> Search:
    """The runs of an arm."""
    scheme, threshold = SCHEMES[name]
    options = {} if threshold is None else {"scheme_options": {"fire": {"threshold": threshold}}}
    run = replace(run_of(SMALL, scheme, **options), test_length=None)
    return Search(name, changed(run, inspections=["far"]), SEEDS, run, TRIAL_SEEDS, RATES)


def arms(_: Sequence[RunResult] = ()) -> list[Search]:
    """All arms."""
    return [arm(name) for name in SCHEMES]


def contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """All that was planned, in nats a character."""
    far = {each.name: [run.metrics["far"] for run in each.reported(runs)] for each in arms()}

    def past(name: str, how: str) -> list[float]:
        return [fmean(its[how][64 // GROUP :]) for its in far[name]]

    def rise(name: str) -> list[float]:
        before = [its["as it is"][48 // GROUP] for its in far[name]]
        return [after - end for after, end in zip(past(name, "as it is"), before, strict=True)]

    found = {"fire: rise, from 32 minus from 512": difference(rise("fire, 32"), rise("fire, 512"))}
    for name in ("xpos", "rope"):
        found[f"{name}: in blocks minus as it is"] = difference(past(name, "blocks"), past(name, "as it is"))
    read = {name: "blocks" if name == "xpos" else "as it is" for name in ("none", "rope", "alibi", "xpos", "fire, 512")}
    for other in ("none", "rope"):
        for name, how in read.items():
            found[f"{name}, {how}, minus {other}, last 63"] = difference(past(name, how), past(other, "last"))
    return found
