"""What was read from the hub, kept by repository and commit."""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import numpy as np

COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass
class Pieces:
    """What is known of one file of a checkpoint.

    Attributes:
        size: bytes in the whole file, None where there is no such file.
        data: what was read of it, by where it begins. Pieces may overlap.
    """

    size: int | None
    data: dict[int, bytes] = field(default_factory=dict)

    def gaps(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Find the ranges between start and stop that no piece covers."""
        if start >= stop:
            return
        for begin, piece in sorted(self.data.items()):
            if begin > start:
                yield start, min(begin, stop)
            start = max(start, begin + len(piece))
            if start >= stop:
                return
        yield start, stop

    def joined(self, start: int, stop: int) -> bytes:
        """The bytes from start to stop, all of which must be there."""
        found = bytearray()
        for begin, piece in sorted(self.data.items()):
            found += piece[max(0, start + len(found) - begin) : max(0, stop - begin)]
        return bytes(found)


# The files of one commit, by their names in the repository.
Record = dict[str, Pieces]


def recall(repo_id: str, revision: str) -> tuple[str, Record, int] | None:
    """Return the commit that a revision stood for, what was read of it, and the bytes read for that from the disk.

    None where nothing was kept, or what was kept is damaged: a disk may lose bytes, and another program may write here.
    """
    try:
        commit = revision if COMMIT.fullmatch(revision) else _commit(repo_id, revision)
        data = _record_path(repo_id, commit).read_bytes()
        return commit, _unpacked(data, repo_id, commit), len(data)
    except Exception:  # whatever a damaged file makes safetensors, json or numpy raise
        return None


def keep(repo_id: str, revision: str, commit: str, record: Record) -> None:
    """Write what was read, or say in a warning why that cannot be: the table itself is not lost."""
    try:
        _write(_record_path(repo_id, commit), _packed(record, repo_id, commit))
        if revision != commit:
            _write(_revision_path(repo_id, revision), _signed(repo_id, revision, commit))
    except (OSError, RuntimeError) as error:  # a read-only or full disk, a user without a home
        reason = getattr(error, "strerror", None) or error
        warnings.warn(f"{repo_id} is not kept for the next time: {reason}", RuntimeWarning, stacklevel=5)


def cache_folder() -> Path:
    """Where it is kept: the folder tables in POSEMBED_CACHE, else in posembed's part of the user's cache."""
    if chosen := os.environ.get("POSEMBED_CACHE"):
        return Path(chosen).expanduser() / "tables"
    general = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(general).expanduser() / "posembed" / "tables"


def _folder(repo_id: str) -> Path:
    # No repository has two hyphens in its name.
    return cache_folder() / repo_id.replace("/", "--")


def _record_path(repo_id: str, commit: str) -> Path:
    return _folder(repo_id) / f"{commit}.safetensors"


def _revision_path(repo_id: str, revision: str) -> Path:
    return _folder(repo_id) / "revisions" / quote(revision, safe="")


def _commit(repo_id: str, revision: str) -> str:
    data = _revision_path(repo_id, revision).read_bytes()
    commit = data[:40].decode("ascii")
    if data != _signed(repo_id, revision, commit):
        raise ValueError("damaged")
    return commit


def _signed(repo_id: str, revision: str, commit: str) -> bytes:
    return f"{commit} {_digest([repo_id, revision, commit], [])}".encode()


def _packed(record: Record, repo_id: str, commit: str) -> bytes:
    from safetensors.numpy import save

    files = json.dumps({name: pieces.size for name, pieces in sorted(record.items())})
    arrays = {
        f"{name}@{begin}": np.frombuffer(piece, dtype=np.uint8)
        for name, pieces in record.items()
        for begin, piece in pieces.data.items()
    }
    about = {"repo_id": repo_id, "commit": commit, "files": files}
    return save(arrays, metadata=about | {"sha256": _digest(about.values(), _sorted(arrays))})


def _unpacked(data: bytes, repo_id: str, commit: str) -> Record:
    from safetensors.numpy import load

    length = int.from_bytes(data[:8], "little")
    about = json.loads(data[8 : 8 + length])["__metadata__"]
    arrays = load(data)
    if about["sha256"] != _digest([repo_id, commit, about["files"]], _sorted(arrays)):
        raise ValueError("damaged")
    record = {name: Pieces(size) for name, size in json.loads(about["files"]).items()}
    for key, array in arrays.items():
        name, _, begin = key.rpartition("@")
        record[name].data[int(begin)] = array.tobytes()
    return record


def _sorted(arrays: Mapping[str, np.ndarray]) -> list[tuple[str, np.ndarray]]:
    return sorted(arrays.items())


def _digest(words: Iterable[str], arrays: Iterable[tuple[str, np.ndarray]]) -> str:
    together = hashlib.sha256(json.dumps(list(words)).encode())
    for name, array in arrays:
        together.update(f"{name} {len(array)} ".encode() + array.tobytes())
    return together.hexdigest()


def _write(path: Path, data: bytes) -> None:
    """All or nothing: whoever reads finds the old file, none, or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
