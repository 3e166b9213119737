"""Studies: what they hold, how far they are, how long they take, and that they run."""

import pytest
import torch

from posembed import RunConfig, RunResult
from posembed.data import load_corpus
from posembed.errors import RunError
from posembed.experiments import encodings, make_model, nopos, read_results, read_tables, trained_tables, write_result
from posembed.experiments.grids import runs
from posembed.experiments.grids.engines import Settings
from posembed.experiments.grids.estimate import Estimate, estimate, time_a_step
from posembed.experiments.grids.runs import Keeping
from posembed.experiments.plans.gpu import GPU
from posembed.experiments.plans.paper import PILE_SIZES
from posembed.experiments.plans.presets import STUDIES, load_study
from posembed.experiments.plans.studies import run_study, standing
from posembed.experiments.plans.study import Part, Study
from posembed.experiments.training.machine import machine_of
from posembed.experiments.training.speed import flops_per_token

EVERY = [(name, preset) for name, presets in STUDIES.items() for preset in presets]
TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "length": 16, "batch_size": 2, "steps": 3, "warmup": 1}


def keys(configs):
    return {config.key for config in configs}


def planned(study):
    return [config for part in study.parts for config in (*part.tuning, *part.runs)]


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_every_preset_is_made_of_runs_that_can_be_meant(name, preset):
    study = load_study(name, preset)
    assert (study.name, study.preset) == (name, preset)
    assert {config.preset for config in planned(study)} == {preset}
    assert len({part.name for part in study.parts}) == len(study.parts)
    assert study.n_runs == len(keys(study.tuning)) + sum(len(keys(part.runs)) for part in study.parts)


def test_the_plans_are_those_of_the_studies():
    """A rate that the tuning chooses gives exactly the configs of the plan."""
    for part, arm in zip(load_study("encodings").parts, encodings.ARMS, strict=True):
        assert keys(part.tuning) == keys(arm.tuning())
        for tuned in part.tuning:
            chosen = part.chosen([result(tuned, 1.0), *(result(other, 2.0) for other in part.tuning if other != tuned)])
            assert keys(chosen) == keys(arm.config(tuned.learning_rate, seed) for seed in encodings.SEEDS)
    assert load_study("nopos").parts == tuple(part for parts in nopos.PARTS.values() for part in parts)
    tables = load_study("trained-tables")
    wanted = [arm.config(seed) for arm in trained_tables.ARMS.values() for seed in trained_tables.SEEDS]
    assert keys(planned(tables)) == keys(wanted) and tables.save_tables and not tables.tuning


def result(config, loss):
    return RunResult(config, {"validation_loss": loss, "loss": loss}, {}, "", 1.0)


def test_the_sizes_of_the_gpu_preset_and_of_the_paper():
    n_weights = lambda config, vocab_size: (
        flops_per_token(config, vocab_size) / 6 - 2 * config.n_layers * config.length * config.d_model
    )
    assert 2e7 < n_weights(GPU, 100) < 9e7
    paper = {part.name: part.runs[0] for part in load_study("nopos", "paper").parts}
    for name in PILE_SIZES:
        size = {"M": 1e6, "B": 1e9}[name[-1]] * float(name[:-1])
        config = paper[f"Pile, {name}, nopos"]
        assert n_weights(config, config.vocab_size) == pytest.approx(size, rel=0.03)
    tokens = {name: config.batch_size * config.length for name, config in paper.items()}
    on_the_pile = {name: count for name, count in tokens.items() if name.startswith("Pile, ")}
    assert {count for name, count in on_the_pile.items() if "masked" not in name} == {2**18}
    assert tokens["Pile, masked, nopos"] == 2**20
    wiki = paper["WikiText-103, alibi"]
    assert (wiki.n_layers, wiki.d_model, wiki.d_ff, wiki.n_heads, wiki.length) == (16, 1024, 4096, 8, 512)
    assert (wiki.optimizer, wiki.steps, tokens["WikiText-103, alibi"]) == ("nag", 286_000, 8 * 9216)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("name", "preset", "message"),
    [
        ("glue", "cpu", "there is no study 'glue'; choose among nopos, encodings, trained-tables"),
        ("nopos", "tpu", "the study 'nopos' has no preset 'tpu'; choose among smoke, cpu, gpu, paper"),
        ("encodings", "paper", "the study 'encodings' has no preset 'paper'; choose among smoke, cpu"),
    ],
)
def test_an_unknown_study_or_preset_names_those_there_are(name, preset, message):
    with pytest.raises(RunError) as caught:
        load_study(name, preset)
    assert str(caught.value) == message


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
    study, settings, train, trained = study_of(), Settings(tmp_path), runs.train, []
    monkeypatch.setattr(runs, "train", lambda config, **more: trained.append(config) or train(config, **more))
    assert (standing(study, tmp_path).n_runs, standing(study, tmp_path).n_done) == (8, 0)
    told = []
    results, remark = run_study(study, "serial", settings, lambda config, result: told.append(config))
    assert trained == told and len(keys(trained)) == 8 and remark == ""
    # All learning rates are chosen before the first run that they are chosen for.
    assert {config.seed for config in trained[:4]} == {0} and {config.seed for config in trained[4:]} == {1, 2}
    for part in study.parts:
        by_rate = {each.learning_rate: each for each in part.tuning}
        losses = {rate: train(config).metrics["validation_loss"] for rate, config in by_rate.items()}
        assert {each.config.learning_rate for each in results[part.name]} == {min(losses, key=losses.get)}
        assert [each.config.seed for each in results[part.name]] == [1, 2]
    assert standing(study, tmp_path).n_done == 8
    again, _ = run_study(study, "serial", settings)
    assert again == results and len(trained) == 8


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


FAST = {"optimizer": "nag", "largest_gradient": 1e30}


def test_a_rate_that_diverges_is_not_chosen(tmp_path):
    results, remark = run_study(study_of((1e-3, 1e30), **FAST), "serial", Settings(tmp_path))
    assert {each.config.learning_rate for part in results.values() for each in part} == {1e-3}
    assert remark.startswith("2 of 4 runs failed, the others are stored: learned, seed 0, learning rate 1e+30")


def test_a_part_without_any_rate_is_an_error_after_the_others_are_done(tmp_path):
    study = study_of((1e30,), **FAST)
    calm = Study("mine", "smoke", (study.parts[0], study_of().parts[1]))
    said = r"1 of 7 runs failed, 2 wait for a learning rate, the others are stored: learned, seed 0.*1e\+30"
    with pytest.raises(RunError, match=said):
        run_study(calm, "serial", Settings(tmp_path))
    assert {config.scheme for config in standing(calm, tmp_path).left} == {"learned"}
    assert standing(calm, tmp_path).n_done == 4


def test_a_rate_that_diverged_elsewhere_is_not_called_stored(tmp_path):
    study = Study("mine", "smoke", (study_of((1e30,), **FAST).parts[0], study_of((1e-3, 1e30), **FAST).parts[1]))
    said = "2 of 7 runs failed, 2 wait for a learning rate, the others are stored: learned, seed 0.*; nopos, seed 0"
    with pytest.raises(RunError, match=said):
        run_study(study, "serial", Settings(tmp_path))
    assert len(read_results(tmp_path)) == 7 - 2 - 2


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_preset_for_another_machine_gives_its_reason_once(tmp_path):
    study = study_of(device="cuda")
    with pytest.raises(RunError) as caught:
        run_study(study, "serial", Settings(tmp_path))
    named = f"learned, seed 0, learning rate 0.001, {study.tuning[0].key} and 3 more"
    begins = f"4 of 8 runs failed, 4 wait for a learning rate: {named}"
    assert str(caught.value).startswith(f"{begins} (device is 'cuda', which PyTorch has not here; ")
    assert str(caught.value).count("PyTorch") == 1


def test_trained_tables_are_kept(tmp_path):
    study = load_study("trained-tables", "smoke")
    run_study(study, "serial", Settings(tmp_path, keeping=Keeping(tables=study.save_tables)))
    assert set(read_tables(tmp_path)) == keys(planned(study))


def test_another_text_for_all_runs(tmp_path):
    study = load_study("nopos", "gpu").with_changes(data="mine.txt")
    assert {config.data for config in planned(study)} == {"mine.txt"}


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
    assert estimate([config, twice_as_long], done + other) == Estimate(33.0 * 3, stored=2, timed=0, counted=0)


def test_an_estimate_from_timed_steps(monkeypatch):
    """Each size is timed once; measuring reads 2 ** 18 tokens, each for a third of what training on it costs."""
    timed = []
    monkeypatch.setattr("posembed.experiments.grids.estimate.time_a_step", lambda config: timed.append(config) or 2.0)
    small = [RunConfig(seed=seed, **TINY) for seed in (1, 2)]
    large = RunConfig(**TINY | {"d_model": 64, "batch_size": 4})
    found = estimate([*small, large])
    assert timed == [small[0], large]
    assert (found.stored, found.timed, found.counted) == (0, 3, 0) and found.source == "from a few timed steps"
    of_measuring = 2**18 / 3 * (2 / (2 * 16) + 1 / (4 * 16))
    assert found.seconds == pytest.approx(2.0 * (3 * TINY["steps"] + of_measuring))


def test_timed_steps_leave_random_numbers_and_threads_alone():
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    assert time_a_step(RunConfig(scheme="learned", tokens="bpe", vocab_size=300, **TINY)) > 0
    assert torch.equal(torch.get_rng_state(), state) and torch.get_num_threads() == threads


def test_steps_that_are_too_large_here_are_counted_and_not_tried(monkeypatch):
    monkeypatch.setattr("posembed.experiments.grids.estimate.time_a_step", lambda config: pytest.fail("tried"))
    study = load_study("nopos", "paper")
    found = estimate(standing(study, "no-such-folder").left)
    assert found.counted == study.n_runs and "40% of one A100's" in found.source
    one = study.parts[0].runs[0]
    tokens = one.steps * one.batch_size * one.length
    assert estimate([one]).seconds == pytest.approx(
        tokens * flops_per_token(one, one.vocab_size) / (0.4 * 312e12), rel=0.01
    )


def test_smoke_takes_seconds_on_one_core():
    """By the arithmetic: a machine's speed is not this test's matter."""
    for name in STUDIES:
        for config in planned(load_study(name, "smoke")):
            tokens = config.steps * config.batch_size * config.length
            assert tokens * flops_per_token(config, 100) < 1e9


@pytest.mark.parametrize("name", STUDIES)
def test_the_models_of_smoke_can_be_made(name):
    for config in planned(load_study(name, "smoke")):
        make_model(config, load_corpus())


def test_nothing_is_written_by_looking(tmp_path):
    standing(load_study("nopos"), tmp_path / "results")
    assert list(tmp_path.iterdir()) == []
