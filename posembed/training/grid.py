"""Many runs: what has a result is skipped, the rest is done one after the other, by joblib or by Ray.

Each run sets its number of threads itself, so on one machine all engines give the same numbers, bit for bit. The file
of a result is all that says that a run is done: a grid that was stopped goes on by being called again.
"""

from __future__ import annotations

import itertools
import logging
import multiprocessing
import os
import signal
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal, TypeAlias

from ..errors import PosembedError, RunError
from ..progress import say, show_progress
from ..public import NotNegative, check_fields, public
from .checkpoints import ASKING, held_back
from .config import RunConfig
from .results import RunResult, checked_configs, file_of, missing, read_result, write_result, write_whole
from .runs import train
from .weights import has_weights, write_model, write_table

Engine: TypeAlias = Literal["serial", "joblib", "ray"]
# How often a worker process looks whether it is still wanted, in seconds, and how long one that is not may take.
LOOK, PATIENCE = 0.5, 10.0
# How often Ray is started before its error is told; results are small, and its default takes a third of the memory.
STARTS, OBJECT_STORE = 3, 100 * 2**20

# Called after each run with its result, or with None where it failed.
Progress: TypeAlias = Callable[[RunConfig, RunResult | None], None]
# A run that has ended, and why it failed; "" where it did not.
Outcome: TypeAlias = tuple[RunConfig, str]


@dataclass(frozen=True)
class Settings:
    """How a grid is run; see `run_grid`.

    Raises:
        RunError: an unknown engine, a number out of its range.
    """

    out: Path
    engine: Engine = "joblib"
    n_workers: int = -1
    gpus: NotNegative = 1.0
    save_models: bool = False
    save_tables: bool = False
    train: Callable[..., RunResult] = train

    def __post_init__(self) -> None:
        check_fields(self, RunError)
        if self.n_workers < 1 and self.n_workers != -1:
            raise RunError(f"n_workers is {self.n_workers}; it must be a whole number from 1 on, or -1 for all cores")
        # Workers stand where the process stood when they began: a relative path may be another folder there.
        object.__setattr__(self, "out", Path(self.out).absolute())

    def check(self, configs: Iterable[RunConfig]) -> None:
        """Refuse runs of which something is to be kept that is not there, and what is no folder."""
        for config in configs:
            if self.save_tables and config.scheme != "learned":
                raise RunError(f"save_tables is for the scheme 'learned'; {config.scheme!r} has no table")
            result = file_of(config, self.out, "json")
            if self.save_models and result.exists() and not has_weights(config, self.out):
                raise RunError(f"{result.name} has no whole weights beside it; move it away, and it is trained again")


@public(RunError)
def run_grid(
    configs: Iterable[RunConfig],
    *,
    engine: Engine = "joblib",
    out: Path | str,
    n_workers: int = -1,
    save_models: bool = False,
    save_tables: bool = False,
    gpus: NotNegative = 1.0,
    progress: Progress | None = None,
    train: Callable[..., RunResult] = train,
) -> list[RunResult]:
    """Run configs that have no result yet and return the results of all.

    A grid that was stopped goes on where it was: a run is done when its result is there, whole, and one that was under
    way goes on from its checkpoint. A run that fails does not keep the others from being done.

    Args:
        configs: the runs; one that stands there twice is run once.
        engine: "serial", one after the other; "joblib", in worker processes of this machine; "ray", as tasks of a Ray
            cluster, or of one that is started on this machine (needs ``posembed[ray]``).
        out: the folder of the results, of one grid at a time.
        n_workers: runs at a time; -1 for one a core. A Ray cluster of several machines has as many as it has room for.
        save_models: whether the weights of each model are kept beside its result (see `read_model`).
        save_tables: the same for the trained position table (see `read_tables`).
        gpus: the share of a GPU that a run takes on a Ray cluster, where its device is one.
        progress: called after each run with its config and its result without the model, or None where it failed. By
            default a line on stderr says every ten seconds how many runs are done and about how long the rest takes.
        train: what does one run, called as `posembed.train` is; worker processes must be able to import it.

    Returns:
        The results in the order of the configs, without models.

    Raises:
        RunError: an unknown engine or one that is not installed, a number out of its range, what is no config.
        RunError: a stored result that is damaged, or has no weights where they are to be kept; nothing is run and
            nothing overwritten. Or some runs failed: the others are stored, and running the grid again tries these.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig
        >>> from posembed.training import run_grid
        >>> tiny = {"n_layers": 1, "d_model": 8, "n_heads": 2, "steps": 2, "batch_size": 2}
        >>> folder = mkdtemp()
        >>> first = run_grid([RunConfig(seed=seed, **tiny) for seed in (1, 2)], engine="serial", out=folder)
        >>> run_grid([RunConfig(seed=2, **tiny)], engine="serial", out=folder) == first[1:]
        True
    """
    configs = checked_configs(configs)
    settings = Settings(Path(out), engine, n_workers, gpus, save_models, save_tables, train)
    settings.check(configs)
    left = missing(configs, settings.out)
    with show_progress("running the grid", len(left)) if progress is None else nullcontext() as tell:
        failed = run_all(left, settings, progress or telling(tell))
    if failed:
        raise RunError(report(failed, len({config.key for config in configs})))
    return [read_result(file_of(config, settings.out, "json")) for config in configs]


def run_all(configs: Sequence[RunConfig], settings: Settings, progress: Progress | None = None) -> list[Outcome]:
    """Do all runs that have no result yet; return the outcomes of those that failed."""
    failed = []
    for config, reason in _ENGINES[settings.engine](missing(configs, settings.out), settings):
        if reason:
            failed.append((config, reason))
        if progress:
            progress(config, None if reason else read_result(file_of(config, settings.out, "json")))
    return failed


def telling(tell: Any) -> Progress:
    """Make of a function that is told what was done, and how many runs that are, one that is called after each run."""
    number = itertools.count(1)

    def after_run(config: RunConfig, result: RunResult | None) -> None:
        how = f"loss {result.metrics['loss']:.3f}" if result else "failed"
        tell(f"{config.scheme}, seed {config.seed}: {how}", next(number))

    return after_run


def report(failed: Sequence[Outcome], n_runs: int, n_waiting: int = 0) -> str:
    """Say in one line which of so many runs failed and why, a reason that several share once.

    So many others wait for a learning rate that the failed ones were to choose.
    """
    # The first run with each reason, in their order.
    reasons = {reason: config for config, reason in reversed(failed)}
    said = [
        f"{config.scheme}, seed {config.seed}, learning rate {config.learning_rate}, {config.key} ({reason})"
        for reason, config in reversed(reasons.items())
    ]
    waiting = f", {n_waiting} wait for a learning rate" if n_waiting else ""
    stored = ", the others are stored" if len(failed) + n_waiting < n_runs else ""
    return f"{len(failed)} of {n_runs} runs failed{waiting}{stored}; {'; '.join(said)}"


@public(RunError)
def run_and_store(
    config: RunConfig,
    out: Path | str,
    *,
    save_model: bool = False,
    save_table: bool = False,
    progress: Callable[[int, float], Any] | None = None,
    train: Callable[..., RunResult] = train,
) -> RunResult:
    """Give the result of a run that has one in a folder; train it, if not, and write the result there.

    An unfinished run that left a checkpoint in the folder goes on from there. Who finds the result finds what belongs
    to it too.

    Args:
        config: the run.
        out: the folder.
        save_model: whether the weights of the model are kept beside it.
        save_table: whether the trained position table is.
        progress: as for `posembed.train`.
        train: what does the run, called as `posembed.train` is.

    Returns:
        The result; with the trained model where it was trained now.

    Raises:
        RunError: the folder cannot be written, or the disk is full; nothing half-written stays.
        RunError: a stored result that is damaged, or has no weights where they are to be kept.
        CheckpointError: a checkpoint that is damaged or of another version; it is left as it is.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig
        >>> from posembed.training import read_results, run_and_store
        >>> folder = mkdtemp()
        >>> _ = run_and_store(RunConfig(n_layers=1, d_model=8, n_heads=2, steps=2, batch_size=2), folder)
        >>> len(read_results(folder))
        1
    """
    out = Path(out)
    Settings(out, save_models=save_model, save_tables=save_table).check([config])
    path, checkpoint = file_of(config, out, "json"), file_of(config, out, "checkpoint")
    if path.exists():
        return read_result(path)
    try:
        out.mkdir(parents=True, exist_ok=True)
        # A folder that nothing can be written to is known before the training.
        with TemporaryFile(dir=out):
            pass
        result = train(config, checkpoint=checkpoint, progress=progress)
        model: Any = result.model
        if save_model:
            write_model(model, config, out)
        if save_table:
            write_table(model.transformer.position_scheme.weight, config, out)
        # Last: it says that all is there.
        write_result(result, out)
        checkpoint.unlink(missing_ok=True)
    except OSError as error:
        raise RunError(f"cannot write to the folder {str(out)!r} ({error.strerror}); make room, or change it") from None
    return result


def _attempt(config: RunConfig, settings: Settings) -> Outcome:
    """Do a run; one run's mistake must not cost the others, so it is no error here."""
    save_model, save_table = settings.save_models, settings.save_tables
    try:
        run_and_store(config, settings.out, save_model=save_model, save_table=save_table, train=settings.train)
    except PosembedError as error:
        return config, str(error)
    except Exception as error:
        return config, in_one_line(error)
    return config, ""


def in_one_line(error: Exception) -> str:
    """What went wrong, and where: in code of one's own, where the way leads through some, and not in a library."""
    ways, paths = traceback.extract_tb(error.__traceback__), sysconfig.get_paths()
    libraries = (str(Path(__file__).parents[1]), paths["stdlib"], paths["purelib"], paths["platlib"], "<")
    where = ([each for each in ways if not each.filename.startswith(libraries)] or ways)[-1]
    what = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return f"{what}, in {Path(where.filename).name}, line {where.lineno}"


def _serial(configs: Sequence[RunConfig], settings: Settings) -> Iterator[Outcome]:
    for config in configs:
        yield _attempt(config, settings)


def _joblib(configs: Sequence[RunConfig], settings: Settings) -> Iterator[Outcome]:
    """Several runs at a time, in processes of this machine, which write down where they are when the grid is to end."""
    from joblib import Parallel, delayed, effective_n_jobs

    # A worker that waits for a first run would not know what to do with Ctrl-C.
    n_jobs = min(effective_n_jobs(settings.n_workers), len(configs))
    if n_jobs < 2:
        yield from _serial(configs, settings)
        return
    # Workers are kept from grid to grid: they may have begun elsewhere, before a folder of modules was added.
    told = (settings, os.getpid(), [str(Path(each).absolute()) for each in sys.path])
    with held_back(_stop_workers) as held:
        tasks = (delayed(_in_worker)(config, *told) for config in configs if held.number is None)
        pool = Parallel(n_jobs=n_jobs, batch_size=1, pre_dispatch="n_jobs", return_as="generator_unordered")
        try:
            for outcome in pool(tasks):
                if held.number is None:
                    yield outcome
        except BrokenProcessPool:
            # Ctrl-C may come before a worker is ready for it.
            if held.number is None:
                raise RunError(
                    "a worker process was killed, for too much memory perhaps; what is done is stored, run the grid "
                    "again, with fewer if need be (n_workers)"
                ) from None


def _stop_workers() -> None:
    say("stopping, as soon as each run has taken the step that it is at; the same call goes on from there")
    for process in multiprocessing.active_children():
        if process.name.startswith("Loky"):
            process.terminate()


def _in_worker(config: RunConfig, settings: Settings, parent: int, folders: list[str]) -> Outcome:
    """Do a run in a worker process, as long as the grid's process lives and does not ask to stop."""
    sys.path.extend(each for each in folders if each not in sys.path)
    # At a terminal Ctrl-C reaches all processes; the grid's own passes it on, as SIGTERM.
    for number in ASKING:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    _end_with(parent)
    try:
        return _attempt(config, settings)
    except SystemExit:
        return config, "it was interrupted"
    finally:
        # Between two runs there is nothing to write down, and a worker that dies would take the others with it.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


@cache
def _end_with(parent: int) -> None:
    """End this worker, from now on, when the grid's process is gone: also while it waits for its next run."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(PATIENCE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _ray(configs: Sequence[RunConfig], settings: Settings) -> Iterator[Outcome]:
    """Runs as tasks of Ray, each with as many cores as it has threads and the share of a GPU that is asked for.

    The cluster is the one that RAY_ADDRESS names, or that this process is part of; else one of this machine. A run
    whose process or machine is lost begins again on another one, by Ray.
    """
    import ray

    if started_here := not ray.is_initialized():
        _start_ray(ray, configs, settings)
    tasks: dict[Any, RunConfig] = {}
    try:
        for config in configs:
            gpus = settings.gpus if config.device.startswith("cuda") else 0
            task = ray.remote(num_cpus=config.threads, num_gpus=gpus)(_on_a_cluster)
            tasks[task.remote(config, settings)] = config
        while tasks:
            for done in ray.wait(list(tasks))[0]:
                config = tasks.pop(done)
                try:
                    outcome, files = ray.get(done)
                    _write_files(files, settings.out)
                except ray.exceptions.RayError as error:
                    outcome = config, f"Ray lost it ({type(error).__name__})"
                except OSError as error:
                    outcome = config, f"what it gave cannot be written ({error.strerror})"
                yield outcome
    finally:
        for task in tasks:
            ray.cancel(task)
        if tasks:
            # They write down where they are.
            ray.wait(list(tasks), num_returns=len(tasks), timeout=PATIENCE)
        if started_here:
            ray.shutdown()


def _start_ray(ray: Any, configs: Sequence[RunConfig], settings: Settings) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A task that asks for more cores than there are would wait for ever.
    threads = max((config.threads for config in configs), default=1)
    cores = settings.n_workers * threads if settings.n_workers > 0 else max(os.cpu_count() or 1, threads)
    # "local", for Ray would else join a cluster that `ray start` has begun on this machine.
    alone = {"address": "local", "num_cpus": cores, "include_dashboard": False, "object_store_memory": OBJECT_STORE}
    named = "RAY_ADDRESS" in os.environ
    # On a busy machine Ray gives itself up after 15 s, which nothing can set (ray-project/ray, issue 65983).
    for trial in range(STARTS):
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **({} if named else alone))
            return
        except Exception as error:  # a bare one
            if named or trial == STARTS - 1:
                reason = " ".join(str(error).split()) or type(error).__name__
                raise RunError(f"Ray cannot be started, or no cluster answers at RAY_ADDRESS ({reason})") from None


def _on_a_cluster(config: RunConfig, settings: Settings) -> tuple[Outcome, dict[str, bytes]]:
    """Do a run where Ray has put it; return the outcome, and the run's files, for the folder may be on another disk."""
    outcome = _attempt(config, settings)
    return outcome, {path.name: path.read_bytes() for path in settings.out.glob(f"{config.key}.*")}


def _write_files(files: dict[str, bytes], folder: Path) -> None:
    """The JSON of the result comes after its weights: it says that all is there."""
    for name in sorted(files, reverse=True):
        if not (folder / name).exists():
            write_whole(folder / name, files[name])


_ENGINES: dict[str, Callable[[Sequence[RunConfig], Settings], Iterator[Outcome]]] = {
    "serial": _serial,
    "joblib": _joblib,
    "ray": _ray,
}
