"""One start for the book: does the order of eight schemes hang on how the weights start?

Chapters 3 and 4 trained their models from start A (weights of standard deviation 0.02, word vectors times the square
root of the width). *What sets the gap* found that from start B (weights, word vectors and learned rows of standard
deviation 1 / sqrt(width), nothing scaled) a model without positions loses less. This study trains all eight schemes of
these chapters from start B, everything else alike: text, size (4 layers, width 64, pieces of 64), 1500 steps, seeds.

Written before its runs. Known then: from start B the losses of none, learned, sinusoidal, ALiBi and RoPE with a rate
that one seed had chosen (study `nopos`), and of none, learned and RoPE with a rate that three seeds had chosen
(study `starts`, whose trials of these three are taken over, for they are the same runs).

Rates: three trial seeds, runs of 500 steps, four rates by steps of about three, more at an edge (see `Search`).
Reported: seeds 1 to 5, as in start A.

Planned contrasts, each the mean of differences between runs with the same seed, Student's 95 % interval, one family
after Holm:

a. In start B: learned, and learnable sinusoidal, minus sinusoidal; each scheme minus none. The loss of the test text.
b. In start B: each scheme past the trained length, the loss at positions 64 to 511 minus that at 48 to 63.
c. In start B: RoPE with each scaling minus RoPE without, at positions 64 to 511.
d. Start B minus start A: of learned minus sinusoidal, of learnable sinusoidal minus sinusoidal, and of each scheme
   minus none; and of each scheme's own loss. (Runs of both starts with one seed read the same batches.)

What counts as equal: two schemes differ by less than the margin, 0.02 nats (2 % of perplexity), where the 90 %
interval of their difference lies within it on both sides. Where it does not, and the 95 % interval holds zero, nothing
is decided.

What we expect: from start B learned is better than sinusoidal by 0.02 to 0.04, where from A it is worse by 0.045; each
scheme is still better than none; RoPE is best in both; what none pays beside any other is less than half of what it
pays in A; the order of losses past the trained length stays (ALiBi does not notice, the absolute ones and none do).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from posembed import RunResult
from posembed.stats import Interval, difference
from posembed.training.config import SCALING_NAMES

from . import encodings
from .search import Search
from .training.settings import FIRST

NAME = "one-start"
SCHEMES = ("nopos", "sinusoidal", "learned", "learnable_sinusoidal", "shaw", "t5", "alibi", "rope")
SEEDS, TRIAL_SEEDS = (1, 2, 3, 4, 5), (0, 6, 7)
RATES, TRIAL_STEPS = (1e-3, 3e-3, 1e-2, 3e-2), 500
WIDTH, TRAINED, TESTED = 64, encodings.TRAINED, encodings.TESTED
MARGIN = 0.02
START_B = replace(
    FIRST,
    length=TRAINED,
    n_layers=4,
    d_model=WIDTH,
    scale_embeddings=False,
    weight_std=WIDTH**-0.5,
    steps=1500,
    preset="cpu",
)


def arm(scheme: str) -> Search:
    """All runs of a scheme from start B."""
    options = {"learned": {"std": START_B.weight_std}} if scheme == "learned" else {}
    run = replace(START_B, scheme=scheme, scheme_options=options)
    tested = replace(run, test_length=TESTED, test_scalings=SCALING_NAMES if scheme == "rope" else ())
    return Search(scheme, tested, SEEDS, replace(run, steps=TRIAL_STEPS), TRIAL_SEEDS, RATES)


def arms(_: Sequence[RunResult] = ()) -> list[Search]:
    """All arms."""
    return [arm(scheme) for scheme in SCHEMES]


def contrasts(runs: Sequence[RunResult], start_a: Sequence[RunResult]) -> dict[str, Interval]:
    """All that was planned, in nats a character.

    Args:
        runs: of this study.
        start_a: those of the study `encodings`.
    """
    b = {each.name: each.reported(runs) for each in arms()}
    a = {each.name: each.reported(start_a) for each in encodings.ARMS}
    pairs = [(one, "sinusoidal") for one in ("learned", "learnable_sinusoidal")]
    pairs += [(scheme, "nopos") for scheme in SCHEMES[1:]]
    found = {f"{one} minus {other}": difference(_losses(b[one]), _losses(b[other])) for one, other in pairs}
    for scheme in SCHEMES:
        found[f"{scheme}, past the trained length"] = encodings.past_the_trained_length(b[scheme])
    for scaling in SCALING_NAMES:
        found[f"rope, {scaling} minus unscaled"] = encodings.scaled_minus_unscaled(b["rope"], scaling)
    for one, other in pairs:
        gaps = [[x - y for x, y in zip(_losses(start[one]), _losses(start[other]), strict=True)] for start in (b, a)]
        found[f"{one} minus {other}, start B minus A"] = difference(*gaps)
    for scheme in SCHEMES:
        found[f"{scheme}, start B minus A"] = difference(_losses(b[scheme]), _losses(a[scheme]))
    return found


def _losses(runs: Sequence[RunResult]) -> list[float]:
    return [run.metrics["loss"] for run in runs]
