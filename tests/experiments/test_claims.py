"""Locks of runs: one process has each, and a process that is killed has none."""

import errno
import fcntl
import signal
import subprocess
import sys
import threading

import pytest

from posembed import RunConfig
from posembed.errors import RunError
from posembed.experiments.grids.claims import claim, claim_path, left_behind

CONFIG = RunConfig()


def test_one_has_it_and_then_the_other(tmp_path):
    with claim(CONFIG, tmp_path) as first:
        with claim(CONFIG, tmp_path) as second, claim(RunConfig(seed=1), tmp_path) as another_run:
            assert (first, second, another_run) == (True, False, True)
        with claim(CONFIG, tmp_path) as still_not:
            assert not still_not
    with claim(CONFIG, tmp_path) as now:
        assert now
    assert list(tmp_path.iterdir()) == []


def test_an_error_inside_gives_it_back(tmp_path):
    with pytest.raises(KeyboardInterrupt), claim(CONFIG, tmp_path):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_many_at_once_and_one_at_a_time_has_it(tmp_path):
    inside, most, turns = [], [], []

    def take_turns():
        taken = 0
        while taken < 20:
            with claim(CONFIG, tmp_path) as mine:
                if mine:
                    inside.append(1)
                    most.append(len(inside))
                    taken += 1
                    inside.pop()
        turns.append(taken)

    threads = [threading.Thread(target=take_turns) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert turns == [20] * 4 and set(most) == {1}
    assert list(tmp_path.iterdir()) == []


def test_who_is_killed_loses_it_at_once(tmp_path, fresh_environment):
    program = (
        "import sys, time\n"
        "from posembed import RunConfig\n"
        "from posembed.experiments.grids.claims import claim\n"
        f"with claim(RunConfig(), {str(tmp_path)!r}) as mine:\n"
        "    print(mine, flush=True)\n"
        "    time.sleep(600)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=fresh_environment)
    try:
        assert other.stdout.readline() == "True\n"
        with claim(CONFIG, tmp_path) as mine:
            assert not mine
        assert str(other.pid) in claim_path(CONFIG, tmp_path).read_text()  # for people
        assert not left_behind(CONFIG, tmp_path)
    finally:
        other.send_signal(signal.SIGKILL)
        other.wait()
        other.stdout.close()
    assert left_behind(CONFIG, tmp_path)
    with claim(CONFIG, tmp_path) as mine:
        assert mine
    assert not left_behind(CONFIG, tmp_path)


def test_what_a_killed_process_had_half_written_is_removed(tmp_path):
    for name in (f".{CONFIG.key}-abc.tmp", f".{RunConfig(seed=1).key}-abc.tmp", f"{CONFIG.key}.json"):
        (tmp_path / name).write_text("half a resu")
    with claim(CONFIG, tmp_path):
        pass
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(
        [f".{RunConfig(seed=1).key}-abc.tmp", f"{CONFIG.key}.json"]
    )


def no_locks(code):
    def flock(*_):
        raise OSError(code, "no locks here")

    return flock


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_where_there_are_no_locks_a_run_goes_on_with_a_warning(tmp_path, monkeypatch, code):
    monkeypatch.setattr(fcntl, "flock", no_locks(code))
    with pytest.warns(RuntimeWarning, match="knows no locks; another grid in it may"), claim(CONFIG, tmp_path) as mine:
        assert mine
    assert list(tmp_path.iterdir()) == []


def test_where_the_system_has_no_such_locks_a_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("posembed.experiments.grids.claims.HAVE_LOCKS", False)
    with claim(CONFIG, tmp_path) as first, claim(CONFIG, tmp_path) as second:
        assert first and second
    assert not left_behind(CONFIG, tmp_path)


@pytest.mark.bad_input
def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "results").write_text("a file in its place")
    wanted = r"cannot write to the folder results \("
    with pytest.raises(RunError, match=wanted) as caught, claim(CONFIG, tmp_path / "results"):
        pass
    assert "\n" not in str(caught.value)
