"""Studies of position tables as files: one JSON a checkpoint, and those that ship with the package."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

from ...errors import RunError
from ..files.store import write_whole
from .record import TableStudy

# In a folder of its own: the files beside it hold runs.
STORED = Path("stored", "tables")


def stored_studies() -> dict[str, TableStudy]:
    """Read the studies that ship with the package, by the names of their checkpoints on the hub.

    Raises:
        RunError: one is damaged or of a newer format.

    Example:
        >>> from posembed.experiments import stored_studies
        >>> stored_studies()["gpt2"].stored
        True
    """
    return read_studies(Path(str(files("posembed.experiments"))) / STORED, stored=True)


def read_studies(folder: Path | str, *, stored: bool = False) -> dict[str, TableStudy]:
    """Read the studies of a folder, by their sources, in the order of the files' names.

    Args:
        folder: of `write_study`.
        stored: what they shall say of themselves: whether they come from the package.

    Raises:
        RunError: one is damaged, of a newer format, or under another's name.

    Example:
        >>> from posembed.experiments import read_studies
        >>> read_studies("no-such-folder")
        {}
    """
    studies = [_read(path, stored) for path in sorted(Path(folder).glob("*.json"))]
    return {study.source: study for study in studies}


def _read(path: Path, stored: bool) -> TableStudy:
    try:
        study = TableStudy.from_dict(json.loads(path.read_text(encoding="utf-8")), stored=stored)
    except OSError as error:
        raise RunError(f"{path.name} cannot be read ({error.strerror})") from None
    except ValueError as error:
        reason = str(error) if isinstance(error, RunError) else "it is no JSON; measure the table again"
        raise RunError(f"{path.name}: {reason}") from None
    if path.name != _file_name(study.source):
        raise RunError(f"{path.name} holds the study of {study.source}; name it {_file_name(study.source)}")
    return study


def write_study(study: TableStudy, folder: Path | str) -> Path:
    """Write a study under the name of its source; who reads at the same time sees the whole file or none.

    Raises:
        OSError: the folder cannot be written, or the disk is full; nothing half-written stays.

    Example:
        >>> from tempfile import mkdtemp
        >>> from posembed.experiments import read_studies, stored_studies, write_study
        >>> folder, study = mkdtemp(), stored_studies()["gpt2"]
        >>> write_study(study, folder).name
        'gpt2.json'
        >>> read_studies(folder, stored=True) == {"gpt2": study}
        True
    """
    text = json.dumps(study.to_dict(), separators=(",", ":"))
    return write_whole(Path(folder) / _file_name(study.source), f"{text}\n".encode())


def _file_name(source: str) -> str:
    return re.sub(r"[^\w.-]+", "--", source) + ".json"
