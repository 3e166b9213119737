"""Arms whose rate is found by trials: more are tried at an edge, and one that diverges is no choice."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
from refusals import refused

from posembed import RunConfig, RunResult, train
from posembed.errors import RunError
from posembed.training import plans
from posembed.training.plans import Plan
from studies import __main__ as command
from studies.search import Search, run_searches

TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "length": 16, "batch_size": 2, "steps": 3, "warmup": 1}
RUN = RunConfig(**TINY)
ARM = Search("mine", RUN, (1, 2), RUN, (0, 9), (1e-3, 3e-3, 9e-3))


def results(by_rate):
    """Both trials of each rate, around a loss."""
    return [
        RunResult(config, {"loss": 1.0, "validation_loss": loss + 0.1 * (config.seed == 9)}, {}, "", 1.0)
        for rate, loss in by_rate.items()
        for config in ARM.trials_at(rate)
    ]


EDGES = [
    ({1e-3: 2.0, 3e-3: 1.0, 9e-3: 1.5}, []),
    ({1e-3: 1.0, 3e-3: 2.0, 9e-3: 3.0}, [3.3e-4]),
    ({1e-3: 3.0, 3e-3: 2.0, 9e-3: 1.0}, [0.027]),
]


@pytest.mark.parametrize(("losses", "wanted"), EDGES)
def test_beyond_an_edge_the_next_rate_is_tried(losses, wanted):
    left = ARM.next_trials(results(losses))
    assert sorted({config.learning_rate for config in left}) == pytest.approx(wanted)
    assert {config.seed for config in left} == ({0, 9} if wanted else set())


def test_trials_come_before_runs_and_the_runs_have_their_rate():
    assert len(ARM.next_trials([])) == 6
    found = results({1e-3: 2.0, 3e-3: 1.0, 9e-3: 1.5})
    assert {(run.learning_rate, run.seed) for run in ARM.runs(found)} == {(3e-3, 1), (3e-3, 2)}
    assert refused(RunError, ARM.reported, found) == "the arm 'mine' is not complete; run its study, with make study"


def test_what_was_found_is_an_arm_as_those_that_ship():
    found = results({1e-3: 2.0, 3e-3: 1.0})
    arm = ARM.arm(found)
    assert arm.chosen(found) == tuple(ARM.runs(found))
    # That of the rate that gave nothing is not among them.
    assert {trial.learning_rate for trial in arm.trials} == {1e-3, 3e-3}


def test_a_rate_that_diverges_is_tried_once_and_not_chosen():
    found = results({1e-3: 2.0, 3e-3: 1.0})
    failed = {config.key for config in ARM.trials_at(9e-3)}
    assert ARM.next_trials(found, failed) == [] and ARM.losses(found)[9e-3] == math.inf
    assert ARM.rate(found) == 3e-3


def test_arms_are_run_to_their_end_and_once(tmp_path):
    for _ in range(2):
        run_searches(lambda _: [ARM], tmp_path, n_workers=1)
        kept = sorted(path.stat().st_mtime_ns for path in tmp_path.glob("*.json"))
        assert len(kept) >= 8
    assert kept == sorted(path.stat().st_mtime_ns for path in tmp_path.glob("*.json"))


@pytest.mark.parametrize("name", command.SEARCHED)
def test_the_arms_of_a_plan_have_names_of_their_own_and_no_trial_is_reported(name):
    study = command.SEARCHED[name].arms()
    assert len({arm.name for arm in study}) == len(study)
    for arm in study:
        assert not {*arm.seeds} & {*arm.trial_seeds}
        ratios = [higher / lower for lower, higher in zip(arm.rates, arm.rates[1:], strict=False)]
        assert max(ratios, default=1) < 1.2 * min(ratios, default=1), arm.name


def test_a_study_of_which_a_trial_diverges_comes_to_an_end(tmp_path, monkeypatch, capsys):
    trials = tuple(replace(RUN, seed=9, learning_rate=rate) for rate in (3e-3, 1.0))
    plan, tried = Plan("mine", (plans.Arm("mine", (RUN,), trials),)), []

    def diverging(config, **more):
        tried.append(config.learning_rate)
        if config.learning_rate == 1.0:
            raise RunError("it diverged")
        return train(config)

    monkeypatch.setattr(command, "train", diverging)
    monkeypatch.setattr(command, "SHIPPED", {"mine": SimpleNamespace(plan=lambda runs: plan)})
    command._shipped("mine")(tmp_path, engine="serial")
    assert tried.count(1.0) == 1 and len(list(tmp_path.glob("*.json"))) == 2
    assert "in the trials, 1 of 2 runs failed" in capsys.readouterr().err
