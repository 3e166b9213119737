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

Arms: no positions, and of each kind of scheme one: a table, clipped offsets (Shaw), buckets (T5), a penalty (ALiBi),
rotations (RoPE), a function of the distance (FIRE), and the forgetting Transformer. Rates: two trial seeds, 1000 steps,
three rates by steps of about three, more at an edge. Five seeds. While the trials ran, and before any reported run, a
reader of this plan asked for five seeds in place of three, for two families, for answers that stand further back than
two layers can hand on, and for a gap of 64 in place of 192, at which RoPE's fourth pair has come round; and five
schemes left for want of time: both sinusoidal ones, xPos, KERPLE and CoPE.

Measured: the share of right answers at 64 tokens, as many as the longest of the training, and at 96, 128, 256 and 512;
on the beginning and the last 63 alone; with a gap, as in the study `length`, of answers that stand in the half that is
moved away; of the key and the name alone, those that stand more than 120 tokens back. A guess is right in 1/16 of the
letters and 1/8 of the counts; who knows the letters behind the names and not the names, in 0.29 of induction.

Planned contrasts, shares of right answers, by question; differences between runs with the same seed, Student's 95 %
interval, Holm within each family. Of the runs that answer the question at 64 at least half the time, and of schemes
with three such runs at least; the others have nothing to lose, and may have had the wrong rate, for half the steps
chose it.

Primary, of needle and induction:

a. Of answers more than 120 back in 256: the whole text minus its beginning and last 63 alone. What is read from there?
b. With half of 64 tokens moved away by 64 more: with the gap minus without, where the answer was moved.

Secondary, of all four questions: at 256 minus at 64; at 256 minus its beginning and last 63 alone.

What counts as nothing: the 90 % interval lies within 0.05 of zero. The texts are the same 512 of a length in all runs,
so intervals are over seeds; the error of the texts is near 0.02.

All four answers are found by what stands before them, or by being first. So a scheme can pass without telling distant
places apart: it says that the far past can be found, not that its positions work there.

What we expect. At 64: all schemes answer first and counting; none does worse than RoPE in needle and induction. a:
Shaw, ALiBi and forgetting gain at least 0.5; learned, T5 and RoPE less than 0.2; FIRE lies between. b: the gap costs
learned, T5 and RoPE more than 0.25, and Shaw and ALiBi nothing. At 256 nobody keeps counting: among more keys each mark
weighs less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from posembed import RunResult
from posembed.stats import Interval, difference

from .search import Search
from .training.questions import LENGTHS, QUESTIONS
from .training.questions import NAME as TASK
from .training.settings import FIRST, changed

NAME = "far-questions"
SCHEMES = ("nopos", "learned", "shaw", "t5", "alibi", "rope", "fire", "forgetting")
SEEDS, TRIAL_SEEDS = (1, 2, 3, 4, 5), (0, 6)
RATES, TRIAL_STEPS = (3e-3, 1e-2, 3e-2), 1000
TRAINED, COMPARED, GAP = 64, "256", "128"
MARGIN, LEARNED, FEWEST = 0.05, 0.5, 3
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


def learned(runs: Sequence[RunResult], question: str) -> list[dict[str, Any]]:
    """What the runs were asked that answer a question within their trained length; none where they are too few."""
    asked = [run.metrics["asked"] for run in runs]
    able = [its for its in asked if its["plain"][str(TRAINED)][question] >= LEARNED]
    return able if len(able) >= FEWEST else []


def contrasts(runs: Sequence[RunResult]) -> dict[str, dict[str, Interval]]:
    """All that was planned, by family, in shares of right answers."""
    found: dict[str, dict[str, Interval]] = {"primary": {}, "secondary": {}}
    for each in arms():
        for question in QUESTIONS:
            asked = learned(each.reported(runs), question)

            def of(way: str, n: str, question: str = question, asked: Any = asked) -> list[float]:
                return [its[way][n][question] for its in asked]

            if not asked:
                continue
            name, long = f"{each.name}, {question}", of("plain", COMPARED)
            if question in ("needle", "induction"):
                far = difference(of("far", COMPARED), of("far, last", COMPARED))
                found["primary"][f"{name}: more than 120 back, the whole text minus its end"] = far
                still = [its["no gap"][question] for its in asked]
                found["primary"][f"{name}: gap minus none"] = difference(of("gap", GAP), still)
            found["secondary"][f"{name}: at 256 minus at 64"] = difference(long, of("plain", str(TRAINED)))
            found["secondary"][f"{name}: at 256 minus its end"] = difference(long, of("last", COMPARED))
    return found
