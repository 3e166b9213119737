"""Where the runs of a grid run: in this process, or in several of this machine. A third engine is Ray's.

An engine takes configs and yields an outcome of each as soon as there is one. Each run sets its number of threads
itself, so on one machine all engines give the same numbers, bit for bit.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path

from ..config import RunConfig
from .claims import claim_path, left_behind
from .runs import Keeping, Outcome, attempt

# How long the processes of a broken pool may take to be gone, in seconds.
PATIENCE = 5.0


@dataclass(frozen=True)
class Settings:
    """How an engine works.

    Attributes:
        out: the folder of the results.
        n_workers: runs at a time; -1 for one a core (joblib), or for as many as the cluster has room for (Ray).
        retries: how often a run begins again whose process was killed.
        gpus: the share of a GPU that each run takes, where its device is one (Ray).
        keeping: what is written of each run.

    Example:
        >>> from pathlib import Path
        >>> from posembed.experiments.grids.engines import Settings
        >>> Settings(Path("results")).retries
        2
    """

    out: Path
    n_workers: int = -1
    retries: int = 2
    gpus: float = 1.0
    keeping: Keeping = field(default_factory=Keeping)


def serial(configs: Sequence[RunConfig], settings: Settings) -> Iterator[Outcome]:
    """One run after the other in this process.

    Example:
        >>> from pathlib import Path
        >>> from posembed.experiments.grids.engines import Settings, serial
        >>> list(serial([], Settings(Path("results"))))
        []
    """
    for config in configs:
        yield attempt(config, settings.out, settings.keeping)


def joblib(configs: Sequence[RunConfig], settings: Settings) -> Iterator[Outcome]:
    """Several runs at a time, in processes of this machine.

    If one process is killed, joblib ends the others too. The runs that were under way begin again, from their last
    checkpoint, each by itself: so one that is killed every time (for its memory, say) is found out and given up, and
    the others are done. Then the rest go on together.

    Example:
        >>> from pathlib import Path
        >>> from posembed.experiments.grids.engines import Settings, joblib
        >>> list(joblib([], Settings(Path("results"))))
        []
    """
    waiting, killed = {config.key: config for config in configs}, Counter[str]()
    by_themselves: list[RunConfig] = []
    while waiting:
        together, n_workers = list(waiting.values()), settings.n_workers
        if by_themselves:
            # With one worker joblib would run it in this process.
            together, n_workers = [by_themselves.pop(0)], 2
        try:
            for outcome in _pool(together, settings, n_workers):
                del waiting[outcome.config.key]
                yield outcome
        except BrokenProcessPool:
            for config in _under_way([each for each in together if each.key in waiting], settings.out):
                killed[config.key] += 1
                if killed[config.key] <= settings.retries:
                    by_themselves.append(config)
                else:
                    del waiting[config.key]
                    yield Outcome(
                        config, "failed", f"its process was killed {killed[config.key]} times; too little memory?"
                    )


def _pool(configs: Sequence[RunConfig], settings: Settings, n_workers: int) -> Iterable[Outcome]:
    from joblib import Parallel, delayed

    pool = Parallel(n_jobs=n_workers, batch_size=1, return_as="generator_unordered")
    return pool(delayed(attempt)(config, settings.out, settings.keeping) for config in configs)


def _under_way(configs: Sequence[RunConfig], out: Path) -> list[RunConfig]:
    """Those that a killed process had in hand: it leaves its lock file behind, and the lock is free."""
    locked = [config for config in configs if claim_path(config, out).exists()]
    end = time.monotonic() + PATIENCE
    while not all(left_behind(config, out) for config in locked) and time.monotonic() < end:
        time.sleep(0.05)
    # Where there are no locks nobody knows, so each of them may have been.
    return [config for config in locked if left_behind(config, out)] or list(configs)
