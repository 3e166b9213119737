"""The plans of the studies that ship: complete, as they were planned, and their miniatures can be run."""

from dataclasses import replace

import pytest
from smoke import RESULTS

from posembed import schemes
from posembed.stored import load_plan, load_runs, load_study
from posembed.training import make_model, read_results
from posembed.training.plans import standing
from studies import nopos
from studies.bundles import SHIPPED, with_rates


def keys(configs):
    return {config.key for config in configs}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_study_ships_all_that_was_run_and_runs_all_that_was_planned(name):
    runs = read_results(RESULTS / name)
    plan, shipped = with_rates(SHIPPED[name].plan(runs), runs), load_plan(name)
    assert [(arm.name, keys(arm.runs), keys(arm.trials)) for arm in shipped.arms] == [
        (arm.name, keys(arm.runs), keys(arm.trials)) for arm in plan.arms
    ]
    assert standing(plan, RESULTS / name).left == () and plan.save_tables == shipped.save_tables
    assert load_runs(name) == runs
    study = load_study(name)
    assert list(study.by_arm) == [arm.name for arm in plan.arms] and len(study.by_arm) == len(plan.arms)
    assert keys(run.config for run in study.trials) == keys(plan.trials)
    for arm in plan.arms:
        assert [run.config.seed for run in study.by_arm[arm.name]] == [config.seed for config in arm.runs]
    # What was run and is none of the plan was run at a rate that was not chosen.
    tried = {
        replace(run, learning_rate=each.learning_rate).key
        for arm in plan.arms
        for each in arm.trials
        for run in arm.runs
    }
    assert keys(run.config for run in runs) <= keys(plan.trials) | tried | {k for a in plan.arms for k in keys(a.runs)}


@pytest.mark.parametrize("name", ["encodings", "nopos-large"])
def test_a_miniature_of_a_study_without_settings_of_its_own_can_be_run(corpus, name):
    for preset in ("smoke", "cpu"):
        plan = load_plan(name, preset)
        planned = {config.key: config for arm in plan.arms for config in (*arm.trials, *arm.runs)}
        assert (plan.name, plan.preset) == (name, preset)
        assert {config.preset for config in planned.values()} == {preset}
        if preset == "smoke":
            assert {(config.n_layers, config.steps) for config in planned.values()} == {(2, 20)}
            for config in list(planned.values())[:: max(1, len(planned) // 10)]:
                assert make_model(config, corpus).transformer.config.n_layers == 2


# What the runs of an arm of the NoPos study have otherwise than the others of its size, by what its name says.
OTHERWISE = {
    " hidden": {"masking_rate"},
    ", length ": {"length", "batch_size"},
    " in three layers of four": {"layers_with_positions"},
    ", further without": {"further_steps", "drops_positions"},
    ", further": {"further_steps"},
}
EVERYWHERE = {"scheme", "scheme_options", "seed", "inspections"}


def test_an_arm_of_the_nopos_study_differs_in_what_its_name_says():
    for arm in nopos.plan().arms:
        base = {"causal": nopos.SMALL, "masked": nopos.MASKED, "larger": nopos.LARGER}[arm.name.split(",")[0]].told
        run = arm.runs[0].told
        otherwise = next((what for said, what in OTHERWISE.items() if said in arm.name), set())
        assert {name for name in {*run, *base} if run.get(name) != base.get(name)} - EVERYWHERE == otherwise, arm.name
        assert len({replace(run, seed=0).key for run in arm.runs}) == 1
        assert len({replace(run, learning_rate=1.0).key for run in arm.trials}) == 1
        assert {run.seed for run in arm.trials} == {nopos.TUNING_SEED} and nopos.TUNING_SEED not in nopos.SEEDS
        assert all(run.steps < arm.runs[0].steps for run in arm.trials)
        five = arm.name in {f"{kind}, {scheme}" for kind in ("causal", "masked") for scheme in nopos.SCHEMES}
        assert tuple(run.seed for run in arm.runs) == (nopos.SEEDS if five else nopos.FEW_SEEDS)
    runs = [run for arm in nopos.plan().arms for run in arm.runs]
    tried = {run.scheme for run in runs if run.test_length == 256 and run.length == 64}
    # A scheme that came later has not been run.
    assert tried == set(nopos.ALL_SCHEMES) <= set(schemes())
    larger = [run for arm in nopos.ARMS["larger"] for run in arm.runs]
    assert len({run.length * run.batch_size for run in larger}) == 1


def test_no_rate_of_the_study_of_depth_is_at_an_edge():
    """Where the best rate was the lowest or the highest, the next one was tried too."""
    for arm in load_plan("depth").arms:
        rates = sorted({config.learning_rate for config in arm.trials})
        assert rates[0] < arm.runs[0].learning_rate < rates[-1], arm.name
