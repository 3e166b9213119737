"""A grid whose runs write down what they do, and some of which are killed half-way; a program of its own.

    python watched.py ENGINE FOLDER DEATHS

The run with seed 1 is killed by SIGKILL at step 12 as often as DEATHS says, on a cluster with the machine that it is
on. Each run is written down every five steps. The functions here stand in the main program, so they reach the processes
of joblib and of Ray by value.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

VICTIM, STEPS, KILLED_AT, KEPT_EVERY = 1, 20, 12, 5
SEEDS = (1, 2, 3, 4, 5)
TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "length": 16, "batch_size": 2, "steps": STEPS, "warmup": 2}


def configs():
    from posembed import RunConfig

    return [RunConfig(scheme="learned", seed=seed, **TINY) for seed in SEEDS]


def events(folder):
    """What the runs wrote down: word, seed, number."""
    log = Path(folder) / "events"
    lines = log.read_text().splitlines() if log.exists() else []
    return [(word, int(seed), int(number)) for word, seed, number in (line.split() for line in lines)]


def note(folder, word, seed, number=0):
    handle = os.open(Path(folder) / "events", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{word} {seed} {number}\n".encode())
    os.close(handle)


def watched(run, folder, deaths, die):
    """Let a function run a config as ever, with notes of each beginning, and a death."""
    from posembed.experiments.grids import runs

    plain = runs.train

    def train(config, *, checkpoint, progress):
        first = []

        def after_step(step, loss):
            if not first:
                first.append(step)
                note(folder, "begins", config.seed, step)
            begun = sum(event[:2] == ("begins", VICTIM) for event in events(folder))
            if config.seed == VICTIM and step == KILLED_AT and begun <= deaths:
                note(folder, "dies", config.seed, os.getpid())
                die()

        checkpoint.steps = KEPT_EVERY
        result = plain(config, checkpoint=checkpoint, progress=after_step)
        note(folder, "ends", config.seed)
        return result

    runs.train = train
    try:
        return run()
    finally:
        runs.train = plain


def kill_this_process():
    os.kill(os.getpid(), signal.SIGKILL)


def in_this_process(folder, deaths):
    from posembed.experiments.grids import engines
    from posembed.experiments.grids.runs import attempt

    engines.attempt = lambda *arguments: watched(lambda: attempt(*arguments), folder, deaths, kill_this_process)
    return run("serial", folder)


def with_joblib(folder, deaths):
    from posembed.experiments.grids import engines
    from posembed.experiments.grids.runs import attempt

    def attempt_watched(*arguments):
        return watched(lambda: attempt(*arguments), folder, deaths, kill_this_process)

    engines.attempt = attempt_watched
    return run("joblib", folder, n_workers=2)


def with_ray(folder, deaths, die=kill_this_process):
    from posembed.experiments.grids import ray_engine

    on_a_worker = ray_engine.on_a_worker

    def on_a_worker_watched(*arguments):
        return watched(lambda: on_a_worker(*arguments), folder, deaths, die)

    ray_engine.on_a_worker = on_a_worker_watched
    return run("ray", folder, n_workers=2)


def wait_for_the_end():
    time.sleep(600)


def tried(start):
    """Start a machine of a cluster, again if need be: Ray gives up after half a minute, too early on a busy one."""
    from posembed.experiments.grids.ray_engine import STARTS

    for _ in range(STARTS - 1):
        with contextlib.suppress(Exception):
            return start()
    return start()


def with_a_cluster(folder, deaths):
    """A head without cores and two machines with one each; that of the victim is taken away."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = tried(lambda: Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}))
    machines = [tried(lambda: cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False)

    def take_away():
        while not (dying := [number for word, _, number in events(folder) if word == "dies"]):
            time.sleep(0.1)
        (its_own,) = [machine for machine in machines if is_below(dying[0], machine)]
        cluster.remove_node(its_own, allow_graceful=False)

    threading.Thread(target=take_away, daemon=True).start()
    try:
        return with_ray(folder, deaths, wait_for_the_end)
    finally:
        ray.shutdown()
        cluster.shutdown()


def is_below(process, machine):
    """Whether a process is one of those that a machine of the cluster has started."""
    import psutil

    roots = {info.process.pid for each in machine.all_processes.values() for info in each}
    return bool(roots & {parent.pid for parent in psutil.Process(process).parents()})


def run(engine, folder, **options):
    from posembed.errors import RunError
    from posembed.experiments import run_grid

    try:
        results = run_grid(configs(), engine=engine, out=Path(folder) / "results", **options)
        return {"losses": [result.metrics for result in results]}
    except RunError as error:
        return {"error": str(error)}


def main():
    engine, folder, deaths = sys.argv[1], sys.argv[2], int(sys.argv[3])
    engines = {"serial": in_this_process, "joblib": with_joblib, "ray": with_ray, "cluster": with_a_cluster}
    print(json.dumps(engines[engine](folder, deaths)))


if __name__ == "__main__":
    main()
