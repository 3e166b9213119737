"""Runs that are stopped and go on: the same numbers, and no checkpoint that is not the run's own."""

import signal
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from posembed import RunConfig, train
from posembed.errors import CheckpointError, RunError
from posembed.experiments.files.checkpoints import Checkpoint, read_state
from posembed.experiments.training.team import Team

TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "length": 16, "batch_size": 4, "steps": 12, "warmup": 2}
MASKED = {"objective": "masked", "masking_rate": 0.3}


class StoppedError(Exception):
    """Ends a run from inside."""


def stop_at(config, step, checkpoint):
    def note(done, _):
        if done == step:
            raise StoppedError

    with pytest.raises(StoppedError):
        train(config, progress=note, checkpoint=checkpoint)


@pytest.mark.parametrize(
    "more",
    [
        {"scheme": "learned", "dropout": 0.2},
        {"scheme": "t5", "accumulate": 2, **MASKED},
        {"optimizer": "nag", "learning_rate": 0.1, "short_length": 4, "short_share": 0.6, "guessed_share": 0.5},
        {"scheme": "learned", "steps": 6, "further_steps": 6, "drops_positions": True},
        {"scheme": "rope", "steps": 7, "further_steps": 5, "drops_positions": True},
    ],
    ids=["dropout", "masked", "nag", "stopped when positions are dropped", "stopped before"],
)
def test_a_run_that_is_taken_up_gives_the_same_numbers(tmp_path, more):
    config, path = RunConfig(**{**TINY, **more}), tmp_path / "run.checkpoint"
    stop_at(config, 8, Checkpoint(path, steps=3))
    begun = []
    taken_up = train(config, checkpoint=path, progress=lambda step, _: begun.append(step))
    assert begun[0] == 7  # after the sixth step, which was the last that was written down
    whole = train(config)
    assert taken_up.metrics == whole.metrics
    pairs = zip(taken_up.model.state_dict().values(), whole.model.state_dict().values(), strict=True)
    assert all(torch.equal(*pair) for pair in pairs)


def test_a_run_that_is_killed_gives_the_same_numbers(tmp_path, fresh_environment):
    """By SIGKILL, in a process of its own, at step 8."""
    config, path = RunConfig(scheme="learned", **TINY), tmp_path / "run.checkpoint"
    program = (
        "import os, signal, sys\n"
        "from posembed import RunConfig, train\n"
        "from posembed.experiments.files.checkpoints import Checkpoint\n"
        f"config = RunConfig.from_dict({config.to_dict()!r})\n"
        "die = lambda step, _: step == 8 and os.kill(os.getpid(), signal.SIGKILL)\n"
        f"train(config, checkpoint=Checkpoint({str(path)!r}, steps=5), progress=die)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], env=fresh_environment)
    assert ran.returncode == -signal.SIGKILL
    begun = []
    taken_up = train(config, checkpoint=path, progress=lambda step, _: begun.append(step))
    assert begun[0] == 6
    assert taken_up.metrics == train(config).metrics


def test_the_time_of_both_parts_is_told(tmp_path):
    config, path = RunConfig(**TINY), tmp_path / "run.checkpoint"
    stop_at(config, 8, Checkpoint(path, steps=8))
    before = read_state(path, config)["seconds"]
    taken_up = train(config, checkpoint=path)
    assert taken_up.speed["training_seconds"] >= round(before, 2)
    assert taken_up.wall_seconds > before


def test_it_is_written_after_so_many_seconds(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("posembed.experiments.files.checkpoints.time.monotonic", lambda: now[0])
    path, seen = tmp_path / "run.checkpoint", []

    def note(step, _):
        now[0] += 1.0
        seen.append(path.exists())

    train(RunConfig(**TINY), checkpoint=Checkpoint(path, seconds=4.0), progress=note)
    # The clock shows 4 before the fifth step is looked at.
    assert seen == [False] * 4 + [True] * 8


def test_a_finished_run_is_measured_again_and_not_trained(tmp_path):
    config, path = RunConfig(**TINY), tmp_path / "run.checkpoint"
    first = train(config, checkpoint=Checkpoint(path, steps=TINY["steps"]))
    told = []
    assert train(config, checkpoint=path, progress=lambda *_: told.append(1)).metrics == first.metrics
    assert not told


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    config, path = RunConfig(**TINY), tmp_path_factory.mktemp("kept") / "run.checkpoint"
    stop_at(config, 4, Checkpoint(path, steps=3))
    return config, path.read_bytes()


def flipped(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[: len(content) // 2], "run.checkpoint is damaged; move it away"),
        (flipped, "run.checkpoint is damaged; move it away"),
        (lambda content: b"", "run.checkpoint is damaged; move it away"),
        (lambda content: b"{}\nnothing", "run.checkpoint is damaged; move it away"),
        (lambda content: b"\x80\x04 a pickle", "run.checkpoint is damaged; move it away"),
        (lambda content: content.replace(b'"format": 1', b'"format": 2', 1), "has format 2, this version of posembed"),
    ],
    ids=["cut", "one bit", "empty", "another form", "no JSON", "newer"],
)
def test_a_checkpoint_that_cannot_be_read_is_an_error_and_stays(tmp_path, written, damage, message):
    config, content = written
    path = tmp_path / "run.checkpoint"
    path.write_bytes(damage(content))
    before = path.read_bytes()
    with pytest.raises(CheckpointError) as caught:
        train(config, checkpoint=Checkpoint(path, steps=1))
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.bad_input
def test_a_checkpoint_of_another_run_is_an_error_and_stays(tmp_path, written):
    config, content = written
    path = tmp_path / "run.checkpoint"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=f"is of the run {config.key}, not of"):
        train(replace(config, seed=5), checkpoint=Checkpoint(path, steps=1))
    with pytest.raises(CheckpointError, match="is of 1 processes and this run of 2; start as many"):
        Checkpoint(path).resume(FakeTraining(config))
    assert path.read_bytes() == content


class FakeTraining:
    """What a checkpoint asks first."""

    team = Team(0, 2)

    def __init__(self, config):
        self.config = config


@pytest.mark.bad_input
def test_a_checkpoint_that_does_not_fit_the_model(tmp_path, written, monkeypatch):
    """As when a later version of the package builds a model of other parts."""
    config, content = written
    path = tmp_path / "run.checkpoint"
    path.write_bytes(content)
    monkeypatch.setattr("posembed.experiments.training.text.load_corpus", other_corpus)
    with pytest.raises(CheckpointError, match=r"run.checkpoint does not fit this version's model \(") as caught:
        train(config, checkpoint=path)
    assert "\n" not in str(caught.value)


def other_corpus(*_, **__):
    from posembed.data import Characters, Corpus

    text = torch.randint(2, 20, (1000,))
    return Corpus("other", Characters("abcdefghijklmnopqr"), text, text, text)


def test_a_full_disk_is_a_warning_and_the_run_goes_on(tmp_path, monkeypatch):
    config, path = RunConfig(**TINY), tmp_path / "run.checkpoint"
    stop_at(config, 4, Checkpoint(path, steps=3))
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.warns(RuntimeWarning, match="run.checkpoint cannot be written .No space left on device.; the run goes"):
        result = train(config, checkpoint=Checkpoint(path, steps=3))
    monkeypatch.undo()
    assert result.metrics == train(config).metrics
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.bad_input
@pytest.mark.parametrize("wrong", [{"steps": 0}, {"seconds": -1.0}, {"seconds": float("nan")}, {"steps": True}])
def test_times_that_cannot_be_meant(wrong):
    with pytest.raises(RunError, match="it must be positive, or None for never"):
        Checkpoint(Path("run.checkpoint"), **wrong)


def test_without_a_checkpoint_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(RunConfig(**TINY), checkpoint=Checkpoint(tmp_path / "run.checkpoint", seconds=None))
    assert list(tmp_path.iterdir()) == []
