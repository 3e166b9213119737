"""Longer than it was trained: what is new past the trained length, and what does it cost?

*Relative positions* says that what is new at a longer length must look like something known. This study tells two
causes apart on trained models, *new offsets* and *more keys*, and asks whether one formula (`studies.length_law`),
computed from a model and from texts no longer than those of its training, says beforehand what each scheme loses.

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
  round within the trained length), where the fastest half do, and RoPE with a base of 100. The forgetting Transformer
  and PoPE are to follow where the package has them.

Written before any of its models was asked past the trained length, but for none: a stored model of `nopos` was read in
all ways below while the code was written, and its seed 1 here had been asked when *again* and f to g were added. Known
from earlier studies were the losses of plainly longer texts: to 512 of the fitted arms and of both sinusoidal ones, to
255 of xPos, KERPLE, FIRE and CoPE. So what is predicted of these was known to who wrote the formula; what nobody knew
are the causes apart and the new arms.

Measured (`studies.training.longer`): the loss of the last 16 characters of 256 texts, the same in all ways to read.
The last 64 alone; the last n as they stand, to 512; a *gap*, the first half of 64 as far back as it would stand at n;
*moved*, all 64 further on; a *stack*, where n characters share the positions of 64 but none loses its order; *repeat*,
n / 64 characters to a position, with its control; the last n, of which the first 32 are the last 32 *again*, for a flat
loss does not say that a model reads far back; and the last 32 alone. And `studies.training.reach`, what the formula
reads. Weights stay beside the results, ignored by git: where they are wanted again, ``python -m studies length``
trains what has not been asked.

And *remedies*, without further training (`studies.training.remedies`): sharper logits, RoPE interpolated and with NTK,
T5 with a shared last bucket. YaRN is left out: it begins where pairs turn 32 times, and these turn 10 times at most.

Planned contrasts, in nats, differences between runs with one seed, Student's 95 % interval, one family after Holm, for
each arm at 256 = 4 times 64, minus the last 64 alone unless it is said otherwise; b and e not for none, CoPE and
forgetting, which read no positions:

a. plain: what a longer text costs, or gains: does a scheme use more than the last 64?
b. gap: new offsets alone.
c. stack: more keys alone.
d. plain minus the sum of gap and stack: is the whole its two parts?
e. repeat minus its control.
f. again minus plain, and the same at 64: what a copy so far back gives, and one within the trained length.
g. Each remedy minus plain.

h. A family of its own: R2 of the law by seed, over the six asked arms and over the new ones, and the law's minus that
   of each rival.

The forgetting Transformer was added when three seeds of all other arms had been asked and read. It has the rate of
ALiBi, which it is where all gates are alike, and takes part in a to g. In h it stands beside the three variants of RoPE
in rows of its own, "new, and forgetting", so that theirs stay as they were planned. We expect what ALiBi showed: it
loses less than 0.02 in a longer text, in a gap and in a stack, and the law says less than 0.02.

What counts as nothing: the 90 % interval lies within 0.02 of zero.

What we expect: a stack costs a model without positions all that a longer text costs it, and every other scheme less
than 0.1; a gap costs none nothing, learned, both sinusoidal ones, T5, RoPE and xPos more than half of what the longer
text costs them, Shaw, ALiBi and KERPLE less than 0.05. d is within 0.2 of zero for all but those that lose more than 2
nats. No scheme gains more than 0.02 from more than 64. A copy within 64 gives each scheme with positions more than 0.1,
one 224 back none more than 0.1. Of p-RoPE a quarter loses less than a tenth of what RoPE does. Sharper logits take a
tenth at least of what none loses, and help no scheme with positions by more than 0.1; a shared bucket takes nearly all
of what T5 loses; RoPE interpolated, whose angles are all inside the arc, still loses more than 0.1, for its steps are
new: then "inside the arc" is not enough of a definition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from posembed import RunConfig, RunResult
from posembed.data import load_corpus
from posembed.inference import torch_threads
from posembed.models import LanguageModel
from posembed.stats import Interval, difference, interval
from posembed.training import read_model, run_grid, write_result
from posembed.training.results import file_of, read_result
from posembed.training.weights import has_weights

from .length_law import ASKED_AFTER, COEFFICIENTS, FITTED, verdicts
from .nopos import SMALL, run_of
from .search import Search
from .training.longer import inspect_longer
from .training.reach import inspect_reach
from .training.remedies import inspect_remedies
from .training.runs import train

NAME = "length"
SEEDS = (1, 2, 3, 4, 5)
NEW: dict[str, dict[str, Any]] = {
    "p-rope, a quarter": {"pairs": "proportional", "fraction": 0.25},
    "p-rope, half": {"pairs": "proportional", "fraction": 0.5},
    "rope, base 100": {"base": 100.0},
}
# Asked after the others.
LATER = ("forgetting",)
# Those that differ from the rate of the others.
RATE, RATES = 1e-2, {"learned": 3e-2, "sinusoidal": 3e-2, "t5": 3e-2}
LONGEST, COMPARED = 512, "256"
# They read no positions, so that a gap is none to them, and a repeat what a longer text is.
BLIND = ("nopos", "cope", "forgetting")


def arm(name: str) -> Search:
    """The runs of an arm."""
    scheme, options = ("rope", {"scheme_options": {"rope": NEW[name]}}) if name in NEW else (name, {})
    run = run_of(SMALL, scheme, learning_rate=RATES.get(name, RATE), **options)
    # A table has a row for each position that it will be asked for; nothing else is measured there in training.
    return Search(name, replace(run, test_length=LONGEST if name == "learned" else None), SEEDS)


def arms(_: Sequence[RunResult] = ()) -> list[Search]:
    """All arms."""
    return [arm(name) for name in (*FITTED, *ASKED_AFTER, *NEW, *LATER)]


def run_study(out: Path, **how: Any) -> None:
    """Train what has not been asked, all arms of a seed before the next, and ask what may be asked."""
    runs = [replace(each.run, seed=seed) for seed in SEEDS for each in arms()]
    left = [run for run in runs if "remedies" not in _metrics(run, out)]
    for run in left:
        if not has_weights(run, out):
            file_of(run, out, "json").unlink(missing_ok=True)
        elif file_of(run, out, "json").exists():
            look(run, out)
    run_grid(left, out=out, save_models=True, train=partial(trained, folder=out), **how)


def trained(run: RunConfig, **how: Any) -> RunResult:
    """Train a run and look at it."""
    result = train(run, **how)
    return replace(result, metrics=result.metrics | found_in(result.model, run, result.metrics))


def look(run: RunConfig, out: Path) -> None:
    """Add what is not there yet to a stored result whose weights are kept."""
    result = read_result(file_of(run, out, "json"))
    with torch_threads(run.threads):
        found = found_in(read_model(run, out), run, result.metrics)
    if found:
        write_result(replace(result, metrics=result.metrics | found), out)


def found_in(model: LanguageModel, run: RunConfig, known: Mapping[str, Any]) -> dict[str, Any]:
    """What the formula reads, and, of a fitted arm or once the formula has its coefficients, what longer texts cost."""
    fitted = run.scheme in FITTED and run.scheme_options.get("rope") is None
    wanted: dict[str, Any] = {"reach": inspect_reach}
    if fitted or COEFFICIENTS:
        wanted |= {"longer": inspect_longer, "remedies": inspect_remedies}
    return {name: inspect(model, run, load_corpus(run.data)) for name, inspect in wanted.items() if name not in known}


def _metrics(run: RunConfig, out: Path) -> dict[str, Any]:
    path = file_of(run, out, "json")
    return read_result(path).metrics if path.exists() else {}


def contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """All that was planned, in nats a character."""
    found = {}
    for each in arms():
        runs_of = each.reported(runs)
        asked = [run.metrics["longer"] for run in runs_of]

        def at(way: str, length: str = COMPARED, asked: Sequence[Any] = asked) -> list[float]:
            return [its[way][length] for its in asked]

        last = at("plain", "64")
        for way in ("plain", "stack") if each.name in BLIND else ("plain", "gap", "stack"):
            found[f"{each.name}: {way} minus the last 64"] = difference(at(way), last)
        for length in ("64", COMPARED):
            found[f"{each.name}: again minus plain, {length}"] = difference(at("again", length), at("plain", length))
        for remedy in runs_of[0].metrics["remedies"]:
            helped = [run.metrics["remedies"][remedy][COMPARED] for run in runs_of]
            found[f"{each.name}: {remedy} minus plain"] = difference(helped, at("plain"))
        parts = [gap + stack - it for gap, stack, it in zip(at("gap"), at("stack"), last, strict=True)]
        found[f"{each.name}: plain minus gap and stack"] = difference(at("plain"), parts)
        if each.name not in BLIND:
            found[f"{each.name}: repeat minus its control"] = difference(at("repeat"), at("repeat, few"))
    return found


def law_contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """How well the law says what arms lose that it was not fitted to, as R2, by seed."""
    reported, found = {each.name: each.reported(runs) for each in arms()}, {}
    kinds = {"asked": ASKED_AFTER, "new": tuple(NEW), "new, and forgetting": (*NEW, *LATER)}
    for kind, names in kinds.items():
        by_seed = [
            verdicts({name: [its[place]] for name, its in reported.items()}, names) for place in range(len(SEEDS))
        ]
        law = [each["law"] for each in by_seed]
        found[f"{kind}: law"] = interval(law)
        for rival in by_seed[0].keys() - {"law"}:
            found[f"{kind}: law minus {rival}"] = difference(law, [each[rival] for each in by_seed])
    return dict(sorted(found.items()))
