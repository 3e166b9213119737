"""The ladder of sizes carried on, on a GPU: 1.4, 3.4 and 11 million parameters, 512 characters at a time.

The question is that of `ladder`: does the price of having no positions fall as a model grows? Causal models of the
characters of enwik8 (the first hundred million bytes of Wikipedia; the file lies in the current folder), start B
(weights, word vectors and learned rows of standard deviation 1 / sqrt(width), nothing scaled). One rule makes a size: a
model of L layers has width 64 L and L heads; L is 3, 4 and 6. Each is trained on 20 characters a parameter of the arm
with learned rows (the largest reads the text two and a half times), in steps of 32 pieces of 512. Steps are compiled,
and matrices are multiplied in bfloat16.

Written before its runs. Known then: the study `nopos-large` (25 million parameters trained on a character each: no
positions 0.13 nats behind a table and 0.19 behind ALiBi, after a plateau that took a third of the run), and the first
results of `starts`; of `ladder` nothing.

Arms: no positions, learned, RoPE, at each size; seeds 1, 2, 3, at six layers 1 and 2.
Rates: at three layers from trials as long as the reported runs, two trial seeds, five rates that double, more at an
edge. Above by a rule: that rate times 192 / width, rounded to two digits, as muP scales the rate of Adam (Yang et al.
2022). Whether the rule holds at the other sizes is not tested.

Planned contrasts, in nats a character of the test text, pairs with one seed:

a. None minus learned, and none minus RoPE, at each size. (6)
b. The slope of each gap on the logarithm (base 2) of the parameters: one line by least squares through all pairs, and
   Student's interval from their distances to it. (2)
c. The share of the run after which the other arm's validation loss is where none ends, at each size, by straight lines
   between the sixteenths of the run: what is only a delay at the beginning would make it rise towards 1 with size. (6)

Margins: those of `ladder`: a gap is closed where its 90 % interval lies within 0.01 nats of zero; a slope is level
where its 90 % interval lies within 0.01 nats a doubling. Of two seeds an interval is wide: what it leaves open is said
to be open.

What we expect: neither gap closes; both are smaller at 11 million than at 1.4; the gap to RoPE stays above 0.03; the
shares of c rise.

Amended when the trials, all runs of three layers, two seeds of four and the first of six were there (of RoPE one of
four). At three layers no positions lost 1.89, the table 1.23, RoPE 1.30. Above, the rule's rate is past what a model
without positions bears: at six layers its validation loss fell to 1.38 in three sixteenths of the run, rose, and ended
at 1.97; so its gaps there say nothing of size. Its rate is now searched at four and six layers too: in trials as long
as the reported runs, one trial seed, from the rule's rate and its half and quarter, lower ones at an edge. The runs
with the rule's rate stay stored. A gap enters b and is called one of size only where no validation loss of its reported
runs is ever 0.1 nats above an earlier one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import stdtrit
from scipy.stats import linregress

from posembed import RunConfig, RunResult
from posembed.stats import Interval, interval

from .ladder import CHARACTERS, SCHEMES
from .search import Search
from .training.settings import run_of

NAME = "ladder-large"
# By the number of layers: the parameters of the arm with learned rows, which a run counts too.
PARAMETERS = {3: 1_522_752, 4: 3_409_920, 6: 11_023_104}
SEEDS, TRIAL_SEEDS = {3: (1, 2, 3), 4: (1, 2, 3), 6: (1, 2)}, (11, 12)
RATES = (1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2)
SMALLEST = min(PARAMETERS)
LENGTH, BATCH, PARTS, OF_A_HEAD = 512, 32, 16, 64
# By how much a loss may rise on the way in a run that counts.
RISEN = 0.1


def run(scheme: str, n_layers: int, **more: Any) -> RunConfig:
    """The settings of an arm, and more of them."""
    width = OF_A_HEAD * n_layers
    return run_of(
        scheme=scheme,
        scheme_options={"learned": {"std": width**-0.5}} if scheme == "learned" else {},
        data="enwik8",
        text_hash="2b49720ec4d78c3c",
        length=LENGTH,
        batch_size=BATCH,
        n_layers=n_layers,
        n_heads=n_layers,
        d_model=width,
        scale_embeddings=False,
        weight_std=width**-0.5,
        steps=math.ceil(CHARACTERS * PARAMETERS[n_layers] / (LENGTH * BATCH)),
        device="cuda",
        preset="gpu",
        compiled=True,
        **more,
    )


def arms(results: Sequence[RunResult] = ()) -> list[Search]:
    """The arms of three layers, and those that follow them once these have their rates.

    Args:
        results: of the arms of three layers.
    """
    tuned = {
        scheme: Search(
            _name(scheme, SMALLEST),
            run(scheme, SMALLEST, losses_at=PARTS),
            SEEDS[SMALLEST],
            run(scheme, SMALLEST),
            TRIAL_SEEDS,
            RATES,
        )
        for scheme in SCHEMES
    }
    found = [*tuned.values()]
    for n_layers in [*PARAMETERS][1:]:
        for scheme, each in tuned.items():
            if not each.next_trials(results):
                rate = float(f"{each.rate(results) * SMALLEST / n_layers:.2g}")
                carried = run(scheme, n_layers, losses_at=PARTS, learning_rate=rate)
                search = Search(_name(scheme, n_layers), carried, SEEDS[n_layers])
                if scheme == "nopos":
                    trial, rates = run(scheme, n_layers), (rate / 4, rate / 2, rate)
                    search = replace(search, trial=trial, trial_seeds=TRIAL_SEEDS[:1], rates=rates)
                found.append(search)
    return found


def _name(scheme: str, n_layers: int) -> str:
    return f"{scheme}, {n_layers} layers"


def contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """All that was planned: a and b in nats a character, b for each doubling of the parameters, c a share."""
    by_name = {each.name: each.reported(runs) for each in arms(runs)}
    found = {}
    for other in SCHEMES[1:]:
        pairs = {n: [*zip(by_name[_name("nopos", n)], by_name[_name(other, n)], strict=True)] for n in PARAMETERS}
        gaps = {n: [none.metrics["loss"] - its.metrics["loss"] for none, its in each] for n, each in pairs.items()}
        for n, each in gaps.items():
            found[f"{n} layers: nopos minus {other}"] = interval(each)
        settled = {n: each for n, each in gaps.items() if all(map(is_settled, by_name[_name("nopos", n)]))}
        if len(settled) > 1:
            found[f"nopos minus {other}: slope a doubling"] = slope_of(settled)
        for n, each in pairs.items():
            found[f"{n} layers: share of the run where {other} is where nopos ends"] = interval(
                [share_reached(its, none.metrics["validation_loss"]) for none, its in each]
            )
    return found


def slope_of(gaps: dict[int, list[float]]) -> Interval:
    """The slope of gaps, by the number of layers, on the base 2 logarithm of the parameters."""
    x = [math.log2(PARAMETERS[n]) for n, each in gaps.items() for _ in each]
    y = [gap for each in gaps.values() for gap in each]
    line = linregress(x, y)
    reach = float(stdtrit(len(y) - 2, 0.975)) * line.stderr
    return Interval(line.slope, line.slope - reach, line.slope + reach, len(y), float(line.pvalue))


def is_settled(result: RunResult) -> bool:
    """Whether the validation loss of a run was never this far above an earlier one."""
    losses = np.array([*result.metrics["losses_at"].values()])
    return bool((losses - np.minimum.accumulate(losses) <= RISEN).all())


def share_reached(result: RunResult, loss: float) -> float:
    """The share of a run after which its validation loss is this low; 1 where it never is."""
    steps = np.array([int(step) for step in result.metrics["losses_at"]])
    losses = np.array([*result.metrics["losses_at"].values()])
    if losses[0] <= loss:
        return float(steps[0] / steps[-1])
    below = np.flatnonzero(losses <= loss)
    if not len(below):
        return 1.0
    after = below[0]
    part = (losses[after - 1] - loss) / (losses[after - 1] - losses[after])
    return float((steps[after - 1] + part * (steps[after] - steps[after - 1])) / steps[-1])
