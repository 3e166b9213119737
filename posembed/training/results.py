"""What a run gave, and results as files: one JSON a run, named by its config, written whole or not at all."""

from __future__ import annotations

import gzip
import json
import math
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..errors import RunError, shown
from ..public import public
from ..serialization import Record, each_once
from .config import RunConfig

FORMAT = 1


@dataclass(frozen=True, repr=False)
class RunResult(Record):
    """What a run gave.

    Attributes:
        config: the run.
        metrics: what was measured; losses are in nats a guessed token.
        versions: of the packages that matter.
        machine: kind and number of threads, or the GPU.
        wall_seconds: how long it took.
        model: the trained model, where it was trained in this process; it is not stored with the result.
        speed: what depends on the machine: ``tokens_per_second`` and ``training_seconds`` of the training alone.

    Example:
        >>> from posembed import RunConfig, RunResult
        >>> RunResult(RunConfig(), {"loss": 2.0}, {}, "a machine", 90.0).minutes
        1.5
    """

    config: RunConfig
    metrics: dict[str, Any]
    versions: dict[str, str]
    machine: str
    wall_seconds: float
    model: Any = field(default=None, compare=False, repr=False)
    speed: dict[str, float] = field(default_factory=dict)

    @property
    def minutes(self) -> float:
        """How long it took."""
        return self.wall_seconds / 60

    def to_dict(self) -> dict[str, Any]:
        """Return what a JSON file holds."""
        stored = {
            "config": self.config.to_dict(),
            "metrics": self.metrics,
            "versions": self.versions,
            "machine": self.machine,
            "wall_seconds": round(self.wall_seconds, 1),
        }
        # Results of earlier versions have none, and stay as they are.
        return stored | ({"speed": self.speed} if self.speed else {})

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RunResult:
        """Make the result that `to_dict` was called on, without the model.

        Raises:
            TypeError: a part that is not of its kind, such as metrics that are no mapping.
        """
        return cls(**{**values, "config": RunConfig.from_dict(values["config"])})


@public(RunError)
def file_of(config: RunConfig, folder: Path | str, ending: Literal["json", "safetensors", "npy", "checkpoint"]) -> Path:
    """Where a run has its result (json), its model's weights, its position table (npy), its state while unfinished."""
    return Path(folder) / f"{config.key}.{ending}"


def checked_folder(folder: Any) -> Path:
    """Return a folder that is there as a path, or raise RunError."""
    if not (path := Path(folder)).is_dir():
        what = f"{path.name} is a file" if path.is_file() else f"there is no folder {shown(str(path))}"
        raise RunError(f"{what}; give the folder of the results")
    return path


@public(RunError)
def write_result(result: RunResult, folder: Path | str) -> Path:
    """Write a result under the name of its config; who reads at the same time sees the whole file or none.

    Args:
        result: its model is not written.
        folder: is made if need be.

    Returns:
        The path of the file.

    Raises:
        RunError: what is no result or no folder.
        OSError: the folder cannot be written, or the disk is full; nothing half-written stays.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed import RunConfig, RunResult
        >>> from posembed.training import read_results, write_result
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

    Args:
        path: of the file; what stands there is replaced.
        content: of the file.

    Returns:
        The path.

    Raises:
        OSError: the folder cannot be written, or the disk is full; nothing half-written stays.
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


@public(RunError)
def read_result(path: Path | str) -> RunResult:
    """Read one result.

    Args:
        path: of its JSON file.

    Raises:
        RunError: a file that is damaged, of a newer format, or under another config's name.

    Example:
        >>> from posembed.training import read_result
        >>> read_result("no-such-file.json")
        Traceback (most recent call last):
        posembed.errors.RunError: no-such-file.json cannot be read (No such file or directory)
    """
    path = Path(path)
    result = read_json(path, parse_result, "move it away and run its config again")
    if path.stem != result.config.key:
        raise RunError(f"{path.name} holds the run {result.config.key}; give it that name or move it away")
    return result


def read_json(path: Path, parse: Callable[[Any], Any], advice: str) -> Any:
    """Parse a stored JSON file, packed by gzip where its name ends in .gz.

    Args:
        path: of the file.
        parse: makes of its values what it holds.
        advice: what to do where it is damaged.

    Raises:
        RunError: it cannot be read, is damaged, or `parse` refuses it.
    """
    try:
        content = path.read_bytes()
        text = gzip.decompress(content) if path.suffix == ".gz" else content
        return parse(json.loads(text, object_pairs_hook=each_once))
    except RunError as error:
        raise RunError(f"{path.name}: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, EOFError, zlib.error, gzip.BadGzipFile):
        raise RunError(f"{path.name} is damaged, or of another kind; {advice}") from None
    except OSError as error:
        raise RunError(f"{path.name} cannot be read ({error.strerror})") from None


def of_format(values: Mapping[str, Any], known: int) -> dict[str, Any]:
    """What a file holds beside its format.

    Raises:
        RunError: the format is another one; guessing at its meaning could give a wrong number.
    """
    kept = dict(values)
    if (found := kept.pop("format")) != known:
        raise RunError(f"it has format {found!r}, this version of posembed reads {known}; upgrade posembed")
    return kept


def parse_result(values: dict[str, Any]) -> RunResult:
    """Make a result of what a file holds.

    Args:
        values: of the JSON.

    Raises:
        RunError: a newer format, or settings that this version has not.
        ValueError: or KeyError, TypeError, AttributeError: it is not what a run gave.
    """
    result = RunResult.from_dict(of_format(values, FORMAT))
    # Beside lists and mappings metrics hold losses, shares and counts.
    measured = [
        each
        for name, each in result.metrics.items()
        # A perplexity was stored as infinity once, where a text has hardly any blanks between its words.
        if type(each) in (int, float) and not (name.startswith("perplexity") and each == math.inf)
    ]
    numbers = (result.metrics["loss"], result.wall_seconds, *result.speed.values(), *measured)
    if not all(type(each) in (int, float) and 0 <= each < math.inf for each in numbers):
        raise ValueError("not what a run gives")
    return result


@public(RunError)
def read_results(folder: Path | str) -> list[RunResult]:
    """Read all results of a folder, in the order of their names.

    Args:
        folder: of `write_result`.

    Raises:
        RunError: a folder that is not there, or a file in it that `read_result` refuses.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed.training import read_results
        >>> read_results(mkdtemp())
        []
    """
    return [read_result(path) for path in sorted(checked_folder(folder).glob("*.json"))]


def results_of(configs: Iterable[RunConfig], folder: Path | str) -> list[RunResult]:
    """Read the results of those configs that have one in a folder."""
    paths = [file_of(config, folder, "json") for config in configs]
    return [read_result(path) for path in paths if path.exists()]


def checked_configs(configs: Iterable[RunConfig]) -> list[RunConfig]:
    """Return what is given as a list, or raise RunError unless all are configs."""
    configs = list(configs)
    if wrong := [config for config in configs if not isinstance(config, RunConfig)]:
        raise RunError(f"{shown(wrong[0])} among the configs is no RunConfig; give a list of RunConfig")
    return configs


@public(RunError)
def missing(configs: Iterable[RunConfig], folder: Path | str) -> list[RunConfig]:
    """List the configs, each once, that have no result in a folder yet.

    Args:
        configs: the runs.
        folder: of the results.

    Raises:
        RunError: what is no config; a file that `read_result` refuses, which is left as it is.

    Example:
        >>> from posembed import RunConfig
        >>> from posembed.training import missing
        >>> len(missing([RunConfig(), RunConfig(), RunConfig(seed=1)], "no-such-folder"))
        2
    """
    unique = {config.key: config for config in checked_configs(configs)}
    done = {result.config.key for result in results_of(unique.values(), folder)}
    return [config for key, config in unique.items() if key not in done]
