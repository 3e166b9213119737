"""Longer than it was trained: what is new past the trained length, and what does it cost?

*Relative positions* says that what is new at a longer length must look like something known. This study tells two
causes apart on trained models, *new offsets* and *more keys*, and asks whether one formula, computed from a model and
from texts no longer than those of its training, says beforehand how much of the loss each scheme has further on.

The plan of what is measured and compared, and the formula, are written before any of its models is asked past the
trained length. This first part is the plan of what is trained.

Models: those of *No positions at all*, 4 layers of width 64, pieces of 64 characters, start B, 1500 steps, seeds 1 to
5. Rates are those that trials of the same set-up chose before: of `one-start` (three trial seeds, 500 steps) for the
eight schemes of that study, of `nopos` (one trial seed) for xPos, KERPLE, FIRE and CoPE, where both neighbours of the
chosen rate were worse. RoPE's variants take the rate of RoPE.

Arms, in this order, all of one seed before the next:

- fitted, one of each way in which a scheme can act: none (counts keys), learned (a row for each position), Shaw (a
  vector for each offset, shared far away), T5 (a number for each bucket), ALiBi (a function of the distance), RoPE
  (angles).
- asked: sinusoidal, learnable sinusoidal, xPos, KERPLE, FIRE, CoPE.
- new, of which nothing is known: RoPE where only the fastest quarter of the pairs turn (p-RoPE; these two have gone
  round within the trained length), where the fastest half do, and RoPE with a base of 100.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from posembed import RunResult

from .nopos import SMALL, run_of
from .search import Search, run_searches

NAME = "length"
SEEDS = (1, 2, 3, 4, 5)
FITTED = ("nopos", "learned", "shaw", "t5", "alibi", "rope")
ASKED = ("sinusoidal", "learnable_sinusoidal", "xpos", "kerple", "fire", "cope")
NEW: dict[str, dict[str, Any]] = {
    "p-rope, a quarter": {"pairs": "proportional", "fraction": 0.25},
    "p-rope, half": {"pairs": "proportional", "fraction": 0.5},
    "rope, base 100": {"base": 100.0},
}
# Those that differ from the rate of the others.
RATE, RATES = 1e-2, {"learned": 3e-2, "sinusoidal": 3e-2, "t5": 3e-2}
LONGEST = 512


def arm(name: str) -> Search:
    """The runs of an arm."""
    scheme, options = ("rope", {"scheme_options": {"rope": NEW[name]}}) if name in NEW else (name, {})
    run = run_of(SMALL, scheme, learning_rate=RATES.get(name, RATE), **options)
    # A table has a row for each position that it will be asked for; nothing else is measured there in training.
    return Search(name, replace(run, test_length=LONGEST if name == "learned" else None), SEEDS)


def arms(_: Sequence[RunResult] = ()) -> list[Search]:
    """All arms."""
    return [arm(name) for name in (*FITTED, *ASKED, *NEW)]


def run_study(out: Path, **how: Any) -> None:
    """Train what is left, seed by seed, so that what there is of it compares all arms, and keep the weights."""
    for seed in SEEDS:
        run_searches(
            lambda _, seed=seed: [replace(each, seeds=(seed,)) for each in arms()], out, save_models=True, **how
        )
