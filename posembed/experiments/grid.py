"""Many runs: those that have a result are skipped, each result is written as soon as it is there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import RunConfigError
from .config import RunConfig
from .store import missing, read_result, write_result
from .train import RunResult, train

ENGINES = ("serial", "joblib")


def run_grid(
    configs: Sequence[RunConfig], *, engine: str = "joblib", out: Path | str, n_workers: int = -1
) -> list[RunResult]:
    """Run configs that have no result yet and return the results of all.

    A grid that was stopped goes on where it was: a run is done when its result is there, whole.

    Args:
        configs: the runs; one that stands there twice is run once.
        engine: "serial", one after the other; "joblib", in worker processes of this machine.
        out: the folder of the results.
        n_workers: for joblib; -1 for one a core.

    Returns:
        The results in the order of the configs, without models.

    Raises:
        RunConfigError: an unknown engine.
        ResultError: a stored result that is damaged; nothing is run and nothing overwritten.

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
    if engine not in ENGINES:
        raise RunConfigError(f"there is no engine {engine!r}; choose among {', '.join(ENGINES)}")
    wanted = missing(configs, out)
    if engine == "serial":
        for config in wanted:
            run_and_store(config, out)
    elif wanted:
        from joblib import Parallel, delayed

        Parallel(n_jobs=n_workers, batch_size=1)(delayed(run_and_store)(config, out) for config in wanted)
    return [read_result(Path(out) / f"{config.key}.json") for config in configs]


def run_and_store(config: RunConfig, out: Path | str) -> None:
    """Train as a config says and write the result.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig
        >>> from posembed.experiments import read_results, run_and_store
        >>> folder = mkdtemp()
        >>> run_and_store(RunConfig(n_layers=1, d_model=8, n_heads=2, steps=2, batch_size=2), folder)
        >>> len(read_results(folder))
        1
    """
    write_result(train(config), out)
