"""Grids whose processes are killed half-way: nothing is lost, and nothing is run twice.

The grids run in `watched.py`, whose runs write down where they begin and end.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from experiments.watched import KEPT_EVERY, KILLED_AT, SEEDS, STEPS, VICTIM, configs, events

from posembed import train
from posembed.experiments.files.store import file_of

SCRIPT = Path(__file__).with_name("watched.py")
# The step after the last one that was written down before the death.
TAKEN_UP = KILLED_AT - KILLED_AT % KEPT_EVERY + 1


@pytest.fixture(scope="module")
def expected():
    """What runs give that nobody kills."""
    return [json.loads(json.dumps(train(config).metrics)) for config in configs()]


@pytest.fixture
def grid(tmp_path, fresh_environment):
    """A function that runs the watched grid with an engine and returns what it printed; None if it was killed."""
    # Ray would otherwise write to the home folder, or join a cluster.
    quiet = {"HOME": str(tmp_path), "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    environment = {name: value for name, value in fresh_environment.items() if name != "RAY_ADDRESS"} | quiet

    def grid(engine, deaths):
        words = [sys.executable, SCRIPT, engine, tmp_path, str(deaths)]
        ran = subprocess.run(words, capture_output=True, text=True, env=environment)
        if ran.returncode == -signal.SIGKILL:
            return None
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout.splitlines()[-1])

    return grid


def of(word, folder):
    return [(seed, number) for event, seed, number in events(folder) if event == word]


def each_ended_once(folder):
    assert sorted(seed for seed, _ in of("ends", folder)) == list(SEEDS)


def the_victim_was_taken_up(folder):
    assert [step for seed, step in of("begins", folder) if seed == VICTIM] == [1, TAKEN_UP]


def only_results_are_left(folder):
    assert {each.name for each in (folder / "results").iterdir()} == {f"{each.key}.json" for each in configs()}


@pytest.mark.slow
def test_a_grid_that_is_killed_goes_on(tmp_path, grid, expected):
    """The whole grid is one process here; the second one finds what the first one left."""
    assert grid("serial", 1) is None
    assert grid("serial", 1) == {"losses": expected}
    each_ended_once(tmp_path)
    the_victim_was_taken_up(tmp_path)
    only_results_are_left(tmp_path)


@pytest.mark.slow
def test_joblib_with_one_process_killed(tmp_path, grid, expected):
    """The other process is ended by joblib, so its run may begin again too, but no run that has ended does."""
    assert grid("joblib", 1) == {"losses": expected}
    each_ended_once(tmp_path)
    the_victim_was_taken_up(tmp_path)
    only_results_are_left(tmp_path)
    begun = [seed for seed, _ in of("begins", tmp_path)]
    assert len(begun) <= len(SEEDS) + 2 and max(map(begun.count, SEEDS)) <= 2


@pytest.mark.slow
def test_joblib_with_a_run_that_is_killed_every_time(tmp_path, grid, expected):
    """It is given up after its retries; the others have their results, and a grid without the trouble does the rest."""
    message = grid("joblib", 99)["error"]
    victim = configs()[SEEDS.index(VICTIM)]
    assert message.startswith("1 of 5 runs failed, the others are stored: learned, seed 1,")
    assert f"{victim.key} (its process was killed 3 times; too little memory?)" in message
    assert sorted(seed for seed, _ in of("ends", tmp_path)) == [seed for seed in SEEDS if seed != VICTIM]
    assert len(of("dies", tmp_path)) == 3
    assert file_of(victim, tmp_path / "results", "checkpoint").exists()
    assert grid("joblib", 0) == {"losses": expected}
    each_ended_once(tmp_path)
    only_results_are_left(tmp_path)


@pytest.mark.slow
def test_ray_with_one_process_killed(tmp_path, grid, expected):
    pytest.importorskip("ray")
    assert grid("ray", 1) == {"losses": expected}
    each_ended_once(tmp_path)
    the_victim_was_taken_up(tmp_path)
    only_results_are_left(tmp_path)
    assert len(of("begins", tmp_path)) == len(SEEDS) + 1  # Ray ends no other run


@pytest.mark.slow
def test_a_ray_cluster_with_one_of_its_machines_lost(tmp_path, grid, expected):
    pytest.importorskip("ray.cluster_utils")
    assert grid("cluster", 1) == {"losses": expected}
    each_ended_once(tmp_path)
    the_victim_was_taken_up(tmp_path)
    only_results_are_left(tmp_path)
    assert len(of("begins", tmp_path)) == len(SEEDS) + 1
    assert KILLED_AT < STEPS and len(of("dies", tmp_path)) == 1
