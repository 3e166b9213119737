"""The runs of a grid as tasks of Ray: on this machine, or on a cluster of many."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...errors import RunError
from ..config import RunConfig
from ..files.store import write_whole
from .claims import claim, claim_path
from .engines import Settings
from .runs import Keeping, Outcome, run_claimed

# Results are small; Ray's default would take a third of the memory.
OBJECT_STORE = 100 * 2**20
# How often a start is tried: Ray gives up after half a minute, which may be too little on a busy machine.
STARTS = 3


def ray(configs: Sequence[RunConfig], settings: Settings) -> Iterator[Outcome]:
    """Runs as tasks of Ray, each with as many cores as it has threads and the share of a GPU that is asked for.

    The cluster is the one that RAY_ADDRESS names, or one that this process is part of, or else is started on this
    machine and ended with the grid. A run whose process or machine is lost begins again on another one. The grid that
    submits the runs has them all from the beginning. Where a task finds the grid's folder it writes there and goes on
    from a checkpoint; elsewhere it sends its files back. The package must be installed on each machine, and a text that
    is a path must be there.

    Raises:
        RunError: Ray is not installed, or no cluster answers at RAY_ADDRESS.

    Example:
        >>> from pathlib import Path
        >>> from posembed.experiments.grids.engines import Settings
        >>> from posembed.experiments.grids.ray_engine import ray
        >>> list(ray([], Settings(Path("results"))))
        []
    """
    if not configs:
        return
    library = _library()
    with _cluster(library, configs, settings), ExitStack() as claims:
        waiting: list[RunConfig] = []
        pending: dict[Any, RunConfig] = {}
        for config in configs:
            if claims.enter_context(claim(config, settings.out)):
                waiting.append(config)
            else:
                yield Outcome(config, "elsewhere")
        while waiting or pending:
            while waiting and not 0 < settings.n_workers <= len(pending):
                config = waiting.pop(0)
                pending[_submit(library, config, settings)] = config
            done, _ = library.wait(list(pending), num_returns=1)
            for task in done:
                yield _collect(library, task, pending.pop(task), settings)


def _library() -> Any:
    try:
        import ray as library
    except ImportError:
        raise RunError('the engine "ray" needs Ray; pip install "posembed[ray]"') from None
    return library


@contextmanager
def _cluster(library: Any, configs: Sequence[RunConfig], settings: Settings) -> Iterator[None]:
    if library.is_initialized():
        yield
        return
    _connect(library, max(os.cpu_count() or 1, *(config.threads for config in configs)))
    try:
        yield
    finally:
        library.shutdown()


def _connect(library: Any, cores: int) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    address = os.environ.get("RAY_ADDRESS")
    if address:
        try:
            library.init(address=address, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise RunError(f"no Ray cluster answers at RAY_ADDRESS {address!r} ({_line(error)})") from None
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    for left in reversed(range(STARTS)):
        try:
            # Tasks that ask for more cores than there are would wait for ever, so there are said to be enough.
            library.init(num_cpus=cores, include_dashboard=False, object_store_memory=OBJECT_STORE, **quiet)
            return
        except Exception as error:  # Ray raises a bare one where a busy machine starts it too slowly
            library.shutdown()
            if not left:
                raise RunError(f"Ray cannot be started on this machine ({_line(error)})") from None


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _submit(library: Any, config: RunConfig, settings: Settings) -> Any:
    gpus = settings.gpus if config.device.startswith("cuda") else 0
    task = library.remote(num_cpus=config.threads, num_gpus=gpus, max_retries=settings.retries)(on_a_worker)
    out = settings.out.resolve()
    return task.remote(config, out, claim_path(config, out).read_bytes(), settings.keeping)


def on_a_worker(config: RunConfig, out: Path, token: bytes, keeping: Keeping) -> tuple[Outcome, dict[str, bytes]]:
    """Run a config where Ray has put it; return the outcome, and the files it wrote if the grid's folder is not there.

    Args:
        config: the run.
        out: the grid's folder, on its machine.
        token: what stands in the run's lock file there.
        keeping: what is written.

    Example:
        >>> from pathlib import Path
        >>> from posembed import RunConfig
        >>> from posembed.experiments.grids.ray_engine import on_a_worker
        >>> from posembed.experiments.grids.runs import Keeping
        >>> config = RunConfig(n_layers=1, d_model=8, n_heads=2, steps=2, batch_size=2)
        >>> outcome, files = on_a_worker(config, Path("nowhere"), b"{}", Keeping())
        >>> outcome.state, list(files) == [f"{config.key}.json"]
        ('done', True)
    """
    lock = claim_path(config, out)
    if token and lock.is_file() and lock.read_bytes() == token:
        return run_claimed(config, out, keeping), {}
    with TemporaryDirectory() as folder:
        outcome = run_claimed(config, folder, replace(keeping, checkpoint_seconds=None))
        return outcome, {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def _collect(library: Any, task: Any, config: RunConfig, settings: Settings) -> Outcome:
    try:
        outcome, files = library.get(task)
        # The result comes last: it says that all is there.
        for name in sorted(files, key=lambda name: name.endswith(".json")):
            write_whole(settings.out / name, files[name])
        return outcome
    except library.exceptions.RayError as error:
        return Outcome(config, "failed", f"Ray lost it {settings.retries + 1} times ({type(error).__name__})")
    except OSError as error:
        return Outcome(config, "failed", f"what it gave cannot be written ({error.strerror})")
