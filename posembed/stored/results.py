"""Results as a table: those of a folder, or those that the package stores."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import RunError
from ..public import public
from ..training.results import RunResult, read_result
from .studies import load_runs, study_names

if TYPE_CHECKING:
    import pandas


@public(RunError)
def load_results(source: Path | str) -> pandas.DataFrame:
    """Load results as a table, one row a run: those of a folder, or of a study that the package stores.

    A file of the folder that cannot be used is left out, with a warning that names it.

    Args:
        source: the name of a study, or a folder of `run_grid`, ``posembed train`` or ``posembed grid``; a folder with
            the name of a study is given with its path, such as "./nopos".

    Returns:
        The table. Its columns say where a value comes from, as ``config.scheme`` and the other settings do,
        ``metrics.loss`` and the other metrics, ``speed.tokens_per_second``, ``versions.torch``; before them stand
        ``key``, ``machine`` and ``wall_seconds``. Losses are in nats a guessed token.

    Raises:
        RunError: no such study or folder; a folder without any result that can be used.

    Example:
        >>> from posembed import load_results
        >>> table = load_results("encodings")
        >>> bool((table[table["config.scheme"] == "rope"]["metrics.loss"] > 1).all())
        True
    """
    import pandas

    runs = load_runs(source) if isinstance(source, str) and source in study_names() else _of_folder(source)
    return pandas.DataFrame([_row(run) for run in runs])


def _of_folder(source: Path | str) -> list[RunResult]:
    """Read what can be read of a folder, with a warning for each other file."""
    folder = Path(source)
    if not folder.is_dir():
        studies = ", ".join(study_names())
        raise RunError(f"there is no folder {str(source)!r}; give one, or the name of a study: {studies}")
    runs, refused = [], []
    for path in sorted(folder.glob("*.json")):
        try:
            runs.append(read_result(path))
        except RunError as error:
            refused.append(str(error))
    if not runs:
        n = len([*folder.glob("*.checkpoint")])
        stopped = f"{n} run{'s' * (n > 1)} stopped on the way; give the same command again to go on"
        none = stopped if n else "give the folder with the runs' JSON files"
        why = f"none of its files can be used: {refused[0]}" if refused else none
        raise RunError(f"there are no results in {str(folder)!r}; {why}")
    for each in refused:
        warnings.warn(f"left out: {each}", stacklevel=3)
    return runs


def _row(run: RunResult) -> dict[str, Any]:
    """The row of a run; a metric never hides the setting that has the same name."""
    groups = {"config": run.config.to_dict(), "metrics": run.metrics, "speed": run.speed, "versions": run.versions}
    named = {f"{group}.{name}": value for group, values in groups.items() for name, value in values.items()}
    return {"key": run.config.key, "machine": run.machine, "wall_seconds": run.wall_seconds, **named}
