"""A mark at the beginning: does a model without positions count better when its texts begin with one? And its heads.

A causal model without positions can tell how many tokens it has seen if it can tell one of them from the others. The
proof takes a first token that is known (Kazemnejad et al. 2023, theorem 1); the models of *No positions at all* have
none, and know their positions all the same. Here the same models are trained with a mark before each text, a token that
no text holds. And of both, and of a model with a learned table, it is asked which heads look at the token before, what
is lost without them, and what the first token is to the second layer.

Written before its runs. Known then: of four trained models of the study `nopos`, one seed each, that in "nopos" heads
of the third and fourth layer attend near and softly (28, 34, 17, 9 and 5 % to the offsets 0 to 4), that its loss rises
by 1.5 nats without head 0 of the second layer, and that "learned" has a head each for the offsets 1, 2 and 3 in its
first layer.

Models: those of *No positions at all*, 4 layers of width 64, pieces of 64 characters, start B, 1500 steps. Arms:
"nopos"; "nopos, mark", which guesses the first character too, from the mark; "learned". Three trial seeds, 500 steps,
four rates by steps of about three, more at an edge; five seeds.

Measured (`studies.training.heads`): the loss of the characters that have 16 and more before them, the same ones in all
arms; a probe of positions by layer, trained and untrained; the same on texts that repeat one character, fitted to half
of the characters and tested on the others; the attention of each head by offset, and to the first token; the loss, and
the cost of changing the places of the last two tokens, without each head, and without the pair of heads that the
validation text chooses; the loss where the first token leaves the first layer as another text's middle one does.

Planned contrasts, differences between runs with the same seed, Student's 95 % interval, one family after Holm:

a. nopos with the mark minus without: the loss; the lowest error of the probe, trained, and untrained.
b. With the mark, on texts of one character: the lowest error minus that of always guessing the middle. (Without it
   all states of such a text are the same, so no probe can do better; that is computed too, as a check.)
c. nopos, and learned: the largest attention of any head to the token before, and nopos minus learned.
d. nopos, with the mark, learned: the cost of the swap without the pair of heads minus with all. As a share of the cost
   with all it is told beside it.
e. nopos, with the mark: the largest attention of any head of the second layer to the first token, minus what even
   attention gives it; the loss where the first token is like another, minus the loss.

What would count as closed: the mark changes the loss by less than 0.02 nats where the 90 % interval of the difference
lies within it on both sides.

What we expect: the mark lowers the probe's error, before training and after, and the loss by less than 0.02; texts of
one character are read to within 4 with it. Learned has a head with more than 0.8 on the token before, nopos none with
more than 0.5, and without its pair of heads loses more than half of what order costs. Heads of the second layer look at
the first token more than evenly in both, for two layers can make a mark of a token that has seen nothing but itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from posembed import RunResult
from posembed.stats import Interval, difference, interval

from .nopos import SMALL, run_of
from .search import Search
from .training.settings import changed

NAME = "beginning"
SEEDS, TRIAL_SEEDS = (1, 2, 3, 4, 5), (0, 6, 7)
RATES, TRIAL_STEPS = (1e-3, 3e-3, 1e-2, 3e-2), 500
MARGIN = 0.02


def arm(name: str, scheme: str, **settings: Any) -> Search:
    """The runs of an arm."""
    run = changed(replace(run_of(SMALL, scheme), test_length=None), **settings)
    return Search(name, changed(run, inspections=["heads"]), SEEDS, replace(run, steps=TRIAL_STEPS), TRIAL_SEEDS, RATES)


def arms(_: Sequence[RunResult] = ()) -> list[Search]:
    """All arms."""
    return [arm("nopos", "nopos"), arm("nopos, mark", "nopos", mark=True), arm("learned", "learned")]


def contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """All that was planned; losses in nats a character, errors in positions, attention as shares."""
    heads = {each.name: [run.metrics["heads"] for run in each.reported(runs)] for each in arms()}

    def of(name: str, measure: Callable[[dict[str, Any]], float]) -> list[float]:
        return [measure(its) for its in heads[name]]

    plain, mark, learned = (each.name for each in arms())
    found = {}
    for what, measure in {
        "loss": _late,
        "probe": _lowest("probe"),
        "probe untrained": _lowest("probe untrained"),
    }.items():
        found[f"mark minus none, {what}"] = difference(of(mark, measure), of(plain, measure))
    # Of 64 tokens that are read, always the middle: off by 16.
    same, middle = of(mark, _lowest("probe of one character")), SMALL.length / 4
    found["mark, one character: probe minus the middle"] = interval([error - middle for error in same])
    for name in (plain, learned):
        found[f"{name}: most attention to the token before"] = interval(of(name, _before))
    found["nopos minus learned, most attention to the token before"] = difference(
        of(plain, _before), of(learned, _before)
    )
    for name in (plain, mark, learned):
        pair = [its["pair"]["swap"] for its in heads[name]]
        found[f"{name}: swap, without the pair minus with all"] = difference(pair, of(name, lambda its: its["swap"]))
    for name in (plain, mark):
        found[f"{name}: second layer, first token minus evenly"] = interval(of(name, _first))
        alike = of(name, lambda its: its["first alike"])
        found[f"{name}: loss, first token alike minus as it is"] = difference(alike, of(name, _late))
    return found


def _late(its: dict[str, Any]) -> float:
    return its["late"]


def _lowest(name: str) -> Callable[[dict[str, Any]], float]:
    """The lowest error over all layers that attend."""
    return lambda its: min(its[name][1:])


def _before(its: dict[str, Any]) -> float:
    return max(shares[1] for layer in its["attention"] for shares in layer)


def _first(its: dict[str, Any]) -> float:
    return max(its["first"][1]) - its["evenly"]
