"""Many runs: those that have a result are skipped, each result is written as soon as it is there."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ...errors import RunError
from ..config import RunConfig
from ..files.checkpoints import Checkpoint
from ..files.store import file_of, missing, read_result, write_result
from ..result import RunResult
from . import engines, ray_engine
from .engines import Settings
from .runs import Keeping, Outcome, run_and_store

__all__ = ["ENGINES", "run_and_store", "run_grid"]

ENGINES = ("serial", "joblib", "ray")
# How long to wait before looking again for a run that another grid has in hand, in seconds.
POLL = 1.0
# How often a run may be done without its result being there.
LOOKS = 3
# Called after each run with its result, or with None where it failed.
Progress: TypeAlias = Callable[[RunConfig, RunResult | None], None]


def run_grid(
    configs: Iterable[RunConfig],
    *,
    engine: str = "joblib",
    out: Path | str,
    n_workers: int = -1,
    save_models: bool = False,
    save_tables: bool = False,
    retries: int = 2,
    gpus: float | int = 1.0,
    checkpoint_seconds: float | int | None = 300.0,
    progress: Progress | None = None,
) -> list[RunResult]:
    """Run configs that have no result yet and return the results of all.

    A grid that was stopped goes on where it was: a run is done when its result is there, whole, and one that was under
    way goes on from its last checkpoint. Several grids may work in one folder, on the same runs too: each run is done
    by one of them (see `posembed.experiments.grids.claims`). A run that fails does not keep the others from being done.

    Args:
        configs: the runs; one that stands there twice is run once.
        engine: "serial", one after the other; "joblib", in worker processes of this machine; "ray", as tasks of a Ray
            cluster, or of one that is started on this machine (needs ``posembed[ray]``).
        out: the folder of the results.
        n_workers: runs at a time; -1 for one a core, with Ray for as many as there is room for.
        save_models: whether the weights of each model are kept beside its result (see
            `posembed.experiments.files.model_files`).
        save_tables: the same for the trained position table (see `posembed.experiments.files.weights`).
        retries: how often a run begins again whose process or machine was lost.
        gpus: the share of a GPU that a run takes on a Ray cluster, where its device is one.
        checkpoint_seconds: how often an unfinished run is written down; None for never.
        progress: called after each run with its config and its result without the model, or None where it failed.

    Returns:
        The results in the order of the configs, without models.

    Raises:
        RunError: an unknown engine or one that is not installed, a number out of its range, what is no config.
        RunError: a stored result that is damaged, or has no weights where they are to be kept; nothing is run and
            nothing overwritten. Or some runs failed: the others are stored, and running the grid again tries these.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig
        >>> from posembed.experiments import run_grid
        >>> tiny = {"n_layers": 1, "d_model": 8, "n_heads": 2, "steps": 2, "batch_size": 2}
        >>> folder = mkdtemp()
        >>> first = run_grid([RunConfig(seed=seed, **tiny) for seed in (1, 2)], engine="serial", out=folder)
        >>> run_grid([RunConfig(seed=2, **tiny)], engine="serial", out=folder) == first[1:]
        True
    """
    keeping = Keeping(save_models, save_tables, checkpoint_seconds)
    settings = Settings(Path(out), n_workers, retries, gpus, keeping)
    configs = _listed(configs)
    check_grid(configs, engine, settings)
    failed = run_all(configs, engine, settings, progress)
    if failed:
        raise RunError(report(failed, len({config.key for config in configs})))
    return [read_result(file_of(config, settings.out, "json")) for config in configs]


def _listed(configs: Iterable[RunConfig]) -> list[RunConfig]:
    if not isinstance(configs, Iterable):
        raise RunError(f"configs is a {type(configs).__name__}; give a list of RunConfig")
    # They are gone through more than once, which a generator does not allow.
    configs = list(configs)
    for config in configs:
        if not isinstance(config, RunConfig):
            raise RunError(f"{config!r} among the configs is no RunConfig; give a list of RunConfig")
    return configs


def check_grid(configs: Sequence[RunConfig], engine: str, settings: Settings) -> None:
    """Refuse, before anything is run, what cannot be meant.

    Raises:
        RunError: an unknown engine, a number out of its range.
        RunError: a result without the weights that are to be kept.

    Example:
        >>> from pathlib import Path
        >>> from posembed.experiments.grids.engines import Settings
        >>> from posembed.experiments.grids.grid import check_grid
        >>> check_grid([], "spark", Settings(Path("results")))
        Traceback (most recent call last):
        posembed.errors.RunError: there is no engine 'spark'; choose among serial, joblib, ray
    """
    if engine not in ENGINES:
        raise RunError(f"there is no engine {engine!r}; choose among {', '.join(ENGINES)}")
    n_workers, retries = settings.n_workers, settings.retries
    if isinstance(n_workers, bool) or not isinstance(n_workers, int) or (n_workers < 1 and n_workers != -1):
        raise RunError(f"n_workers is {n_workers!r}; it must be a whole number from 1 on, or -1 for all cores")
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise RunError(f"retries is {retries!r}; it must be a whole number from 0 on")
    if not 0 <= settings.gpus < float("inf"):
        raise RunError(f"gpus is {settings.gpus!r}; it must be a share of a GPU, such as 0.5")
    # It checks its own number of seconds.
    Checkpoint(settings.out, seconds=settings.keeping.checkpoint_seconds)
    _check_kept(configs, settings)


def _check_kept(configs: Sequence[RunConfig], settings: Settings) -> None:
    without = [config.scheme for config in configs if config.scheme != "learned"]
    if settings.keeping.tables and without:
        raise RunError(f"save_tables is for the scheme 'learned'; {without[0]!r} has no table")
    if not settings.keeping.models:
        return
    for config in configs:
        result = file_of(config, settings.out, "json")
        if result.exists() and not file_of(config, settings.out, "safetensors").exists():
            raise RunError(f"{result.name} has no weights beside it; move it away, and the grid trains it again")


def run_all(
    configs: Sequence[RunConfig], engine: str, settings: Settings, progress: Progress | None = None
) -> list[Outcome]:
    """Do all runs that have no result yet; return the outcomes of those that failed.

    Example:
        >>> from pathlib import Path
        >>> from posembed.experiments.grids.engines import Settings
        >>> from posembed.experiments.grids.grid import run_all
        >>> run_all([], "serial", Settings(Path("no-such-folder")))
        []
    """
    # Workers stand where the process stood when they began: a relative path may be another folder there.
    settings = replace(settings, out=settings.out.absolute())
    failed: dict[str, Outcome] = {}
    looks: Counter[str] = Counter()
    while wanted := [config for config in missing(configs, settings.out) if config.key not in failed]:
        n_ended = 0
        for outcome in _ENGINES[engine](wanted, settings):
            outcome = _seen(outcome, settings, looks)
            if outcome.state == "failed":
                failed[outcome.config.key] = outcome
            if outcome.state != "elsewhere":
                n_ended += 1
                if progress:
                    progress(outcome.config, _result(outcome, settings))
        if not n_ended:
            time.sleep(POLL)
    return [outcome for outcome in failed.values() if not _written_after_all(outcome, settings)]


def _seen(outcome: Outcome, settings: Settings, looks: Counter[str]) -> Outcome:
    """Take a result that is not to be seen for one that is on its way, as on a shared disk, but not for ever."""
    if outcome.state != "done" or file_of(outcome.config, settings.out, "json").exists():
        return outcome
    key = outcome.config.key
    looks[key] += 1
    if looks[key] < LOOKS:
        return replace(outcome, state="elsewhere")
    return replace(outcome, state="failed", message="it was done, but its result is not in the folder")


def _result(outcome: Outcome, settings: Settings) -> RunResult | None:
    done = outcome.state == "done"
    return read_result(file_of(outcome.config, settings.out, "json")) if done else outcome.unwritten


def _written_after_all(outcome: Outcome, settings: Settings) -> bool:
    """There may be room on the disk by now."""
    if outcome.unwritten is None:
        return False
    try:
        write_result(outcome.unwritten, settings.out)
    except OSError:
        return False
    file_of(outcome.config, settings.out, "checkpoint").unlink(missing_ok=True)
    return True


def report(failed: Sequence[Outcome], n_runs: int, n_waiting: int = 0) -> str:
    """Say in one line which runs failed and why, a reason that several share once.

    Args:
        failed: at least one.
        n_runs: how many there are in all.
        n_waiting: how many of them were not run because the failed ones were to choose their learning rate.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.experiments.grids.grid import report
        >>> from posembed.experiments.grids.runs import Outcome
        >>> print(report([Outcome(RunConfig(seed=3), "failed", "out of memory")], 10))
        1 of 10 runs failed, the others are stored: nopos, seed 3, learning rate 0.003, 1391dc1f10fa3343 (out of memory)
    """
    by_reason: dict[str, list[RunConfig]] = {}
    for each in failed:
        by_reason.setdefault(each.message, []).append(each.config)
    said = [
        f"{first.scheme}, seed {first.seed}, learning rate {first.learning_rate}, {first.key}"
        f"{f' and {len(more)} more' if more else ''} ({reason})"
        for reason, (first, *more) in by_reason.items()
    ]
    waiting = f", {n_waiting} wait for a learning rate" if n_waiting else ""
    stored = ", the others are stored" if len(failed) + n_waiting < n_runs else ""
    return f"{len(failed)} of {n_runs} runs failed{waiting}{stored}: {'; '.join(said)}"


_ENGINES: dict[str, Callable[[Sequence[RunConfig], Settings], Iterator[Outcome]]] = {
    "serial": engines.serial,
    "joblib": engines.joblib,
    "ray": ray_engine.ray,
}
