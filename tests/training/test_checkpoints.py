"""Runs that are stopped and go on: the same numbers, and no checkpoint that is not the run's own."""

import os
import signal
from dataclasses import replace

import pytest
import torch
from refusals import refused

from posembed import RunConfig, train
from posembed.errors import CheckpointError
from posembed.training import checkpoints
from posembed.training.checkpoints import ASKING

TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "length": 16, "batch_size": 4, "steps": 12, "warmup": 2}
CONFIG = RunConfig(scheme="learned", **TINY)


def stop_at(config, path, step, end=lambda: os.kill(os.getpid(), signal.SIGINT)):
    """Train until a signal comes after a step; the next one is still taken."""
    with pytest.raises((KeyboardInterrupt, SystemExit)) as caught:
        train(config, checkpoint=path, progress=lambda done, _: done == step and end())
    return caught.value


@pytest.mark.parametrize(
    "more",
    [
        {"scheme": "learned", "dropout": 0.2},
        {"scheme": "t5", "objective": "masked", "masking_rate": 0.3},
    ],
    ids=["causal", "masked"],
)
def test_a_run_that_is_interrupted_goes_on_with_the_same_numbers(tmp_path, more):
    config, path, begun = RunConfig(**{**TINY, **more}), tmp_path / "run.checkpoint", []
    stop_at(config, path, 7)
    taken_up = train(config, checkpoint=path, progress=lambda step, _: begun.append(step))
    assert begun[0] == 9
    whole = train(config)
    assert taken_up.metrics == whole.metrics
    pairs = zip(taken_up.model.state_dict().values(), whole.model.state_dict().values(), strict=True)
    assert all(torch.equal(*pair) for pair in pairs)


def test_what_ignores_ctrl_c_goes_on():
    """As the workers of a grid, which tells them itself."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        train(CONFIG, progress=lambda *_: os.kill(os.getpid(), signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)


def test_every_way_to_end_a_run_is_obeyed_and_loses_nothing(tmp_path):
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    ends = {
        "terminate": (lambda: os.kill(os.getpid(), signal.SIGTERM), SystemExit, 5),
        "interrupt": (lambda: os.kill(os.getpid(), signal.SIGINT), KeyboardInterrupt, 5),
        # A bar that is closed, say: it is between two steps.
        "from inside": (lambda: signal.default_int_handler(signal.SIGINT, None), KeyboardInterrupt, 4),
    }
    for name, (end, kind, done) in ends.items():
        begun, path = [], tmp_path / name
        error = stop_at(CONFIG, path, 4, end)
        assert type(error) is kind and getattr(error, "code", 143) == 143
        train(CONFIG, checkpoint=path, progress=lambda step, _, begun=begun: begun.append(step))
        assert begun[0] == done + 1
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers


@pytest.mark.parametrize("number", ASKING)
def test_a_run_without_a_file_keeps_its_state_where_it_is_stopped(tmp_path, monkeypatch, number):
    monkeypatch.chdir(tmp_path)
    whole, begun, place = train(CONFIG), [], tmp_path / f"{CONFIG.key}.checkpoint"
    assert list(tmp_path.iterdir()) == []
    error = stop_at(CONFIG, None, 7, lambda: os.kill(os.getpid(), number))
    (said,) = error.__notes__
    assert said.startswith(f"stopped after step 8 of 12, which are kept in {place.name}; the same call in the same")
    assert list(tmp_path.iterdir()) == [place]
    taken_up = train(CONFIG, progress=lambda step, _: begun.append(step))
    assert begun[0] == 9 and taken_up.metrics == whole.metrics
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", [None, "run.checkpoint"])
def test_a_run_that_is_stopped_while_it_is_measured_is_measured_alone_later(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)

    def stop(*_):
        os.kill(os.getpid(), signal.SIGTERM)
        pytest.fail("it was not obeyed")

    # Before a step is left, and after none is.
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr("posembed.training.measure.loss_of", stop)
            with pytest.raises(SystemExit) as caught:
                train(CONFIG, checkpoint=path)
        assert caught.value.code == 143 and caught.value.__notes__[0].startswith("stopped after step 12 of 12")
    later = train(CONFIG, checkpoint=path, progress=lambda *_: pytest.fail("a step was taken"))
    assert later.metrics == train(CONFIG).metrics


def test_a_second_ctrl_c_does_not_cut_the_writing_short(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(path, content):
        os.kill(os.getpid(), signal.SIGINT)
        path.write_bytes(content)

    monkeypatch.setattr(checkpoints, "write_whole", write)
    monkeypatch.setattr("posembed.training.measure.loss_of", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt) as caught:
        train(CONFIG)
    assert caught.value.__notes__ and (tmp_path / f"{CONFIG.key}.checkpoint").exists()


def test_it_is_written_after_so_many_seconds_and_after_the_last_step(tmp_path, monkeypatch):
    now, path, seen = [0.0], tmp_path / "run.checkpoint", []
    monkeypatch.setattr(checkpoints, "SECONDS", 4.0)
    monkeypatch.setattr("posembed.training.checkpoints.time.monotonic", lambda: now[0])

    def note(step, _):
        now[0] += 1.0
        seen.append(path.stat().st_mtime_ns if path.exists() else None)

    first = train(CONFIG, checkpoint=path, progress=note)
    # The clock shows 4 before the fifth step is looked at, and 8 before the ninth.
    assert seen[:4] == [None] * 4 and None not in seen[4:]
    assert [index for index in range(5, 12) if seen[index] != seen[index - 1]] == [8, 11]
    told = []
    again = train(CONFIG, checkpoint=path, progress=lambda *_: told.append(1))
    assert again.metrics == first.metrics and not told
    # The time of both parts is told.
    assert again.speed["training_seconds"] == first.speed["training_seconds"] and again.wall_seconds > 0


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("kept") / "run.checkpoint"
    stop_at(CONFIG, path, 2)
    return path.read_bytes()


def flipped(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        flipped,
        lambda content: b"",
        lambda content: b"\x80\x04 a pickle",
        lambda content: content.replace(b"checkpoint 3", b"checkpoint 4", 1),
    ],
    ids=["cut", "one bit", "empty", "another form", "newer"],
)
def test_a_checkpoint_that_cannot_be_used_is_an_error_and_stays(tmp_path, written, damage):
    path = tmp_path / "run.checkpoint"
    path.write_bytes(damage(written))
    before = path.read_bytes()
    message = f"run.checkpoint is damaged, or of another run than {CONFIG.key} or another version of posembed; move it"
    assert refused(CheckpointError, train, CONFIG, checkpoint=path).startswith(message)
    assert path.read_bytes() == before


@pytest.mark.bad_input
def test_a_checkpoint_of_another_run_is_an_error_and_stays(tmp_path, written):
    path = tmp_path / "run.checkpoint"
    path.write_bytes(written)
    other = replace(CONFIG, seed=5)
    assert f"or of another run than {other.key}" in refused(CheckpointError, train, other, checkpoint=path)
    assert path.read_bytes() == written


def test_a_full_disk_is_a_warning_and_the_run_goes_on(tmp_path, full_disk):
    full_disk()
    with pytest.warns(RuntimeWarning, match="run.checkpoint cannot be written .No space left on device.; the run goes"):
        result = train(CONFIG, checkpoint=tmp_path / "run.checkpoint")
    assert len(result.metrics["curve"]) == 12 and list(tmp_path.iterdir()) == []
