"""Grids: each run once, failures that cost nothing but themselves, weights beside results."""

import json
import os
import re
import signal
import sys
import time
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from refusals import refused

from posembed import RunConfig, run_grid, train
from posembed.errors import CheckpointError, RunError
from posembed.training import grid, missing, read_model, read_results, read_tables, run_and_store
from posembed.training.checkpoints import ASKING
from posembed.training.results import file_of

TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "length": 16, "batch_size": 2, "steps": 4, "warmup": 1}
GRID = [RunConfig(scheme="learned", seed=seed, **TINY) for seed in (1, 2, 3)]


@pytest.fixture
def trained():
    """Trains a run and notes its seed; seed 2 is trained as the fixture is told."""

    def note(config, **more):
        note.seeds.append(config.seed)
        return note.second(config, **more) if config.seed == 2 else train(config, **more)

    note.seeds, note.second = [], train
    return note


def test_a_grid_runs_each_config_once_and_goes_on_where_it_was(tmp_path, trained):
    told = []
    first = run_grid(GRID[:2], engine="serial", out=tmp_path, progress=lambda *each: told.append(each), train=trained)
    assert [config for config, _ in told] == GRID[:2] and [result for _, result in told] == first
    times = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    (tmp_path / f".{GRID[2].key}-x.tmp").write_text("half a resu")
    results = run_grid((each for each in [*GRID, GRID[0]]), engine="serial", out=tmp_path, train=trained)
    assert [each.config for each in results] == [*GRID, GRID[0]] and results[:2] == first
    assert trained.seeds == [1, 2, 3]
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())
    assert results[0].metrics == json.loads(json.dumps(train(GRID[0]).metrics))


def test_a_grid_says_from_time_to_time_how_far_it_is(tmp_path, trained, monkeypatch, capsys):
    """To whoever has not asked to be told; a grid of seconds is done before there is anything to say."""
    said = []
    trained.second = lambda config, **more: wait_for(said) or train(config, **more)
    monkeypatch.setattr("posembed.progress.EVERY", 0.01)
    monkeypatch.setattr("posembed.progress.say", said.append)
    run_grid(GRID, engine="serial", out=tmp_path, train=trained)
    line = r"learned, seed 1: loss \d\.\d{3}, 1 of 3; 0:\d\d:\d\d gone, about 0:\d\d:\d\d left"
    assert any(re.fullmatch(line, each) for each in said), said
    monkeypatch.undo()
    run_grid(GRID, engine="serial", out=tmp_path)
    assert capsys.readouterr() == ("", "")


def wait_for(said):
    end = time.monotonic() + 60
    while not any("seed 1" in line for line in said):
        assert time.monotonic() < end, said
        time.sleep(0.01)


def test_joblib_gives_the_numbers_of_this_process_and_writes_where_it_was_called(tmp_path, monkeypatch):
    """Workers outlive a grid, and a relative path would mean the folder in which the first one was called."""
    for folder, configs in (("first", GRID[:2]), ("second", GRID[1:])):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        run_grid(configs, engine="joblib", out="results", n_workers=2)
        assert sorted(path.stem for path in (tmp_path / folder / "results").iterdir()) == sorted(
            config.key for config in configs
        )
    # Workers measure on all texts, so what the training gave is compared.
    found, here = (run_grid(GRID[:1], out=tmp_path / "first" / "results")[0].metrics, train(GRID[0]).metrics)
    assert [found[name] for name in ("curve", "scheme")] == [here[name] for name in ("curve", "scheme")]


def test_a_failure_does_not_keep_the_others_from_being_done(tmp_path, trained, capsys):
    told = []
    # In a library, which is called by code of one's own.
    trained.second = lambda config, **_: torch.zeros(2).view(3)
    line = trained.second.__code__.co_firstlineno
    options = {"engine": "serial", "out": tmp_path, "train": trained}
    options["progress"] = lambda config, result: told.append(result is None)
    assert refused(RunError, run_grid, GRID, **options) == (
        "1 of 3 runs failed, the others are stored; learned, seed 2, learning rate 0.01, "
        f"{GRID[1].key} (RuntimeError: shape '[3]' is invalid for input of size 2, in test_grid.py, line {line})"
    )
    assert capsys.readouterr().err == ""
    assert told == [False, True, False] and missing(GRID, tmp_path) == [GRID[1]]
    # Of ours the message is enough.
    trained.second = lambda config, **_: (_ for _ in ()).throw(RunError("it diverged"))
    assert refused(RunError, run_grid, GRID, **options).endswith(f"{GRID[1].key} (it diverged)")


def test_a_worker_that_ends_while_the_grid_is_stopped_says_so(tmp_path, own_handlers, monkeypatch):
    """In this process: what a worker does with SIGTERM, before its run has a state and after its run."""
    monkeypatch.setattr(grid, "_end_with", lambda parent: None)
    ended = lambda config, **_: os.kill(os.getpid(), signal.SIGTERM)
    outcome = grid._in_worker(GRID[0], grid.Settings(tmp_path, train=ended), os.getppid(), [])
    assert outcome == (GRID[0], "it was interrupted")
    # Between two runs it is not heard.
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture
def own_handlers():
    """The signals of this process are as before when a test has called what belongs into a worker's."""
    before = {number: signal.getsignal(number) for number in ASKING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_folder_that_cannot_be_written_is_known_before_the_training(tmp_path, trained, monkeypatch):
    def denied(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(grid, "TemporaryFile", denied)
    message = refused(RunError, run_and_store, GRID[0], tmp_path, train=trained)
    assert message == f"cannot write to the folder {str(tmp_path)!r} (Permission denied); make room, or change it"
    assert trained.seeds == []


def test_a_reason_that_several_runs_share_is_said_once(tmp_path):
    configs = [RunConfig(scheme="alibi", test_length=10**6, seed=seed, **TINY) for seed in (1, 2)]
    message = refused(RunError, run_grid, configs, engine="serial", out=tmp_path)
    assert message.startswith("2 of 2 runs failed; alibi, seed 1,")
    assert message.count("make the pieces shorter") == 1


def test_a_full_disk_loses_no_other_run_and_is_told(tmp_path, full_disk):
    run_grid(GRID[:1], engine="serial", out=tmp_path)
    full_disk()
    said = r"2 of 3 runs failed, the others are stored; .*cannot write to the folder .*No space left on device.*; make"
    with pytest.warns(RuntimeWarning, match="cannot be written"), pytest.raises(RunError, match=said):
        run_grid(GRID, engine="serial", out=tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [f"{GRID[0].key}.json"]


def test_a_run_under_way_goes_on_from_its_checkpoint_and_leaves_none(tmp_path, trained):
    def interrupted(config, *, progress, **more):
        def after_step(step, _):
            if step == 3:
                raise KeyboardInterrupt

        return train(config, progress=after_step, **more)

    trained.second = interrupted
    with pytest.raises(KeyboardInterrupt):
        run_grid(GRID[:2], engine="serial", out=tmp_path, train=trained)
    assert file_of(GRID[1], tmp_path, "checkpoint").exists() and len(read_results(tmp_path)) == 1
    begun, whole = [], train(GRID[1]).metrics
    result = run_and_store(GRID[1], tmp_path, progress=lambda step, _: begun.append(step))
    assert begun == [4] and result.metrics == whole
    assert {each.suffix for each in tmp_path.iterdir()} == {".json"}


@pytest.mark.bad_input
def test_a_damaged_checkpoint_costs_its_own_run_and_stays(tmp_path):
    path = file_of(GRID[1], tmp_path, "checkpoint")
    path.write_text("damaged")
    message = refused(RunError, run_grid, GRID[:2], engine="serial", out=tmp_path)
    assert message.startswith("1 of 2 runs failed") and f"{path.name} is damaged, or of another run" in message
    assert "is damaged" in refused(CheckpointError, run_and_store, GRID[1], tmp_path)
    assert path.read_text() == "damaged" and len(read_results(tmp_path)) == 1


def test_weights_are_kept_and_come_back(tmp_path):
    config = RunConfig(scheme="learned", **TINY)
    run_grid([config], engine="serial", out=tmp_path, save_models=True, save_tables=True)
    model, trained_model = read_model(config, tmp_path), train(config).model
    pairs = zip(model.state_dict().items(), trained_model.state_dict().items(), strict=True)
    assert all(one == other and torch.equal(x, y) for (one, x), (other, y) in pairs)
    table = model.transformer.position_scheme.weight
    assert table is model.transformer.layers[0].attention.position_scheme.weight  # one for all layers, as it was
    assert torch.equal(read_tables(tmp_path)[config.key], table.detach().half().float())


@pytest.mark.bad_input
def test_a_result_without_the_weights_that_are_asked_for_is_refused_before_anything_is_run(tmp_path, trained):
    run_grid(GRID[:1], engine="serial", out=tmp_path, train=trained)
    said = refused(RunError, run_grid, GRID, engine="serial", out=tmp_path, save_models=True, train=trained)
    assert said.startswith(f"{GRID[0].key}.json has no whole weights beside it; move it away")
    assert refused(RunError, run_and_store, GRID[0], tmp_path, save_model=True) == said
    assert trained.seeds == [1]


# What the engine does with Ray's answers; the real one is in test_interruptions.py.


class RayError(Exception):
    """As Ray's."""


class FakeRay:
    """Runs tasks when they are waited for, in this process; those of some seeds are lost."""

    exceptions = SimpleNamespace(RayError=RayError)

    def __init__(self, lost=(), elsewhere=None):
        self.lost, self.elsewhere, self.asked, self.up = lost, elsewhere, [], False

    def is_initialized(self):
        return False

    def init(self, **options):
        self.up, self.options = True, options

    def shutdown(self):
        self.up = False

    def remote(self, **resources):
        self.asked.append(resources)
        # A task is what can be looked up, as Ray's are.
        return lambda function: SimpleNamespace(remote=lambda config, settings: partial(function, config, settings))

    def wait(self, tasks, num_returns=1):
        return tasks[-num_returns:], tasks[:-num_returns]

    def get(self, task):
        config, settings = task.args
        if config.seed in self.lost:
            raise RayError("the node died")
        return task.func(config, settings if self.elsewhere is None else grid.Settings(self.elsewhere))


@pytest.mark.parametrize("elsewhere", [False, True], ids=["the grid's folder", "the folder of another machine"])
def test_ray_runs_a_grid_wherever_its_machines_are(tmp_path, monkeypatch, elsewhere):
    fake = FakeRay(elsewhere=tmp_path / "there" if elsewhere else None)
    monkeypatch.setitem(sys.modules, "ray", fake)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    results = run_grid(GRID[:2], engine="ray", out=tmp_path / "here", n_workers=3, gpus=0.5)
    assert [result.config for result in results] == GRID[:2] and not fake.up
    assert fake.asked == [{"num_cpus": 1, "num_gpus": 0}] * 2 and fake.options["num_cpus"] == 3
    # Ray would else join a cluster that was started on this machine, and refuse to be told its cores.
    assert fake.options["address"] == "local"


def test_ray_joins_the_cluster_that_is_named_and_keeps_one_that_is_up(tmp_path, monkeypatch):
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    run_grid(GRID[:2], engine="ray", out=tmp_path / "named")
    assert not {"address", "num_cpus", "object_store_memory"} & set(fake.options) and not fake.up
    monkeypatch.delenv("RAY_ADDRESS")
    fake.up, fake.options = True, None
    monkeypatch.setattr(fake, "is_initialized", lambda: True)
    run_grid(GRID[:2], engine="ray", out=tmp_path / "up")
    assert fake.options is None and fake.up


def no_node(**_):
    raise Exception("the node timed out\nduring startup")


def test_ray_that_a_busy_machine_does_not_start_is_started_again(tmp_path, monkeypatch):
    fake, answers = FakeRay(), [no_node, no_node]
    start = fake.init
    monkeypatch.setattr(fake, "init", lambda **options: (answers.pop() if answers else start)(**options))
    monkeypatch.setitem(sys.modules, "ray", fake)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert len(run_grid(GRID[:2], engine="ray", out=tmp_path)) == 2 and not answers


@pytest.mark.parametrize(
    ("ray", "message"),
    [
        (FakeRay(lost=[1]), "1 of 2 runs failed, the others are stored; "),
        (
            SimpleNamespace(is_initialized=lambda: False, init=no_node),
            "Ray cannot be started, or no cluster answers at RAY_ADDRESS (the node timed out during startup)",
        ),
    ],
    ids=["lost", "not started"],
)
def test_what_ray_loses_is_told_and_a_cluster_that_does_not_start(tmp_path, monkeypatch, ray, message):
    monkeypatch.setitem(sys.modules, "ray", ray)
    said = refused(RunError, run_grid, GRID[:2], engine="ray", out=tmp_path)
    assert said.startswith(message)
    assert said == message or said.endswith(" (Ray lost it (RayError))")
