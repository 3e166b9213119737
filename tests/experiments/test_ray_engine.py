"""What the engine does with Ray's answers, with a stand-in for Ray; `test_grid_kills.py` has the real one."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from posembed import RunConfig, run_grid
from posembed.errors import RunError
from posembed.experiments import read_results
from posembed.experiments.files.store import file_of
from posembed.experiments.grids.claims import claim_path
from posembed.experiments.grids.ray_engine import on_a_worker
from posembed.experiments.grids.runs import Keeping, Outcome, train

TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "length": 16, "batch_size": 2, "steps": 2}
GRID = [RunConfig(seed=seed, **TINY) for seed in (1, 2, 3)]


class RayError(Exception):
    """As Ray's."""


class FakeRay:
    """Runs tasks when they are waited for, in this process."""

    exceptions = SimpleNamespace(RayError=RayError)

    def __init__(self, lost=(), elsewhere=None, starts=0):
        self.lost, self.elsewhere, self.fails = lost, elsewhere, starts
        self.asked, self.pending, self.most, self.up = [], 0, 0, False

    def is_initialized(self):
        return False

    def init(self, **options):
        self.options = options
        if self.fails:
            self.fails -= 1
            raise Exception("the node timed out\nduring startup")
        self.up = True

    def shutdown(self):
        self.up = False

    def remote(self, **resources):
        self.asked.append(resources)

        return lambda function: SimpleNamespace(remote=lambda *arguments: self.submit(function, arguments))

    def submit(self, function, arguments):
        self.pending += 1
        self.most = max(self.most, self.pending)
        return lambda: function(arguments[0], self.elsewhere or arguments[1], *arguments[2:])

    def wait(self, tasks, num_returns):
        return tasks[-num_returns:], tasks[:-num_returns]

    def get(self, task):
        self.pending -= 1
        outcome = task()
        if outcome[0].config.seed in self.lost:
            raise RayError("the node died")
        return outcome


@pytest.fixture
def fake(monkeypatch):
    """A function that puts a stand-in in the place of Ray."""

    def fake(**options):
        made = FakeRay(**options)
        monkeypatch.setattr("posembed.experiments.grids.ray_engine._library", lambda: made)
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
        return made

    return fake


def test_the_results_are_those_of_any_engine(tmp_path, fake):
    ray = fake()
    results = run_grid([*GRID, GRID[0]], engine="ray", out=tmp_path / "ray", retries=5)
    serial = run_grid(GRID, engine="serial", out=tmp_path / "serial")
    assert [each.metrics for each in results[:3]] == [each.metrics for each in serial]
    assert ray.asked == [{"num_cpus": 1, "num_gpus": 0, "max_retries": 5}] * 3
    assert len(list((tmp_path / "ray").iterdir())) == 3 and not ray.up
    assert run_grid(GRID, engine="ray", out=tmp_path / "ray") == results[:3] and len(ray.asked) == 3


def test_no_more_at_a_time_than_asked_for(tmp_path, fake):
    ray = fake()
    run_grid(GRID, engine="ray", out=tmp_path / "two", n_workers=2)
    assert ray.most == 2
    run_grid(GRID, engine="ray", out=tmp_path / "all")
    assert ray.most == 3


def test_a_machine_without_the_folder_sends_its_files(tmp_path, fake):
    fake(elsewhere=tmp_path / "not here")
    results = run_grid(GRID, engine="ray", out=tmp_path / "results", save_models=True)
    assert [each.config.seed for each in results] == [1, 2, 3]
    assert all(file_of(config, tmp_path / "results", "safetensors").exists() for config in GRID)
    assert not (tmp_path / "not here").exists()


def test_a_folder_of_another_grid_is_not_taken_for_its_own(tmp_path):
    """The same path on another machine may be another folder, in which another grid has the run."""
    claim_path(GRID[0], tmp_path).write_text("another grid")
    outcome, files = on_a_worker(GRID[0], tmp_path, b"this grid", Keeping())
    assert outcome.state == "done" and list(files) == [f"{GRID[0].key}.json"]
    assert [each.name for each in tmp_path.iterdir()] == [claim_path(GRID[0], tmp_path).name]


def test_a_task_that_begins_again_after_it_was_done_does_nothing(tmp_path, monkeypatch):
    """As when a machine is lost between the result and its message."""
    claim_path(GRID[0], tmp_path).write_text("this grid")
    assert on_a_worker(GRID[0], tmp_path, b"this grid", Keeping())[0].state == "done"
    monkeypatch.setattr("posembed.experiments.grids.runs.train", lambda *_, **__: pytest.fail("it was run twice"))
    assert on_a_worker(GRID[0], tmp_path, b"this grid", Keeping())[0].state == "done"


def test_a_run_that_ray_gives_up_does_not_keep_the_others_from_being_done(tmp_path, fake):
    fake(lost=(2,), elsewhere=tmp_path / "not here")
    with pytest.raises(RunError, match=r"1 of 3 runs failed.*nopos, seed 2.*Ray lost it 3 times .RayError."):
        run_grid(GRID, engine="ray", out=tmp_path)
    assert {each.config.seed for each in read_results(tmp_path)} == {1, 3}


def test_files_that_find_no_room(tmp_path, fake, monkeypatch):
    """On this machine; the task had room on its own."""
    fake(elsewhere=tmp_path / "not here")

    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("posembed.experiments.grids.ray_engine.write_whole", full)
    with pytest.raises(RunError, match=r"3 of 3 runs failed.*cannot be written .No space left on device."):
        run_grid(GRID, engine="ray", out=tmp_path / "results")
    assert read_results(tmp_path / "results") == []


def test_a_share_of_a_gpu_is_asked_for_where_the_device_is_one(tmp_path, fake, monkeypatch):
    ray = fake()
    made = lambda config, **_: replace(train(GRID[0]), config=config)
    monkeypatch.setattr("posembed.experiments.grids.runs.train", made)
    run_grid([RunConfig(device="cuda", threads=2, **TINY)], engine="ray", out=tmp_path, gpus=0.25)
    assert ray.asked == [{"num_cpus": 2, "num_gpus": 0.25, "max_retries": 2}]


def test_a_result_that_never_appears_is_a_failure(tmp_path, fake, monkeypatch):
    """A task says that it is done, and on this machine there is nothing."""
    monkeypatch.setattr("posembed.experiments.grids.grid.time.sleep", lambda _: None)
    ray = fake()
    monkeypatch.setattr(
        "posembed.experiments.grids.ray_engine.on_a_worker", lambda config, *_: (Outcome(config, "done"), {})
    )
    with pytest.raises(RunError, match="it was done, but its result is not in the folder"):
        run_grid(GRID[:1], engine="ray", out=tmp_path)
    assert len(ray.asked) == 3


def test_a_start_that_a_busy_machine_makes_too_slow_is_tried_again(tmp_path, fake):
    fake(starts=2)
    assert len(run_grid(GRID, engine="ray", out=tmp_path)) == 3
    fake(starts=9)
    with pytest.raises(RunError) as caught:
        run_grid([RunConfig(seed=9, **TINY)], engine="ray", out=tmp_path)
    assert str(caught.value) == "Ray cannot be started on this machine (the node timed out during startup)"


def test_a_cluster_that_does_not_answer(tmp_path, fake, monkeypatch):
    ray = fake()
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    ray.init = lambda **options: (_ for _ in ()).throw(ConnectionError("no answer"))
    with pytest.raises(RunError) as caught:
        run_grid(GRID, engine="ray", out=tmp_path)
    assert str(caught.value) == "no Ray cluster answers at RAY_ADDRESS '10.0.0.1:6379' (no answer)"
