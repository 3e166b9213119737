"""Grids that are stopped half-way, in processes of their own: what is done stays, what was under way goes on."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from training.interrupted_grid import SIZES, configs

from posembed import train
from posembed.training import read_results

SCRIPT = Path(__file__).with_name("interrupted_grid.py")
pytestmark = pytest.mark.slow


def quiet(folder, environment):
    """Without this Ray would write to the home folder, or join the cluster that RAY_ADDRESS names."""
    told = {"HOME": str(folder), "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    return {name: value for name, value in environment.items() if name != "RAY_ADDRESS"} | told


def start(engine, folder, environment):
    environment = quiet(folder, environment)
    words = [sys.executable, SCRIPT, engine, folder / "results"]
    # A file and no pipe: what Ray has started may hold a pipe open. In a group, as at a terminal.
    with (folder / "said").open("w") as said:
        return subprocess.Popen(words, env=environment, stderr=said, start_new_session=True)


def wait_for(process, path, pattern):
    end = time.monotonic() + 900.0
    while not list(path.glob(pattern)):
        assert process.poll() is None and time.monotonic() < end, f"no {pattern}, {process.poll()}"
        time.sleep(0.05)


def alive(group):
    return [
        line
        for line in subprocess.run(
            ["ps", "-eo", "pgid=,pid=,stat="], capture_output=True, text=True
        ).stdout.splitlines()
        if line.split()[0] == str(group) and "Z" not in line.split()[2]
    ]


@pytest.mark.parametrize(
    ("engine", "number", "everybody"),
    [
        ("serial", signal.SIGINT, False),
        ("joblib", signal.SIGINT, True),
        ("joblib", signal.SIGTERM, False),
        ("joblib", signal.SIGKILL, False),
        ("ray", signal.SIGINT, False),
    ],
    ids=[
        "serial, Ctrl-C",
        "joblib, Ctrl-C",
        "joblib, terminated",
        "joblib, the grid's process is killed",
        "ray, Ctrl-C",
    ],
)
def test_a_grid_that_is_stopped_loses_nothing_and_goes_on(tmp_path, fresh_environment, engine, number, everybody):
    if engine == "ray":
        pytest.importorskip("ray")
    grid, folder = start(engine, tmp_path, fresh_environment), tmp_path / "results"
    wait_for(grid, folder, "*.json")
    # The next ones are under way.
    time.sleep(1.0)
    (os.killpg if everybody else os.kill)(grid.pid, number)
    grid.wait(timeout=900)
    said = (tmp_path / "said").read_text()
    assert ("\nposembed: stopping, " in f"\n{said}") == (engine == "joblib" and number != signal.SIGKILL)
    # What an interpreter that Ctrl-C has ended returns depends on its libraries.
    if number == signal.SIGINT:
        # Inside a run of this process, a note says where it can go on.
        assert re.search(r"\nKeyboardInterrupt(\nstopped after step \d+ of 1500, [^\n]+)?\n$", said), said
    else:
        assert grid.returncode in (-number, 143)
    # Workers end with their grid.
    end = time.monotonic() + 300
    while engine == "joblib" and alive(grid.pid):
        assert time.monotonic() < end, alive(grid.pid)
        time.sleep(0.2)
    done = {path.stem: path.stat().st_mtime_ns for path in folder.glob("*.json")}
    under_way = {path.stem for path in folder.glob("*.checkpoint")}
    # A run that has not taken its first step yet has nothing to lose.
    assert done
    assert start(engine, tmp_path, fresh_environment).wait(timeout=900) == 0
    assert {path.name for path in folder.iterdir()} == {f"{config.key}.json" for config in configs()}
    assert all((folder / f"{key}.json").stat().st_mtime_ns == at for key, at in done.items())
    # The run that went on has the numbers of one that was never stopped; this process measures on fewer texts.
    for result in read_results(folder):
        if result.config.key in under_way:
            assert result.metrics["curve"] == train(result.config).metrics["curve"]
            assert len(result.metrics["curve"]) == 40 and result.metrics["tokens"] == SIZES["steps"] * 2 * 16
            break


def test_a_worker_that_is_killed_ends_the_grid_which_goes_on_when_it_is_called_again(tmp_path, fresh_environment):
    grid, folder = start("joblib", tmp_path, fresh_environment), tmp_path / "results"
    wait_for(grid, folder, "*.json")
    told = subprocess.run(["ps", "-ww", "-eo", "ppid=,pid=,args="], capture_output=True, text=True).stdout.splitlines()
    workers = [line.split()[1] for line in told if line.split()[0] == str(grid.pid) and "LokyProcess" in line]
    os.kill(int(workers[0]), signal.SIGKILL)
    assert grid.wait(timeout=900) == 1
    assert "RunError: a worker process was killed, for too much memory perhaps" in (tmp_path / "said").read_text()
    assert start("joblib", tmp_path, fresh_environment).wait(timeout=900) == 0
    assert {path.name for path in folder.iterdir()} == {f"{config.key}.json" for config in configs()}


@pytest.fixture
def cluster(tmp_path, fresh_environment):
    """The environment of a machine on which `ray start` has begun a cluster of one core."""
    pytest.importorskip("ray")
    # In a folder of its own, where no other Ray looks; sockets have short names.
    with TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as place:
        environment = quiet(tmp_path, fresh_environment) | {"RAY_TMPDIR": place}
        alone = ["--include-dashboard=false", "--num-cpus=1", f"--object-store-memory={100 * 2**20}"]
        words = [Path(sys.executable).with_name("ray"), "start", "--head", "--block", "--port=0", *alone]
        head = start_cluster(words, environment, Path(place), tmp_path / "cluster")
        try:
            yield environment, head
        finally:
            os.killpg(head.pid, signal.SIGKILL)
            head.wait()


def start_cluster(words, environment, place, said, starts=3):
    """A cluster that is up: where the machine is too busy Ray gives up, and is started again, as by the package."""
    with said.open("w") as out:
        head = subprocess.Popen(words, env=environment, stdout=out, stderr=out, start_new_session=True)
    try:
        wait_for(head, place, "ray/ray_current_cluster")
    except AssertionError:
        with suppress(ProcessLookupError):
            os.killpg(head.pid, signal.SIGKILL)
        head.wait()
        if starts == 1:
            raise
        return start_cluster(words, environment, place, said, starts - 1)
    return head


def started_in(place):
    """The processes of Ray in a folder, each as its group and its command."""
    told = subprocess.run(["ps", "-ww", "-eo", "pgid=,args="], capture_output=True, text=True).stdout
    return [line for line in told.splitlines() if f"{place}/" in line]


def test_without_an_address_ray_is_started_beside_a_cluster_of_this_machine(tmp_path, cluster):
    environment, head = cluster
    assert start("ray", tmp_path, environment).wait(timeout=900) == 0, (tmp_path / "said").read_text()
    assert len(read_results(tmp_path / "results")) == len(configs())
    # What it has started ends with it, and the cluster is still there.
    end = time.monotonic() + 300
    while others := [line for line in started_in(environment["RAY_TMPDIR"]) if line.split()[0] != str(head.pid)]:
        assert time.monotonic() < end, others
        time.sleep(0.2)
    assert head.poll() is None and started_in(environment["RAY_TMPDIR"])
