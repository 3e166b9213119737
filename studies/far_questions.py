"""Asked about what stands far back: does a scheme *read* further than it was trained, or is it only not harmed?

In the study `length` no model gains by a longer text, and none reads further back than 32 characters even within its
trained length. So a flat loss there says that the far past does no harm, and nothing of whether it could be read. Here
the answers stand far back: texts end in four questions (`studies.training.questions`), the first letter, a needle,
induction and counting.

Written before its reported runs. Known then: one run each of RoPE and ALiBi, seed 0, of a trial of the set-up: both
learn all four in 2000 steps (ALiBi induction to 0.86); at twice the length RoPE answers the first letter and counting
no more, at eight times nothing; ALiBi keeps the first letter, the needle and induction at eight times, and loses
counting. Of no positions it was seen that after 500 steps it counts and knows the first letter, and neither other.

Models: two layers of width 64, 4 heads, start B, 2000 steps of 64 texts of 34 to 64 tokens, the eight of the questions
among them; the loss is that of the four answers. Two layers are the fewest that find a pair by its first token.

Arms: the twelve schemes of *After NoPos*, and the forgetting Transformer. Rates: two trial seeds, 1000 steps, three
rates by steps of about three, more at an edge. Three seeds.

Measured: the share of right answers at 64 tokens, as many as the longest of the training, and at 96, 128, 256 and 512;
on the beginning and the last 63 alone; with a gap, as in the study `length`; of the key and the name apart, those that
stand further back than any in the training.

Planned contrasts, shares of right answers, by question; differences between runs with the same seed, Student's 95 %
interval, one family after Holm. Of the schemes that answer a question at 64 at least half the time, in the mean of the
seeds; of others nothing is compared, for they have nothing to lose:

a. At 256 minus at 64: what is lost.
b. At 256 minus the beginning and the last 63 alone: what is read beyond the trained length.
c. With the gap of 256 minus without: new offsets, and no more keys.

What counts as nothing: the 90 % interval lies within 0.05 of zero.

What we expect. At 64: all schemes answer first and counting; none, sinusoidal and CoPE do worse than RoPE in needle and
induction. At 256: Shaw, ALiBi, KERPLE and forgetting keep at least three quarters of needle and induction, and read
them where they stand further back than in any training; learned, both sinusoidal ones, T5, RoPE and xPos lose more than
half of each; FIRE lies between. Nobody keeps counting: among more keys each mark weighs less. The gap costs learned,
both sinusoidal ones, T5, RoPE and xPos more than a quarter of needle and induction, and Shaw, ALiBi, KERPLE nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from posembed import RunResult
from posembed.stats import Interval, difference

from .nopos import ALL_SCHEMES
from .search import Search
from .training.questions import LENGTHS, QUESTIONS
from .training.questions import NAME as TASK
from .training.settings import FIRST, changed

NAME = "far-questions"
SCHEMES = (*ALL_SCHEMES, "forgetting")
SEEDS, TRIAL_SEEDS = (1, 2, 3), (0, 6)
RATES, TRIAL_STEPS = (3e-3, 1e-2, 3e-2), 1000
TRAINED, COMPARED = 64, "256"
MARGIN, LEARNED = 0.05, 0.5
WIDTH = 64
START_B = replace(
    FIRST,
    length=TRAINED,
    test_length=max(LENGTHS),
    n_layers=2,
    d_model=WIDTH,
    scale_embeddings=False,
    weight_std=WIDTH**-0.5,
    batch_size=64,
    steps=2000,
    preset="cpu",
)


def arm(scheme: str) -> Search:
    """The runs of a scheme."""
    options = {"learned": {"std": START_B.weight_std}} if scheme == "learned" else {}
    run = changed(replace(START_B, scheme=scheme, scheme_options=options), task=TASK)
    return Search(scheme, run, SEEDS, replace(run, steps=TRIAL_STEPS, test_length=None), TRIAL_SEEDS, RATES)


def arms(_: Sequence[RunResult] = ()) -> list[Search]:
    """All arms."""
    return [arm(scheme) for scheme in SCHEMES]


def contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """All that was planned, in shares of right answers."""
    found = {}
    for each in arms():
        asked = [run.metrics["asked"] for run in each.reported(runs)]
        for question in QUESTIONS:
            short = [its["plain"][str(TRAINED)][question] for its in asked]
            if fmean(short) < LEARNED:
                continue
            plain, last, gap = ([its[way][COMPARED][question] for its in asked] for way in ("plain", "last", "gap"))
            found[f"{each.name}, {question}: at {COMPARED} minus at {TRAINED}"] = difference(plain, short)
            found[f"{each.name}, {question}: at {COMPARED} minus its end alone"] = difference(plain, last)
            found[f"{each.name}, {question}: gap minus none"] = difference(gap, short)
    return found
