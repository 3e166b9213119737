"""The NoPos study: language models with and without positions, causal and masked.

All weights start with a standard deviation of 1 / sqrt(width), word vectors and position tables too (the two matrices
of a layer that feed the sum, with one sqrt(2 layers) times smaller), and word vectors are not scaled. A plan with
GPT-2's 0.02 was given up before any reported run: these are narrow models, and with it the masked one with learned
positions stood at the loss of guessing by frequency for 3000 steps, at all rates tried.

1. "causal": 4 layers, width 64, length 64. None, learned, sinusoidal, ALiBi and RoPE, five seeds.
2. "masked": the same models, reading both ways, 15 % hidden. The same five schemes, five seeds; none and learned at
   three more masking rates, three seeds.
3. "larger": causal, 6 layers, width 128, length 128. None, learned and ALiBi, three seeds; none and learned at lengths
   32 and 256, with as many tokens a step, three seeds.
4. "longer": past the trained length. The models of 1, and three seeds each of all other schemes; RoPE in three layers
   of four; models trained further for a fifth of their steps, with their positions and without. Added when the
   results of d were known: T5 with buckets that end at an offset of 32, three seeds.
5. "watched": none, learned and ALiBi as in 1, three seeds, with their layers probed on the way; for a picture.

What is compared was fixed before the runs:

a. Arm 1, each scheme minus none: the test loss.
b. Arm 3, the same, beside a: is the difference smaller in a larger model? And for learned at each length.
c. Arm 2: none minus guessing by frequency; learned minus none at each masking rate.
d. Arm 4, each scheme: the loss at positions 64 to 255 minus that at positions 48 to 63 of the same run.
e. RoPE in three layers of four minus RoPE in all: the loss at the trained length, and at positions 64 to 255.
f. Trained further without positions, minus trained further with them, and minus a model that never had any and was
   trained further as well: the same two losses.
g. The lowest error of the probe over all layers that attend, in parts 1 and 3: none, trained minus untrained; none
   minus learned. In part 2: none minus always guessing the middle.
h. Parts 1 and 3: what none loses when its prefix is shuffled, minus what learned loses.

Differences are between runs with the same seed. The learning rate of each scheme is the one of four with the lowest
validation loss in a shorter run of its own, with a seed that no reported run has; other masking rates take the one
chosen at 15 %, other lengths the one at 128, and part 4 those of part 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from posembed.training.config import RunConfig
from posembed.training.plans import Arm, Plan

from .training.settings import FIRST, changed

NAME = "nopos"
RATES = (1e-3, 3e-3, 1e-2, 3e-2)
TUNING_SEED, SEEDS, FEW_SEEDS = 0, (1, 2, 3, 4, 5), (1, 2, 3)
SCHEMES = ("nopos", "learned", "sinusoidal", "alibi", "rope")
ALL_SCHEMES = (
    "nopos",
    "sinusoidal",
    "learned",
    "learnable_sinusoidal",
    "shaw",
    "t5",
    "alibi",
    "rope",
    "xpos",
    "kerple",
    "fire",
    "cope",
)

SMALL = replace(
    FIRST,
    length=64,
    n_layers=4,
    d_model=64,
    scale_embeddings=False,
    weight_std=64**-0.5,
    steps=1500,
    test_length=256,
    preset="cpu",
)
LARGER = replace(SMALL, length=128, n_layers=6, d_model=128, weight_std=128**-0.5, batch_size=16, steps=2500)
MASKED = replace(SMALL, objective="masked", masking_rate=0.15, steps=2000, test_length=None)
# As long as a run must be for its learning rate to show; masked models take their time.
TUNING_STEPS = {SMALL.key: 500, MASKED.key: 1000, LARGER.key: 600}
OTHER_RATES, OTHER_LENGTHS = (0.05, 0.4, 0.6), (32, 256)
# SmolLM3 leaves positions out of every fourth layer, counted from the first; of four layers that is the last.
THREE_OF_FOUR = (0, 1, 2)
DROPPED, FURTHER_STEPS = ("learned", "rope"), 300


def run_of(base: RunConfig, scheme: str, **changes: Any) -> RunConfig:
    """A run of the study before its learning rate is chosen."""
    options = {"learned": {"std": base.weight_std}} if scheme == "learned" else {}
    options |= changes.pop("scheme_options", {})
    return changed(base, scheme=scheme, scheme_options=options, **changes)


def trials(base: RunConfig, scheme: str) -> tuple[RunConfig, ...]:
    """The runs that choose a scheme's learning rate."""
    changes: dict[str, Any] = {"seed": TUNING_SEED, "steps": TUNING_STEPS[base.key], "test_length": None}
    return tuple(run_of(base, scheme, learning_rate=rate, **changes) for rate in RATES)


def arm(
    name: str, base: RunConfig, scheme: str, seeds: Sequence[int] = FEW_SEEDS, more: Sequence[str] = (), **changes: Any
) -> Arm:
    """The runs of a scheme, one for each seed, and those that choose its learning rate.

    Args:
        name: for people.
        base: what they are alike in.
        scheme: its name.
        seeds: one for each run.
        more: the inspections.
        changes: other settings, that the tuning runs do not share.
    """
    runs = [run_of(base, scheme, seed=seed, inspections=list(more), **changes) for seed in seeds]
    return Arm(name, tuple(runs), trials(base, scheme))


def inspections_of(scheme: str) -> tuple[str, ...]:
    """What is asked of the trained models of a scheme beyond their loss."""
    return ("layers", "untrained", "prefix") if scheme == "nopos" else ("layers", "prefix", "dropped")


def _causal() -> list[Arm]:
    return [arm(f"causal, {scheme}", SMALL, scheme, SEEDS, inspections_of(scheme)) for scheme in SCHEMES]


def _masked() -> list[Arm]:
    both = ("nopos", "learned")
    at_15 = [arm(f"masked, {each}", MASKED, each, SEEDS, ("layers",) if each in both else ()) for each in SCHEMES]
    return at_15 + [
        arm(f"masked, {scheme}, {rate:.0%} hidden", MASKED, scheme, masking_rate=rate)
        for rate in OTHER_RATES
        for scheme in both
    ]


def _larger() -> list[Arm]:
    arms = [arm(f"larger, {each}", LARGER, each, more=inspections_of(each)) for each in ("nopos", "learned", "alibi")]
    tokens = LARGER.batch_size * LARGER.length
    return arms + [
        arm(
            f"larger, {scheme}, length {length}",
            LARGER,
            scheme,
            more=("layers",),
            length=length,
            batch_size=tokens // length,
        )
        for length in OTHER_LENGTHS
        for scheme in ("nopos", "learned")
    ]


def _longer() -> list[Arm]:
    others = [arm(f"causal, {scheme}", SMALL, scheme) for scheme in ALL_SCHEMES if scheme not in SCHEMES]
    further = [
        arm(f"causal, {scheme}, further", SMALL, scheme, further_steps=FURTHER_STEPS) for scheme in ("nopos", *DROPPED)
    ]
    without = [
        arm(
            f"causal, {scheme}, further without",
            SMALL,
            scheme,
            further_steps=FURTHER_STEPS,
            drops_positions=True,
        )
        for scheme in DROPPED
    ]
    three = arm("causal, rope in three layers of four", SMALL, "rope", layers_with_positions=THREE_OF_FOUR)
    # T5's own buckets end at an offset of 128; the last of them are for offsets that no text of 64 has.
    options = {"t5": {"max_distance": SMALL.length // 2}}
    buckets = arm("causal, t5 with buckets to 32", SMALL, "t5", scheme_options=options)
    return [*others, three, buckets, *further, *without]


def _watched() -> list[Arm]:
    more = ("layers", "untrained", "watched")
    return [arm(f"causal, {each}, watched", SMALL, each, more=more) for each in ("nopos", "learned", "alibi")]


ARMS = {
    "causal": _causal(),
    "masked": _masked(),
    "longer": _longer(),
    "watched": _watched(),
    "larger": _larger(),
}


def plan() -> Plan:
    """All arms."""
    return Plan(NAME, tuple(arm for arms in ARMS.values() for arm in arms))
