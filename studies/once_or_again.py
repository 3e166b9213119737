"""Once or again, repaired: does RoPE gain by being relative, or by being in every layer? And does depth matter?

The first study (`depth`) compared rows at the input with RoPE in all layers, two things at once, and its models of
twelve layers were narrower and worse than those of four, so that depth had not helped yet. Here both depths have one
width, and RoPE has arms in one layer alone.

Models: causal, of characters, pieces of 64, width 32, 4 heads, start B (standard deviation 1 / sqrt(width), nothing
scaled), 4 and 12 layers, 3000 steps of 32 pieces (6.1 million characters: about 110 and 39 a parameter).

Arms, at each depth: "none"; "table once", learned rows at the input; "table again", the same rows added to what enters
each layer; "RoPE"; "RoPE first", in the first layer alone; "RoPE last", in the last alone. Seeds 1 to 5 with 4 layers,
1 to 3 with 12. (Rows of its own for each layer were planned too, until the first two trials had shown how long runs
take; `depth` has them.)

Written before its runs. Known were those of `depth`.

Rates: trials as long as the runs, two trial seeds with 4 layers and one with 12, three rates, more at an edge (see
`Search`), each arm for itself. (1000 of 3000 steps were planned until `own-rates` had shown what short trials choose,
and two seeds at both depths until the first two trials had shown how long runs take; no reported run had been made.)

A precondition for any sentence on depth: with "table once" the models of 12 layers are better than those of 4, the
95 % interval of their difference below zero. Where it is not met the contrasts c decide nothing.

Planned contrasts, nats a character of the test text, pairs with one seed, Student's 95 % interval, one family after
Holm:

a. At each depth: table again minus table once. (2)
b. At each depth: RoPE first, RoPE last and table once, each minus RoPE; RoPE first minus table once. (8)
c. 12 layers minus 4 of: table again minus table once; RoPE first minus RoPE; and, for the precondition, of the loss
   of table once. (3)

What counts as equal: the 90 % interval within 0.01 nats of zero.

What we expect: adding a table again gives less than the margin at 4 layers; RoPE first is between table once and RoPE,
nearer to RoPE; RoPE last is worse than both; with 12 layers RoPE first loses more to RoPE than with 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from posembed import RunResult
from posembed.stats import Interval, difference

from .search import Search
from .training.settings import FIRST, changed

NAME = "once-or-again"
WIDTH, DEPTHS = 32, (4, 12)
SEEDS = {4: (1, 2, 3, 4, 5), 12: (1, 2, 3)}
TRIAL_SEEDS, RATES = {4: (11, 12), 12: (11,)}, (3e-3, 1e-2, 3e-2)
MARGIN = 0.01
START_B = changed(
    FIRST,
    length=64,
    d_model=WIDTH,
    n_heads=4,
    scale_embeddings=False,
    weight_std=WIDTH**-0.5,
    steps=3000,
    preset="cpu",
)
TABLE = {"scheme": "learned", "scheme_options": {"learned": {"std": WIDTH**-0.5}}}


def _settings(depth: int) -> dict[str, dict[str, Any]]:
    return {
        "none": {"scheme": "nopos"},
        "table once": TABLE,
        "table again": TABLE | {"positions_added": "every layer"},
        "RoPE": {"scheme": "rope"},
        "RoPE first": {"scheme": "rope", "layers_with_positions": (0,)},
        "RoPE last": {"scheme": "rope", "layers_with_positions": (depth - 1,)},
    }


def arm(depth: int, name: str) -> Search:
    """The runs of an arm at a depth."""
    run = changed(START_B, n_layers=depth, **_settings(depth)[name])
    return Search(f"{depth} layers, {name}", run, SEEDS[depth], run, TRIAL_SEEDS[depth], RATES)


def arms(_: Sequence[RunResult] = ()) -> list[Search]:
    """All arms."""
    # Shallow models first: they say soon whether the plan is in order.
    return [arm(depth, name) for depth in DEPTHS for name in _settings(depth)]


def contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """All that was planned, in nats a character."""
    loss = {each.name: [run.metrics["loss"] for run in each.reported(runs)] for each in arms()}
    pairs = [("table again", "table once"), ("RoPE first", "table once")]
    pairs += [(one, "RoPE") for one in ("RoPE first", "RoPE last", "table once")]
    found = {
        f"{n} layers: {one} minus {other}": difference(loss[f"{n} layers, {one}"], loss[f"{n} layers, {other}"])
        for n in DEPTHS
        for one, other in pairs
    }
    for one, other in (("table again", "table once"), ("RoPE first", "RoPE")):
        gaps = [
            [x - y for x, y in zip(loss[f"{n} layers, {one}"], loss[f"{n} layers, {other}"], strict=True)]
            for n in reversed(DEPTHS)
        ]
        found[f"{one} minus {other}: 12 layers minus 4"] = difference(gaps[0], gaps[1][: len(gaps[0])])
    deep, shallow = (loss[f"{n} layers, table once"] for n in reversed(DEPTHS))
    return found | {"table once: 12 layers minus 4": difference(deep, shallow[: len(deep)])}
