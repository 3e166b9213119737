"""A ladder of sizes: does the price of having no positions fall as a model grows?

Causal models of characters, 4 layers, pieces of 64, start B (weights, word vectors and learned rows of standard
deviation 1 / sqrt(width), nothing scaled). Width alone changes: 32, 48, 64 and 88, about 0.054, 0.12, 0.21 and 0.38
million parameters. Each is trained on 20 characters a parameter of the largest arm of its width, in steps of 32 pieces;
depth and length stay.

Written before its runs. Known then: the gap of none to learned and to RoPE at width 64 after 1500 steps (studies
`nopos` and `starts`: 0.085 and about 0.2 nats), and at 1.2 million parameters with another depth and length.

Arms: no positions, learned, RoPE, at each width; seeds 1, 2, 3.
Rates: at widths 32 and 48 from trials as long as the reported runs, three trial seeds, five rates that double, more
at an edge. Above them by a rule: the rate chosen at width 48 times 48 / width, rounded to two digits, as muP scales the
rate of Adam (Yang et al. 2022). The rule is tested on the two widths that were tuned: the evidence page says how well
it foretells the rate at 48 from that at 32.

Planned contrasts, per width and over widths, in nats a character of the test text, pairs with one seed:

a. None minus learned, and none minus RoPE, at each width. (8)
b. The slope of each gap on the logarithm (base 2) of the parameters: one slope a seed by least squares over the four
   widths, then Student's interval over seeds. (2)
c. The gap at width 88 minus that at width 32. (2)

Margins: a gap is closed where its 90 % interval lies within 0.01 nats of zero; a slope is level where its 90 % interval
lies within 0.01 nats a doubling. Three seeds: an interval is 4.3 standard errors wide on each side, so what is not
decided will be said to be so.

What we expect: the gap to learned does not close by width 88; its slope is negative or level; the gap to RoPE stays
above 0.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from posembed import RunConfig, RunResult
from posembed.stats import Interval, difference, interval

from .search import Search

NAME = "ladder"
SCHEMES = ("nopos", "learned", "rope")
# Parameters of the arm with learned rows, the largest of each width; a test counts them.
WIDTHS = {32: 55_584, 48: 120_240, 64: 209_472, 88: 389_400}
TUNED = (32, 48)
SEEDS, TRIAL_SEEDS = (1, 2, 3), (11, 12, 13)
RATES = (5e-3, 1e-2, 2e-2, 4e-2, 8e-2)
LENGTH, BATCH, CHARACTERS = 64, 32, 20
MARGIN = SLOPE_MARGIN = 0.01


def run(scheme: str, width: int) -> RunConfig:
    """The settings of an arm."""
    return RunConfig(
        scheme=scheme,
        scheme_options={"learned": {"std": width**-0.5}} if scheme == "learned" else {},
        length=LENGTH,
        batch_size=BATCH,
        n_layers=4,
        d_model=width,
        scale_embeddings=False,
        weight_std=width**-0.5,
        steps=math.ceil(CHARACTERS * WIDTHS[width] / (LENGTH * BATCH)),
        preset="cpu",
    )


def arms(results: Sequence[RunResult] = ()) -> list[Search]:
    """The tuned arms, and those that follow them once these have their rates.

    Args:
        results: of the tuned arms.
    """
    found = [
        Search(f"{scheme}, width {width}", run(scheme, width), SEEDS, run(scheme, width), TRIAL_SEEDS, RATES)
        for width in TUNED
        for scheme in SCHEMES
    ]
    tuned = {each.run.scheme: each for each in found if each.run.d_model == TUNED[-1]}
    for width in [*WIDTHS][len(TUNED) :]:
        for scheme, each in tuned.items():
            if not each.next_trials(results):
                rate = float(f"{each.rate(results) * TUNED[-1] / width:.2g}")
                carried = replace(run(scheme, width), learning_rate=rate)
                found.append(Search(f"{scheme}, width {width}", carried, SEEDS))
    return found


def contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """All that was planned, in nats a character; slopes in nats a doubling of the parameters."""
    loss = {
        (each.run.scheme, each.run.d_model): [run.metrics["loss"] for run in each.reported(runs)] for each in arms(runs)
    }
    found = {}
    doublings = np.log2([*WIDTHS.values()])
    for other in SCHEMES[1:]:
        gaps = np.array([np.subtract(loss["nopos", width], loss[other, width]) for width in WIDTHS])
        for width, gap in zip(WIDTHS, gaps, strict=True):
            found[f"width {width}: nopos minus {other}"] = interval(gap.tolist())
        slopes = np.polyfit(doublings, gaps, 1)[0]
        found[f"nopos minus {other}: slope a doubling"] = interval(slopes.tolist())
        found[f"nopos minus {other}: width 88 minus 32"] = difference(gaps[-1].tolist(), gaps[0].tolist())
    return found
