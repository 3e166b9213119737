"""Studies: what they hold, how far they are, how long they take, and that they run."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from refusals import refused

from posembed import RunConfig, RunResult, schemes, train
from posembed.errors import RunError
from posembed.training import (
    encodings,
    estimate,
    grid,
    make_model,
    read_results,
    read_tables,
    trained_tables,
    which_positions,
    write_result,
)
from posembed.training.estimate import time_a_run
from posembed.training.grid import Settings
from posembed.training.machine import machine_of
from posembed.training.nopos import FEW_SEEDS, LARGER, MASKED, PARTS, RATES, SCHEMES, SEEDS, SMALL, TUNING_SEED
from posembed.training.plans import Part, Study, run_study, standing
from posembed.training.plans.presets import PRESETS, STUDIES, load_study
from posembed.training.tasks import load_task

RESULTS = Path(__file__).resolve().parents[2] / "results"
TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "length": 16, "batch_size": 2, "steps": 3, "warmup": 1}


def keys(configs):
    return {config.key for config in configs}


def planned(study):
    return [config for part in study.parts for config in (*part.tuning, *part.runs)]


def at_every_rate(study):
    return {
        config.key
        for part in study.parts
        for run in part.runs
        for config in (replace(run, learning_rate=each.learning_rate) for each in part.tuning or [run])
    }


def planned_further(results):
    """What `tools/tasks.py` runs beside the made tasks: it needs texts that no package brings."""
    parts = which_positions.pretraining_parts() + which_positions.further_parts(results)
    study = Study("tasks", "cpu", tuple(parts))
    return keys(study.tuning) | at_every_rate(study)


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_plans_all_runs_that_are_stored_and_its_miniature_can_be_run(corpus, name):
    study = load_study(name)
    stored = {path.stem for path in (RESULTS / name).glob("*.json")}
    further = planned_further(read_results(RESULTS / name)) if name == "tasks" else set()
    assert stored and stored <= keys(study.tuning) | at_every_rate(study) | further
    assert standing(study, RESULTS / name).left == ()
    for preset in PRESETS:
        study = load_study(name, preset)
        assert (study.name, study.preset) == (name, preset)
        assert {config.preset for config in planned(study)} == {preset}
        assert len({part.name for part in study.parts}) == len(study.parts)
        assert study.n_runs == len(keys(study.tuning)) + sum(len(keys(part.runs)) for part in study.parts)
    for config in planned(load_study(name, "smoke")):
        assert make_model(config, corpus).transformer.config.n_layers == 2
        assert (config.steps, config.batch_size, config.inspections) == (20, 8, ())


def test_the_plans_are_those_of_the_studies():
    """A rate that the tuning chooses gives exactly the configs of the plan."""
    for part, arm in zip(load_study("encodings").parts, encodings.ARMS, strict=True):
        assert [config.learning_rate for config in part.tuning] == list(encodings.RATES)
        assert {config.seed for config in part.tuning} == {encodings.TUNING_SEED}
        for tuned in part.tuning:
            others = [result(other, 2.0) for other in part.tuning if other != tuned]
            chosen = part.chosen([result(tuned, 1.0), *others])
            assert keys(chosen) == keys(arm.config(tuned.learning_rate, seed) for seed in encodings.SEEDS)
    assert load_study("nopos").parts == tuple(part for parts in PARTS.values() for part in parts)
    tables = load_study("trained-tables")
    wanted = [arm.config(seed) for arm in trained_tables.ARMS.values() for seed in trained_tables.SEEDS]
    assert keys(planned(tables)) == keys(wanted) and tables.save_tables and not tables.tuning


ALL = {part.name: part for parts in PARTS.values() for part in parts}
# What a part's runs have otherwise than the others of its size, by what its name says.
OTHERWISE = {
    " hidden": {"masking_rate"},
    ", length ": {"length", "batch_size"},
    " in three layers of four": {"layers_with_positions"},
    ", further without": {"further_steps", "drops_positions"},
    ", further": {"further_steps"},
}
EVERYWHERE = {"scheme", "scheme_options", "seed", "inspections"}


def test_a_part_of_the_nopos_study_differs_in_what_its_name_says():
    for name, part in ALL.items():
        base = {"causal": SMALL, "masked": MASKED, "larger": LARGER}[name.split(",")[0]].to_dict()
        run = part.runs[0].to_dict()
        otherwise = next((what for said, what in OTHERWISE.items() if said in name), set())
        assert {setting for setting in run if run[setting] != base[setting]} - EVERYWHERE == otherwise, name
        assert len({replace(run, seed=0).key for run in part.runs}) == 1
        assert len({replace(run, learning_rate=1.0).key for run in part.tuning}) == 1
        assert [run.learning_rate for run in part.tuning] == list(RATES)
        assert {run.seed for run in part.tuning} == {TUNING_SEED} and TUNING_SEED not in SEEDS
        assert all(run.steps < part.runs[0].steps for run in part.tuning)
        five = name in {f"{kind}, {scheme}" for kind in ("causal", "masked") for scheme in SCHEMES}
        assert tuple(run.seed for run in part.runs) == (SEEDS if five else FEW_SEEDS)
    tried = {run.scheme for part in ALL.values() for run in part.runs if run.test_length == 256 and run.length == 64}
    assert tried == set(schemes())
    larger = [run for part in PARTS["larger"] for run in part.runs]
    assert {run.length for run in larger} == {32, 128, 256}
    assert len({run.length * run.batch_size for run in larger}) == 1


def result(config, loss):
    return RunResult(config, {"validation_loss": loss, "loss": loss}, {}, "", 1.0)


def study_of(rates=(1e-3, 1e-2), **changes):
    parts = [
        Part(
            scheme,
            tuple(RunConfig(scheme=scheme, seed=seed, **TINY | changes) for seed in (1, 2)),
            tuple(RunConfig(scheme=scheme, learning_rate=rate, **TINY | changes) for rate in rates),
        )
        for scheme in ("learned", "nopos")
    ]
    return Study("mine", "smoke", tuple(parts))


def test_a_study_is_run_once_and_its_standing_is_known_all_the_way(tmp_path, monkeypatch):
    study, settings, trained = study_of(), Settings(tmp_path, "serial"), []
    monkeypatch.setattr(grid, "train", lambda config, **more: trained.append(config) or train(config, **more))
    assert (standing(study, tmp_path).n_runs, standing(study, tmp_path).n_done) == (8, 0)
    assert list(tmp_path.iterdir()) == []
    told = []
    results, remark = run_study(study, settings, lambda config, result: told.append(config))
    assert trained == told and len(keys(trained)) == 8 and remark == ""
    # All learning rates are chosen before the first run that they are chosen for.
    assert {config.seed for config in trained[:4]} == {0} and {config.seed for config in trained[4:]} == {1, 2}
    for part in study.parts:
        losses = {each.learning_rate: train(each).metrics["validation_loss"] for each in part.tuning}
        assert {each.config.learning_rate for each in results[part.name]} == {min(losses, key=losses.get)}
        assert [each.config.seed for each in results[part.name]] == [1, 2]
    assert standing(study, tmp_path).n_done == 8
    assert run_study(study, settings)[0] == results and len(trained) == 8


def test_the_standing_while_rates_are_chosen(tmp_path):
    study = study_of()
    one, other = study.parts[0].tuning
    write_result(result(one, 1.0), tmp_path)
    assert standing(study, tmp_path).n_done == 1
    write_result(result(other, 0.5), tmp_path)
    # A run at the chosen rate counts; one at a rate that was not chosen is none of the study's.
    for rate in (one.learning_rate, other.learning_rate):
        write_result(result(RunConfig(scheme="learned", seed=1, learning_rate=rate, **TINY), 1.0), tmp_path)
    stand = standing(study, tmp_path)
    assert stand.n_done == 3 and len(stand.left) == 5
    assert {config.learning_rate for config in stand.left if config.scheme == "learned"} == {other.learning_rate}
    incomplete = refused(RunError, study.parts[0].reported, [result(one, 1.0), result(other, 0.5)])
    assert incomplete == "the part 'learned' is not complete; run its study, with posembed grid"


@pytest.fixture
def diverging(monkeypatch):
    """Runs at the highest rate diverge."""

    def run(config, **more):
        if config.learning_rate == 1.0:
            raise RunError("it diverged")
        return train(config, **more)

    monkeypatch.setattr(grid, "train", run)


def test_a_rate_that_diverges_is_not_chosen(tmp_path, diverging):
    results, remark = run_study(study_of((1e-3, 1.0)), Settings(tmp_path, "serial"))
    assert {each.config.learning_rate for part in results.values() for each in part} == {1e-3}
    assert remark.startswith("2 of 4 runs failed, the others are stored; learned, seed 0, learning rate 1.0, ")


def test_a_part_without_any_rate_is_an_error_after_the_others_are_done(tmp_path, diverging):
    study = Study("mine", "smoke", (study_of((1.0,)).parts[0], study_of().parts[1]))
    said = refused(RunError, run_study, study, Settings(tmp_path, "serial"))
    assert said.startswith("1 of 7 runs failed, 2 wait for a learning rate, the others are stored; learned, seed 0")
    assert {config.scheme for config in standing(study, tmp_path).left} == {"learned"}
    assert standing(study, tmp_path).n_done == 4


def test_trained_tables_are_kept(tmp_path):
    study = replace(study_of(), parts=study_of().parts[:1], save_tables=True)
    results, _ = run_study(study, Settings(tmp_path, "serial"))
    assert set(read_tables(tmp_path)) == keys(study.tuning) | {run.config.key for run in results["learned"]}


def test_another_text_for_all_runs():
    study = load_study("nopos", "smoke")
    others = study.with_changes(data="mine.txt")
    assert {config.data for config in planned(others)} == {"mine.txt"}
    assert others.with_changes(data="sotu") == study


def stored(config, seconds, machine=None):
    return RunResult(config, {}, {}, machine or machine_of(config), seconds)


def test_an_estimate_from_stored_runs():
    config = RunConfig(scheme="rope", **TINY)
    done = [
        stored(RunConfig(scheme="rope", seed=seed, **TINY), seconds)
        for seed, seconds in ((5, 30.0), (6, 60.0), (7, 33.0))
    ]
    other = [stored(RunConfig(scheme="nopos", **TINY), 1e9), stored(config, 1e9, "another machine")]
    twice_as_long = RunConfig(scheme="rope", learning_rate=0.5, **TINY | {"steps": 2 * TINY["steps"]})
    found = estimate.estimate([config, twice_as_long], done + other)
    assert found == (pytest.approx(33.0 * 3), "from stored runs like them")


def test_an_estimate_from_timed_steps(monkeypatch):
    """Each size is timed once."""
    timed = []
    monkeypatch.setattr(estimate, "time_a_run", lambda config: timed.append(config) or (2.0, 0.5))
    small = [RunConfig(seed=seed, **TINY) for seed in (1, 2)]
    large = RunConfig(
        **TINY | {"d_model": 64, "batch_size": 4, "scheme": "rope", "test_length": 64, "test_scalings": ("ntk",)}
    )
    found = estimate.estimate([*small, large], [stored(RunConfig(scheme="t5", **TINY), 1.0)])
    assert timed == [small[0], large] and found.source == "from timed steps"
    assert found.seconds == pytest.approx(3 * (2.0 * TINY["steps"] + 0.5))
    mixed = estimate.estimate(small, [stored(small[0], 1.0), stored(large, 1.0)])
    assert mixed.source == "from stored runs like them"
    assert estimate.estimate([small[0], large], [stored(small[1], 1.0)]).source.endswith("like them and timed steps")
    inspected = replace(large, inspections=("dropped",))
    assert estimate.estimate([inspected]).source == "from timed steps, without inspections"


def test_measuring_is_timed_on_a_part(monkeypatch):
    """A clock that ticks with each token that is measured tells how many all of them are."""
    monkeypatch.setattr(estimate, "TOKENS", 2**20)
    monkeypatch.setattr(estimate, "TOKENS_BY_POSITION", 2**21)
    read = []
    monkeypatch.setattr(estimate, "text_losses", lambda model, text, config, length, n: read.append((length, n)) or [])
    monkeypatch.setattr("time.perf_counter", lambda: float(sum(n for _, n in read)))
    config = RunConfig(**TINY | {"scheme": "rope", "test_length": 64, "test_scalings": ("ntk",)})
    assert time_a_run(config)[1] == 2 * 2**20 + 2 * 2**21
    assert [length for length, _ in read] == [TINY["length"], 64]


def test_a_task_is_timed_on_some_texts(monkeypatch):
    measured = []
    monkeypatch.setattr(estimate, "measure_task", lambda model, task, config: measured.append(task))
    monkeypatch.setattr("time.perf_counter", lambda: 64.0 * len(measured))
    config = RunConfig(**TINY | {"objective": "task", "task": "order"})
    _, seconds = time_a_run(config)
    task = load_task(config)
    assert len(measured[0].test.ids) == len(measured[0].validation.ids) == 64
    assert seconds == (len(task.test.ids) + len(task.validation.ids)) / 2


def test_timed_steps_leave_random_numbers_and_threads_alone():
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    assert time_a_run(RunConfig(scheme="learned", further_steps=2, drops_positions=True, **TINY))[0] > 0
    assert torch.equal(torch.get_rng_state(), state) and torch.get_num_threads() == threads


@pytest.mark.bad_input
def test_a_device_that_is_not_there_has_no_estimate(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    message = refused(RunError, estimate.estimate, [RunConfig(device="cuda")])
    assert message.startswith("device is 'cuda', which PyTorch has not here; choose among cpu")
