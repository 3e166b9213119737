"""Studies: what they hold, how far they are, how long they take, and that they run."""

from dataclasses import replace

import pytest
import torch
from refusals import refused

from posembed import RunConfig, RunResult, train
from posembed.errors import RunError
from posembed.stored import load_plan
from posembed.training import plans, read_tables, write_result
from posembed.training.grid import Settings
from posembed.training.plans import Arm, Plan, run_plan, standing, time_a_step

TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "length": 16, "batch_size": 2, "steps": 3, "warmup": 1}


def keys(configs):
    return {config.key for config in configs}


def result(config, loss):
    return RunResult(config, {"validation_loss": loss, "loss": loss}, {}, "", 1.0)


def plan_of(rates=(1e-3, 1e-2), **changes):
    arms = [
        Arm(
            scheme,
            tuple(RunConfig(scheme=scheme, seed=seed, **TINY | changes) for seed in (1, 2)),
            tuple(RunConfig(scheme=scheme, learning_rate=rate, **TINY | changes) for rate in rates),
        )
        for scheme in ("learned", "nopos")
    ]
    return Plan("mine", tuple(arms))


def test_a_study_is_run_once_and_its_standing_is_known_all_the_way(tmp_path):
    plan, trained = plan_of(), []
    settings = Settings(
        tmp_path, "serial", train=lambda config, **more: trained.append(config) or train(config, **more)
    )
    assert (standing(plan, tmp_path).n_runs, standing(plan, tmp_path).n_done) == (8, 0)
    assert list(tmp_path.iterdir()) == []
    told = []
    results, remark = run_plan(plan, settings, lambda config, result: told.append(config))
    assert trained == told and len(keys(trained)) == 8 and remark == ""
    # All learning rates are chosen before the first run that they are chosen for.
    assert {config.seed for config in trained[:4]} == {0} and {config.seed for config in trained[4:]} == {1, 2}
    for arm in plan.arms:
        losses = {each.learning_rate: train(each).metrics["validation_loss"] for each in arm.trials}
        assert {each.config.learning_rate for each in results[arm.name]} == {min(losses, key=losses.get)}
        assert [each.config.seed for each in results[arm.name]] == [1, 2]
    assert standing(plan, tmp_path).n_done == 8
    assert run_plan(plan, settings)[0] == results and len(trained) == 8


def test_the_standing_while_rates_are_chosen(tmp_path):
    plan = plan_of()
    one, other = plan.arms[0].trials
    write_result(result(one, 1.0), tmp_path)
    assert standing(plan, tmp_path).n_done == 1
    write_result(result(other, 0.5), tmp_path)
    # A run at the chosen rate counts; one at a rate that was not chosen is none of the plan's.
    for rate in (one.learning_rate, other.learning_rate):
        write_result(result(RunConfig(scheme="learned", seed=1, learning_rate=rate, **TINY), 1.0), tmp_path)
    stand = standing(plan, tmp_path)
    assert stand.n_done == 3 and len(stand.left) == 5
    assert {config.learning_rate for config in stand.left if config.scheme == "learned"} == {other.learning_rate}
    incomplete = refused(RunError, plan.arms[0].reported, [result(one, 1.0), result(other, 0.5)])
    assert incomplete == "the arm 'learned' is not complete; run its study, with make study"


def diverging(config, **more):
    """Runs at the highest rate diverge."""
    if config.learning_rate == 1.0:
        raise RunError("it diverged")
    return train(config, **more)


def test_a_rate_that_diverges_is_not_chosen(tmp_path):
    results, remark = run_plan(plan_of((1e-3, 1.0)), Settings(tmp_path, "serial", train=diverging))
    assert {each.config.learning_rate for part in results.values() for each in part} == {1e-3}
    assert remark.startswith("2 of 4 runs failed, the others are stored; learned, seed 0, learning rate 1.0, ")


def test_an_arm_without_any_rate_is_an_error_after_the_others_are_done(tmp_path):
    plan = Plan("mine", (plan_of((1.0,)).arms[0], plan_of().arms[1]))
    said = refused(RunError, run_plan, plan, Settings(tmp_path, "serial", train=diverging))
    assert said.startswith("1 of 7 runs failed, 2 wait for a learning rate, the others are stored; learned, seed 0")
    assert {config.scheme for config in standing(plan, tmp_path).left} == {"learned"}
    assert standing(plan, tmp_path).n_done == 4


def test_trained_tables_are_kept(tmp_path):
    plan = replace(plan_of(), arms=plan_of().arms[:1], save_tables=True)
    results, _ = run_plan(plan, Settings(tmp_path, "serial"))
    assert set(read_tables(tmp_path)) == keys(plan.trials) | {run.config.key for run in results["learned"]}


def test_another_text_for_all_runs():
    plan = load_plan("encodings", "smoke")
    others = plan.with_changes(data="mine.txt")
    assert {config.data for arm in others.arms for config in (*arm.trials, *arm.runs)} == {"mine.txt"}
    assert others.with_changes(data="sotu") == plan


def test_an_estimate_times_each_kind_of_run_once(monkeypatch):
    timed = []
    monkeypatch.setattr(plans, "time_a_step", lambda config: timed.append(config) or 2.0)
    monkeypatch.setattr(plans, "TOKENS", 3 * 160)
    monkeypatch.setattr(plans, "TOKENS_BY_POSITION", 3 * 320)
    small = [RunConfig(seed=1, **TINY), RunConfig(**TINY | {"steps": 30}, learning_rate=0.5)]
    large = RunConfig(**TINY | {"scheme": "rope", "test_length": 64, "test_scalings": ("ntk",)})
    # A step reads 32 tokens, and measuring one takes a third of that: 10 steps, and 10 more for each loss by position.
    assert plans.estimate([*small, large]) == pytest.approx(2.0 * ((3 + 10) + (30 + 10) + (3 + 10 + 20)))
    assert timed == [small[0], large]


def test_timed_steps_leave_random_numbers_and_threads_alone():
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    assert time_a_step(RunConfig(scheme="learned", **TINY)) > 0
    assert torch.equal(torch.get_rng_state(), state) and torch.get_num_threads() == threads
