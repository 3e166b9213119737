"""Grids: failures that cost nothing but themselves, weights beside results, one worker for each run."""

import logging
import subprocess
import sys

import pytest
import torch

from posembed import RunConfig, run_grid
from posembed.errors import RunError
from posembed.experiments import make_model, missing, read_results, read_tables
from posembed.experiments.files.model_files import read_model, write_model
from posembed.experiments.files.store import file_of
from posembed.experiments.grids import runs
from posembed.experiments.grids.claims import claim
from posembed.experiments.training.text import corpus_of

TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "length": 16, "batch_size": 2, "steps": 4, "warmup": 1}
GRID = [RunConfig(scheme="learned", seed=seed, **TINY) for seed in (1, 2, 3)]
# Too fast for any model.
DIVERGES = RunConfig(scheme="learned", seed=2, learning_rate=1e30, optimizer="nag", largest_gradient=1e30, **TINY)


@pytest.mark.parametrize("engine", ["serial", "joblib"])
def test_a_run_that_diverges_does_not_keep_the_others_from_being_done(tmp_path, engine):
    told = []
    with pytest.raises(RunError) as caught:
        run_grid(
            [GRID[0], DIVERGES, GRID[2]],
            engine=engine,
            out=tmp_path,
            n_workers=2,
            progress=lambda config, result: told.append((config.seed, result is None)),
        )
    message = str(caught.value)
    assert message.startswith("1 of 3 runs failed, the others are stored: learned, seed 2, learning rate 1e+30, ")
    assert f"{DIVERGES.key} (the loss of learned is " in message and "\n" not in message
    assert sorted(told) == [(1, False), (2, True), (3, False)]
    assert {result.config.key for result in read_results(tmp_path)} == {GRID[0].key, GRID[2].key}
    assert missing([GRID[0], DIVERGES, GRID[2]], tmp_path) == [DIVERGES]


def test_a_mistake_in_one_run_is_told_in_one_line_and_logged_in_full(tmp_path, monkeypatch, caplog):
    plain = runs.train
    monkeypatch.setattr(runs, "train", lambda config, **more: 1 / 0 if config.seed == 2 else plain(config, **more))
    with caplog.at_level(logging.ERROR), pytest.raises(RunError, match="ZeroDivisionError: division by zero"):
        run_grid(GRID, engine="serial", out=tmp_path)
    assert len(read_results(tmp_path)) == 2
    assert caplog.records[-1].exc_info[0] is ZeroDivisionError


def test_an_interruption_is_no_failure(tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "train", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_grid(GRID, engine="serial", out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def full_disk(*_):
    raise OSError(28, "No space left on device")


def test_a_full_disk_loses_no_other_run_and_is_told(tmp_path, monkeypatch):
    run_grid(GRID[:1], engine="serial", out=tmp_path)
    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(RunError) as caught:
        run_grid(GRID, engine="serial", out=tmp_path)
    monkeypatch.undo()
    told = str(caught.value)
    assert told.startswith("2 of 3 runs failed, the others are stored: learned, seed 2, ")
    assert told.endswith(f"{GRID[1].key} and 1 more (what it gave cannot be written (No space left on device))")
    assert [each.name for each in tmp_path.iterdir()] == [f"{GRID[0].key}.json"]
    assert len(run_grid(GRID, engine="serial", out=tmp_path)) == 3


def test_a_result_that_found_no_room_is_written_when_there_is_some(tmp_path, monkeypatch):
    """The disk is full while the second run is stored, and has room again when the third one is."""
    written, plain, trained = [], runs.write_result, []

    def write(result, out):
        written.append(result.config.seed)
        return full_disk() if result.config.seed == 2 else plain(result, out)

    train = runs.train
    monkeypatch.setattr(runs, "write_result", write)
    monkeypatch.setattr(runs, "train", lambda config, **more: trained.append(config.seed) or train(config, **more))
    results = run_grid(GRID, engine="serial", out=tmp_path)
    assert written == trained == [1, 2, 3] and [result.config.seed for result in results] == [1, 2, 3]


def test_a_run_under_way_goes_on_from_its_checkpoint_and_leaves_none(tmp_path, monkeypatch):
    plain, begun = runs.train, []

    def stopped(config, *, checkpoint, progress):
        def after_step(step, _):
            begun.append(step)
            if step == 3 and len(begun) == 3:
                raise KeyboardInterrupt

        checkpoint.steps = 2
        return plain(config, checkpoint=checkpoint, progress=after_step)

    monkeypatch.setattr(runs, "train", stopped)
    with pytest.raises(KeyboardInterrupt):
        run_grid(GRID[:1], engine="serial", out=tmp_path)
    assert file_of(GRID[0], tmp_path, "checkpoint").exists()
    (result,) = run_grid(GRID[:1], engine="serial", out=tmp_path)
    assert begun == [1, 2, 3, 3, 4]
    assert [each.name for each in tmp_path.iterdir()] == [f"{GRID[0].key}.json"]
    monkeypatch.undo()
    assert result.metrics == plain(GRID[0]).metrics


def test_a_damaged_checkpoint_costs_its_own_run_and_stays(tmp_path):
    path = file_of(GRID[1], tmp_path, "checkpoint")
    path.write_text("damaged")
    with pytest.raises(RunError, match=rf"1 of 3 runs failed.*{path.name} is damaged; move it away"):
        run_grid(GRID, engine="serial", out=tmp_path)
    assert path.read_text() == "damaged" and len(read_results(tmp_path)) == 2


def test_weights_are_kept_and_come_back(tmp_path):
    (result,) = run_grid(GRID[:1], engine="serial", out=tmp_path, save_models=True, save_tables=True)
    model = read_model(GRID[0], tmp_path)
    trained = runs.train(GRID[0]).model
    pairs = zip(model.state_dict().items(), trained.state_dict().items(), strict=True)
    assert all(one == other and torch.equal(x, y) for (one, x), (other, y) in pairs)
    table = model.transformer.position_scheme.weight
    assert table is model.transformer.layers[0].attention.position_scheme.weight  # one for all layers, as it was
    assert torch.allclose(read_tables(tmp_path)[GRID[0].key], table, atol=1e-3)
    assert not model.training and result.metrics["parameters"] == sum(each.numel() for each in model.parameters())


@pytest.mark.bad_input
def test_weights_that_cannot_be_used(tmp_path):
    with pytest.raises(RunError, match=r"there are no weights .*safetensors; run the config with save_models=True"):
        read_model(GRID[0], tmp_path)
    model = make_model(GRID[0], corpus_of(GRID[0]))
    path = write_model(model, GRID[0], tmp_path)
    path.rename(tmp_path / f"{GRID[1].key}.safetensors")
    with pytest.raises(RunError, match=f"holds the run {GRID[0].key}; give it that name"):
        read_model(GRID[1], tmp_path)
    content = write_model(model, GRID[0], tmp_path).read_bytes()
    path.write_bytes(content.replace(b'"format":"1"', b'"format":"2"'))
    with pytest.raises(RunError, match="has format '2', this version of posembed reads 1; upgrade posembed"):
        read_model(GRID[0], tmp_path)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(RunError, match="is damaged; move it and its result away"):
        read_model(GRID[0], tmp_path)
    write_model(make_model(RunConfig(**{**TINY, "d_model": 16}), corpus_of(GRID[0])), GRID[0], tmp_path)
    with pytest.raises(RunError, match="does not fit the model of its run"):
        read_model(GRID[0], tmp_path)


@pytest.mark.bad_input
def test_a_result_without_the_weights_that_are_asked_for_is_refused_before_anything_is_run(tmp_path):
    run_grid(GRID[:1], engine="serial", out=tmp_path)
    with pytest.raises(RunError, match=f"{GRID[0].key}.json has no weights beside it; move it away"):
        run_grid(GRID, engine="serial", out=tmp_path, save_models=True)
    assert [each.name for each in tmp_path.iterdir()] == [f"{GRID[0].key}.json"]


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "spark"}, "there is no engine 'spark'; choose among serial, joblib, ray"),
        ({"n_workers": 0}, "n_workers is 0; it must be a whole number from 1 on, or -1 for all cores"),
        ({"n_workers": -2}, "n_workers is -2"),
        ({"n_workers": 1.5}, "n_workers is 1.5"),
        ({"retries": -1}, "retries is -1; it must be a whole number from 0 on"),
        ({"gpus": -0.5}, "gpus is -0.5; it must be a share of a GPU"),
        ({"gpus": float("nan")}, "gpus is nan"),
        ({"checkpoint_seconds": 0}, "seconds of a checkpoint is 0; it must be positive"),
        ({"save_tables": True}, "save_tables is for the scheme 'learned'; 'rope' has no table"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_run(tmp_path, options, message):
    with pytest.raises(RunError) as caught:
        run_grid([RunConfig(scheme="rope", **TINY)], **{"engine": "serial", "out": tmp_path} | options)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("configs", "message"),
    [
        (GRID[0], "configs is a RunConfig; give a list of RunConfig"),
        (None, "configs is a NoneType; give a list of RunConfig"),
        ([GRID[0], {"scheme": "rope"}], "{'scheme': 'rope'} among the configs is no RunConfig; give a list"),
        ("rope", "'r' among the configs is no RunConfig"),
    ],
    ids=["one config", "nothing", "a mapping", "a name"],
)
def test_what_is_no_list_of_configs(tmp_path, configs, message):
    with pytest.raises(RunError) as caught:
        run_grid(configs, engine="serial", out=tmp_path)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_configs_that_can_be_gone_through_only_once(tmp_path):
    results = run_grid((config for config in GRID[:2]), engine="serial", out=tmp_path)
    assert [result.config for result in results] == GRID[:2]


@pytest.mark.bad_input
def test_ray_that_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RunError) as caught:
        run_grid(GRID, engine="ray", out=tmp_path)
    assert str(caught.value) == 'the engine "ray" needs Ray; pip install "posembed[ray]"'


def test_a_run_that_another_grid_has_in_hand_is_waited_for(tmp_path, monkeypatch):
    """While it waits, the other one writes its result."""
    waited, trained, train = [], [], runs.train
    monkeypatch.setattr(runs, "train", lambda config, **more: trained.append(config.seed) or train(config, **more))
    with claim(GRID[1], tmp_path):

        def other_grid_ends(seconds):
            waited.append(seconds)
            runs.run_claimed(GRID[1], tmp_path, runs.Keeping())

        monkeypatch.setattr("posembed.experiments.grids.grid.time.sleep", other_grid_ends)
        results = run_grid(GRID, engine="serial", out=tmp_path)
    assert [result.config.seed for result in results] == [1, 2, 3]
    assert len(waited) == 1 and trained == [1, 3, 2]


TWO_GRIDS = """
import sys
from posembed import RunConfig
from posembed.experiments import run_grid
from posembed.experiments.grids import runs

train = runs.train
def noted(config, **more):
    result = train(config, **more)
    print(config.seed, flush=True)
    return result

runs.train = noted
tiny = {"n_layers": 1, "d_model": 8, "n_heads": 2, "length": 16, "batch_size": 2, "steps": 50}
results = run_grid([RunConfig(seed=seed, **tiny) for seed in range(8)], engine="serial", out=sys.argv[1])
assert [result.config.seed for result in results] == list(range(8))
"""


@pytest.mark.slow
def test_two_grids_in_one_folder_share_the_work(tmp_path, fresh_environment):
    command = [sys.executable, "-c", TWO_GRIDS, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=fresh_environment) for _ in range(2)]
    done = [grid.communicate()[0].split() for grid in both]
    assert [grid.returncode for grid in both] == [0, 0]
    assert sorted(done[0] + done[1]) == [str(seed) for seed in range(8)]
    assert len(list(tmp_path.iterdir())) == 8


def test_workers_write_where_the_grid_was_called(tmp_path, monkeypatch):
    """They outlive a grid, and a relative path would mean the folder in which the first one was called."""
    for name, seed in (("first", 1), ("second", 2)):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        run_grid([RunConfig(seed=seed, **TINY)], engine="joblib", out="results", n_workers=2)
        assert [path.name for path in (tmp_path / name / "results").glob("*.json")] == [
            f"{RunConfig(seed=seed, **TINY).key}.json"
        ]
