"""Rates tuned over whole runs: the trials are as long as the runs, and the contrasts are those of the plan."""

from dataclasses import replace

import pytest

from posembed import RunResult
from studies import own_rates


def test_trials_are_as_long_as_the_runs_and_have_seeds_of_their_own():
    for arm in own_rates.arms():
        assert arm.trial.steps == arm.run.steps == 1500 and not {*arm.seeds} & {*arm.trial_seeds}
        same = replace(arm.trial, test_length=arm.run.test_length, test_scalings=arm.run.test_scalings)
        assert same == arm.run
    a, b = (own_rates.OF_START[start]["sinusoidal"] for start in "AB")
    assert a.scale_embeddings and not b.scale_embeddings and b.weight_std == 1 / 8


def test_the_contrasts_are_of_runs_with_one_seed():
    """Each scheme has a loss of its own, and a seed adds the same to all."""
    arms = own_rates.arms()
    level = {each.name: k / 10 for k, each in enumerate(arms)}

    def result(config, loss):
        flat = {"loss": loss, "validation_loss": abs(config.learning_rate - 1e-2), "loss_by_position": [loss] * 32}
        return RunResult(config, flat, {}, "", 1.0)

    trials = [result(trial, 0.0) for arm in arms for rate in own_rates.RATES for trial in arm.trials_at(rate)]
    reported = [result(run, level[arm.name] + run.seed) for arm in arms for run in arm.runs(trials)]
    found = own_rates.contrasts([*trials, *reported])
    assert [len(each) for each in found.values()] == [16, 20, 1]
    (later,) = found["later seeds"].values()
    ends = [level[f"{name}, start A, later seeds"] for name in ("learned", "sinusoidal")]
    assert later.n == 8 and later.mean == pytest.approx(ends[0] - ends[1])
    for name, its in found["primary"].items():
        pair, start = name.rsplit(", ", 1)
        one, other = (f"{each}, {start}" for each in pair.split(" minus "))
        assert its.mean == pytest.approx(level[one] - level[other]) and its.n == 5
    gap = {start: level[f"learned, start {start}"] - level[f"sinusoidal, start {start}"] for start in "AB"}
    of_both = found["secondary"]["learned minus sinusoidal, start B minus A"]
    assert of_both.mean == pytest.approx(gap["B"] - gap["A"])
