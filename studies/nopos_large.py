"""Twenty-five million parameters: the gap between no positions and a table or ALiBi, at length 512, on a GPU.

The question is the one that *No positions at all* leaves open: does the gap close as models grow? The models of the
NoPos study have 0.2 and 1.2 million parameters. These have 8 layers of width 512, read 512 characters at a time and 33
million in all, of the first hundred million bytes of Wikipedia (the file enwik8, in the current folder). All else is
the study's: the weights' start, AdamW and its rise and fall, the seeds, and the rate of each scheme, the best of four
in a shorter run with a seed of its own. Size, text and length change together; so what is seen is whether the gap is
there in such a model, not which of the three sets it.

What is compared was fixed before the runs: NoPos minus learned, and NoPos minus ALiBi, three seeds each, in nats a
character of the test text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from posembed.stats import Interval, difference
from posembed.training import RunResult
from posembed.training.plans import Arm, Plan

from .nopos import FEW_SEEDS, SMALL, TUNING_SEED, run_of

NAME = "nopos-large"
SCHEMES = ("nopos", "learned", "alibi")
RATES, TUNING_STEPS = (3e-4, 1e-3, 3e-3, 1e-2), 300
WIDTH = 512
LARGE = replace(
    SMALL,
    data="enwik8",
    text_hash="2b49720ec4d78c3c",
    length=512,
    n_layers=8,
    d_model=WIDTH,
    n_heads=8,
    weight_std=WIDTH**-0.5,
    batch_size=64,
    steps=1000,
    test_length=None,
    device="cuda",
)


def arm(scheme: str) -> Arm:
    """The runs of a scheme, and those that choose its learning rate."""
    runs = [run_of(LARGE, scheme, seed=seed) for seed in FEW_SEEDS]
    trial = run_of(LARGE, scheme, seed=TUNING_SEED, steps=TUNING_STEPS)
    return Arm(scheme, tuple(runs), tuple(replace(trial, learning_rate=rate) for rate in RATES))


ARMS = {scheme: arm(scheme) for scheme in SCHEMES}


def plan() -> Plan:
    """All arms."""
    return Plan(NAME, tuple(ARMS.values()))


def contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """Compute both that were planned, in nats a character.

    Raises:
        RunError: not all runs are there.
    """
    loss = {name: [run.metrics["loss"] for run in each.reported(runs)] for name, each in ARMS.items()}
    return {f"nopos minus {other}": difference(loss["nopos"], loss[other]) for other in SCHEMES[1:]}
