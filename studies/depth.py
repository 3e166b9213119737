"""Is once enough? Positions added at the input, again at every layer, anew for each layer, or turned in all of them.

The plan was written before any of its runs. The part on images is `studies.images`; both make one study.

Models: causal, of characters, in pieces of 64. Two depths with matched parameters: 4 layers of width 56 and 12 of width
32 have 153 and 152 thousand in their layers. All weights and learned rows start with a deviation of 1 / sqrt(width),
words are not scaled, 1500 steps of 32 texts.

Arms: "none"; "input", learned rows added to the embeddings; "every layer", the same rows added to what enters each
layer; "layers anew", rows of its own for each layer, which are 64 numbers times the width more for each layer after the
first; "rope", which turns queries and keys in every layer by construction. And one masked model of 4 layers with
learned rows at the input, 2000 steps, for what its layers hold; it is part of no contrast.

The learning rate of each arm is that with the lowest mean validation loss of two seeds that no reported run has, in
runs of a third of the steps (a half for masked ones), among three; where it is the first or the last of them, the next
one (a third or three times as high) is tried too. Then five seeds.

What is compared, seed by seed; "early" is after the first layer, "late" after the last but one, since the last state is
normalised:

a. The test loss: input minus none; every layer, layers anew and rope minus input; at each depth. (8)
b. Every layer minus input, and layers anew minus input: with 12 layers minus with 4. (2)
c. For each arm with positions, at each depth, early minus late: the share of position in the variance between states,
   and how often a linear probe reads the position. (16)
d. For input, at each depth, early minus late: what it costs to project position out of the states, and to shuffle it,
   each less its control. (4)

The shares of the stored runs were adjusted as if tokens were drawn one by one; `posembed.layers.position_shares` does
without that now. With as many texts, 256, no share of three models of this size changes by more than 0.0004.

Intervals are Student's over five seeds; p is corrected after Holm in one family with the contrasts of images. What is
left of the input's rows, what can be read of tokens, swaps, and untrained models are reported beside them.

What we expect: a sum of residual updates never takes the input's rows away, so their coefficient stays near one while
the share falls, as updates grow; the probe reads the position less well late, and taking it out late costs less, since
what the early layers were to do with it is done. Then adding it again gives nothing at 4 layers and little at 12. If
depth did wash positions out, "every layer" would win at 12 by more than at 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from posembed.stats import Interval, difference
from posembed.training.config import RunConfig
from posembed.training.plans import Arm, Plan
from posembed.training.results import RunResult

from .images import vision_arms, vision_contrasts
from .training.settings import FIRST, changed

NAME = "depth"
ARMS: dict[str, dict[str, Any]] = {
    "none": {"scheme": "nopos"},
    "input": {"scheme": "learned"},
    "every layer": {"scheme": "learned", "positions_added": "every layer"},
    "layers anew": {"scheme": "learned", "positions_added": "layers anew"},
    "rope": {"scheme": "rope"},
}
WIDTHS = {4: 56, 12: 32}
RATES, TUNING_SEEDS, SEEDS = (3e-3, 1e-2, 3e-2), (11, 12), (1, 2, 3, 4, 5)
STEPS, TUNING_STEPS, MASKED_STEPS, MASKED_TUNING_STEPS = 1500, 500, 2000, 1000
# By the rule of the plan, after an arm had chosen the first or the last rate.
FURTHER_RATES: dict[str, tuple[float, ...]] = {
    "4 layers, input": (0.1,),
    "4 layers, every layer": (0.1,),
    "4 layers, layers anew": (0.1,),
    "12 layers, none": (0.1,),
    "12 layers, input": (0.1,),
    "12 layers, every layer": (0.1,),
    "12 layers, layers anew": (0.1,),
    "12 layers, rope": (0.1,),
    "masked, 4 layers, input": (0.001,),
}
MASKED = "masked, 4 layers, input"


def name_of(n_layers: int, arm: str) -> str:
    """The name of an arm."""
    return f"{n_layers} layers, {arm}"


def _run(n_layers: int, arm: str, **changes: Any) -> RunConfig:
    width = WIDTHS[n_layers]
    rows = {"learned": {"std": width**-0.5}} if ARMS[arm]["scheme"] == "learned" else {}
    base = replace(
        FIRST,
        length=64,
        n_layers=n_layers,
        d_model=width,
        n_heads=4,
        scale_embeddings=False,
        weight_std=width**-0.5,
        steps=STEPS,
        preset="cpu",
    )
    return changed(base, scheme_options=rows, **ARMS[arm], **changes)


def arm_of(n_layers: int, arm: str) -> Arm:
    """The runs of one arm of `ARMS` at one depth, and those that choose its learning rate."""
    return _arm(name_of(n_layers, arm), _run(n_layers, arm), TUNING_STEPS)


def _arm(name: str, base: RunConfig, tuning_steps: int) -> Arm:
    rates = sorted({*RATES, *FURTHER_RATES.get(name, ())})
    return Arm(
        name,
        tuple(changed(base, seed=seed, inspections=["depth"]) for seed in SEEDS),
        tuple(
            replace(base, seed=seed, learning_rate=rate, steps=tuning_steps) for rate in rates for seed in TUNING_SEEDS
        ),
    )


def masked_arm() -> Arm:
    """The runs of the masked model."""
    base = _run(4, "input", objective="masked", masking_rate=0.15)
    return _arm(MASKED, replace(base, steps=MASKED_STEPS), MASKED_TUNING_STEPS)


def text_arms() -> tuple[Arm, ...]:
    """All arms on texts."""
    return (*(arm_of(n_layers, arm) for n_layers in WIDTHS for arm in ARMS), masked_arm())


def plan() -> Plan:
    """Texts and images."""
    return Plan(NAME, (*text_arms(), *vision_arms()))


def contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """Compute all that was planned to be compared, on texts and on images.

    Raises:
        RunError: not all runs are there.
    """
    of = {(n, arm): arm_of(n, arm).reported(runs) for n in WIDTHS for arm in ARMS}

    def values(place: tuple[int, str], measure: Callable[[RunResult], float]) -> list[float]:
        return [measure(result) for result in of[place]]

    found, gains = {}, {}
    for n in WIDTHS:
        loss = {arm: values((n, arm), lambda result: result.metrics["loss"]) for arm in ARMS}
        found[f"{n} layers: input minus none"] = difference(loss["input"], loss["none"])
        for arm in [*ARMS][2:]:
            found[f"{n} layers: {arm} minus input"] = difference(loss[arm], loss["input"])
            gains[n, arm] = [one - other for one, other in zip(loss[arm], loss["input"], strict=True)]
    for arm in ("every layer", "layers anew"):
        found[f"{arm} minus input: 12 layers minus 4"] = difference(gains[12, arm], gains[4, arm])
    for n in WIDTHS:
        early, late = 1, n - 1
        for arm in [*ARMS][1:]:
            for name, column in (("share of position", "position"), ("position read", "read position")):
                found[f"{n} layers, {arm}: {name}, early minus late"] = difference(
                    values((n, arm), at(column, early)), values((n, arm), at(column, late))
                )
        for kind in ("project out", "shuffle"):
            found[f"{n} layers, input: cost to {kind}, early minus late"] = difference(
                values((n, "input"), cost(kind, early)), values((n, "input"), cost(kind, late))
            )
    return found | vision_contrasts(runs)


def at(column: str, layer: int) -> Callable[[RunResult], float]:
    """What was measured of the states of one layer of a trained model."""
    return lambda result: result.metrics["depth"]["trained"][column][layer]


def cost(kind: str, layer: int) -> Callable[[RunResult], float]:
    """What a change of one layer's states costs, less its control."""
    return lambda result: at(kind, layer)(result) - at(f"{kind}, control", layer)(result)
