"""Results as files: one JSON a run, named by its config, written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...errors import RunError
from ..config import RunConfig
from ..result import RunResult

if TYPE_CHECKING:
    import pandas

# A result of a later format is refused: guessing at its meaning could give a wrong number.
FORMAT = 1


def file_of(config: RunConfig, folder: Path | str, ending: Literal["json", "safetensors", "npy", "checkpoint"]) -> Path:
    """Where a run has one of its files, all of which are named by its config.

    Args:
        config: of the run.
        folder: of the results.
        ending: "json" for its result, "safetensors" for the weights of its model, "npy" for its position table,
            "checkpoint" for where it is while it is unfinished.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.experiments.files.store import file_of
        >>> file_of(RunConfig(), "results", "json").suffix
        '.json'
    """
    return Path(folder) / f"{config.key}.{ending}"


def write_result(result: RunResult, folder: Path | str) -> Path:
    """Write a result under the name of its config; who reads at the same time sees the whole file or none.

    Raises:
        OSError: the folder cannot be written, or the disk is full; nothing half-written stays.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig, RunResult
        >>> from posembed.experiments import read_results, write_result
        >>> folder = mkdtemp()
        >>> result = RunResult(RunConfig(), {"loss": 2.0}, {}, "a machine", 1.0)
        >>> _ = write_result(result, folder)
        >>> read_results(folder) == [result]
        True
    """
    text = json.dumps({"format": FORMAT, **result.to_dict()}, indent=1)
    return write_whole(file_of(result.config, folder, "json"), f"{text}\n".encode())


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file, and its folder if need be; who reads at the same time sees the whole file or none.

    Raises:
        OSError: the folder cannot be written, or the disk is full; nothing half-written stays.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> from posembed.experiments import write_whole
        >>> write_whole(Path(mkdtemp()) / "folder" / "file.txt", b"content").read_text()
        'content'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def read_result(path: Path | str) -> RunResult:
    """Read one result.

    Raises:
        RunError: a file that is damaged, of a newer format, or under another config's name.

    Example:
        >>> from posembed.experiments import read_result
        >>> read_result("no-such-file.json")
        Traceback (most recent call last):
        posembed.errors.RunError: no-such-file.json cannot be read (No such file or directory)
    """
    path = Path(path)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        result = parse_result(values)
    except OSError as error:
        raise RunError(f"{path.name} cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, RunError):
            raise RunError(f"{path.name}: {error}") from None
        raise RunError(f"{path.name} is damaged; move it away and run its config again") from None
    if path.stem != result.config.key:
        raise RunError(f"{path.name} holds the run {result.config.key}; give it that name or move it away")
    return result


def parse_result(values: Any) -> RunResult:
    """Make a result of what a file holds.

    Example:
        >>> from posembed import RunConfig, RunResult
        >>> from posembed.experiments import parse_result
        >>> result = RunResult(RunConfig(), {"loss": 2.0}, {}, "a machine", 1.0)
        >>> parse_result({"format": 1, **result.to_dict()}) == result
        True
    """
    values = dict(values)
    found = values.pop("format")
    if found != FORMAT:
        raise RunError(f"it has format {found!r}, this version of posembed reads {FORMAT}; upgrade posembed")
    return RunResult.from_dict(values)


def read_results(folder: Path | str) -> list[RunResult]:
    """Read all results of a folder, in the order of their names.

    Raises:
        RunError: a file that `read_result` refuses, or something else than a folder.

    Example:
        >>> from posembed.experiments import read_results
        >>> read_results("no-such-folder")
        []
    """
    if Path(folder).is_file():
        raise RunError(f"{Path(folder).name} is a file; give the folder of the results")
    return [read_result(path) for path in sorted(Path(folder).glob("*.json"))]


def results_of(configs: Iterable[RunConfig], folder: Path | str) -> list[RunResult]:
    """Read the results of those configs that have one in a folder.

    Raises:
        RunError: a file that `read_result` refuses.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.experiments.files.store import results_of
        >>> results_of([RunConfig()], "no-such-folder")
        []
    """
    paths = [file_of(config, folder, "json") for config in configs]
    return [read_result(path) for path in paths if path.exists()]


def missing(configs: Iterable[RunConfig], folder: Path | str) -> list[RunConfig]:
    """List the configs, each once, that have no readable result in a folder yet.

    Raises:
        RunError: a file that `read_result` refuses; it is left as it is.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.experiments import missing
        >>> len(missing([RunConfig(), RunConfig(), RunConfig(seed=1)], "no-such-folder"))
        2
    """
    unique = {config.key: config for config in configs}
    done = {result.config.key for result in results_of(unique.values(), folder)}
    return [config for key, config in unique.items() if key not in done]


def load_runs(study: str) -> list[RunResult]:
    """Load the stored runs of a study from the package.

    Args:
        study: its name; the error lists those there are.

    Raises:
        RunError: no such study.

    Example:
        >>> from posembed.experiments import load_runs
        >>> load_runs("encodings")[0].config.data
        'sotu'
    """
    stored = files("posembed.experiments") / "stored"
    names = sorted(each.name.removesuffix(".json") for each in stored.iterdir() if each.name.endswith(".json"))
    if study not in names:
        raise RunError(f"there are no stored results {study!r}; there are: {', '.join(names) or 'none'}")
    return [parse_result(each) for each in json.loads((stored / f"{study}.json").read_text(encoding="utf-8"))]


def load_results(study: str) -> pandas.DataFrame:
    """Load the stored runs of a study from the package as a table, one row a run.

    Args:
        study: its name; the error lists those there are.

    Returns:
        A DataFrame with a column for each setting of the config, each metric and each speed, and ``machine`` and
        ``wall_seconds``.
        Losses are in nats a guessed character.

    Raises:
        RunError: no such study.

    Example:
        >>> from posembed import load_results
        >>> {"scheme", "objective", "seed", "loss"} <= set(load_results("encodings").columns)
        True
    """
    import pandas

    return pandas.DataFrame([_row(run) for run in load_runs(study)])


def _row(run: RunResult) -> dict[str, Any]:
    own = {"machine": run.machine, "wall_seconds": run.wall_seconds} | run.speed
    # What a scheme has learned must not hide the setting that is its name.
    metrics = {("learned" if name == "scheme" else name): value for name, value in run.metrics.items()}
    return run.config.to_dict() | metrics | own


def bundle(results: Sequence[RunResult]) -> str:
    """The text of the file that ships in the package, one line a run.

    Example:
        >>> from posembed import RunConfig, RunResult
        >>> from posembed.experiments import bundle
        >>> len(bundle([RunResult(RunConfig(), {}, {}, "a machine", 1.0)]).splitlines())
        3
    """
    runs = sorted(results, key=lambda result: result.config.key)
    lines = [json.dumps({"format": FORMAT, **run.to_dict()}, separators=(",", ":")) for run in runs]
    return "[\n" + ",\n".join(lines) + "\n]\n"
