"""Where a checkpoint's bytes come from: one interface for local files and for the hub."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ..errors import CheckpointError
from ._json import parse_object
from ._names import printable

# The names under which transformers and the hub keep weights, in the order of preference.
WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
# How weights' files may end, in a folder that has none of those names.
WEIGHT_ENDINGS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt")
_SHARD = re.compile(r"(model|pytorch_model)-\d+-of-\d+\.(safetensors|bin)")
# A config is a few kilobytes, the index of the largest checkpoints some megabytes.
LARGEST_JSON = 32 * 2**20


@runtime_checkable
class ByteSource(Protocol):
    """A file of which parts can be read."""

    @property
    def name(self) -> str:
        """The file's name, for messages."""

    @property
    def size(self) -> int:
        """Bytes in the whole file."""

    @property
    def bytes_read(self) -> int:
        """Bytes moved so far."""

    def read(self, start: int, stop: int) -> bytes:
        """Return exactly the bytes from start to stop, or raise CheckpointError or CheckpointNotFoundError."""


@runtime_checkable
class CheckpointFiles(Protocol):
    """The files of one checkpoint."""

    @property
    def source(self) -> str:
        """What the user gave, as text."""

    @property
    def revision(self) -> str | None:
        """The commit, of a checkpoint on the hub."""

    @property
    def bytes_read(self) -> int:
        """Bytes moved so far, over all files."""

    def config(self) -> dict[str, Any] | None:
        """Return config.json, None where there is none."""

    def open(self, filename: str) -> ByteSource | None:
        """Return a file by its name in the checkpoint, None where there is none."""

    def keep(self) -> None:
        """Keep what was read for the next time, where that saves anything: the table is whole."""


def checked_filename(filename: str) -> str:
    """Return the name again if it names a file inside a checkpoint.

    Raises:
        CheckpointError: the name could lead out of the checkpoint: it is absolute, holds `..`, a backslash, a colon or
            a control character, or is empty.
    """
    parts = filename.split("/")
    if any(part in ("", ".", "..") for part in parts) or not filename.isprintable() or set(filename) & set("\\:"):
        raise CheckpointError(f"{filename[:200]!r} cannot be the name of a file inside a checkpoint")
    return filename


def read_json(file: ByteSource) -> dict[str, Any]:
    """Read a whole JSON file of a checkpoint.

    Raises:
        CheckpointError: it is too large to be what it is called, or holds no JSON object.
    """
    if file.size > LARGEST_JSON:
        raise CheckpointError(f"{file.name} has {file.size:,} bytes, too many for a file that describes a checkpoint")
    return parse_object(file.read(0, file.size), file.name)


def lfs_pointer(start: bytes) -> bool:
    """Whether a file that begins so is what Git leaves in the place of a large file that it did not fetch."""
    return start.startswith(b"version https://git-lfs")


def unreadable(path: Path, error: OSError) -> CheckpointError:
    """The error for a file or folder that the system does not let us read."""
    return CheckpointError(f"{printable(str(path))} cannot be read: {error.strerror or error}")


class LocalFile:
    """A file on this machine, read in parts.

    Args:
        path: of an ordinary file; links are followed.

    Raises:
        CheckpointError: it cannot be read.
    """

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self.name = printable(self.path.name)
        self.bytes_read = 0
        try:
            self.size = self.path.stat().st_size
        except OSError as error:
            raise unreadable(self.path, error) from error

    def read(self, start: int, stop: int) -> bytes:
        """Return exactly the bytes from start to stop."""
        if not 0 <= start <= stop <= self.size:
            raise CheckpointError(f"{self.name} has {self.size:,} bytes; bytes {start:,} to {stop:,} were asked for")
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                data = file.read(stop - start)
        except OSError as error:
            raise unreadable(self.path, error) from error
        self.bytes_read += len(data)
        if len(data) < stop - start:
            raise CheckpointError(f"{self.name} ended at byte {start + len(data):,} while it was read")
        return data


class LocalCheckpoint:
    """A checkpoint on this machine: a folder, or one file of weights.

    A single file is read with the config.json beside it only where it has one of the names under which checkpoints are
    kept: in a folder of downloads, a config.json may be of another model.

    Args:
        path: the folder or file.
        source: what to call it, by default the path.

    Raises:
        CheckpointError: neither: a pipe, a device.
    """

    revision: str | None = None

    def __init__(self, path: Path | str, source: str | None = None):
        self.path = Path(path)
        self.source = printable(str(path) if source is None else source)
        self.single = not self.path.is_dir()
        if self.single and not self.path.is_file():
            raise CheckpointError(f"{self.source} is neither a file nor a folder")
        self._opened: list[LocalFile] = []

    @property
    def bytes_read(self) -> int:
        """Bytes read so far, over all files."""
        return sum(file.bytes_read for file in self._opened)

    def config(self) -> dict[str, Any] | None:
        """Return config.json, None where there is none."""
        if self.single and not (self.path.name in WEIGHT_FILES or _SHARD.fullmatch(self.path.name)):
            return None
        file = self._open(self._folder / "config.json")
        return None if file is None else read_json(file)

    def open(self, filename: str) -> LocalFile | None:
        """Return a file by its name, None where there is none."""
        if self.single and filename == self.path.name:  # the user's choice, whatever its name
            return self._open(self.path)
        return self._open(self._folder / checked_filename(filename))

    def keep(self) -> None:
        """Do nothing: what is here needs no cache."""

    def weight_files(self) -> list[str]:
        """List the files that may hold weights, by name: the one given, or all of the folder's."""
        if self.single:
            return [self.path.name]
        try:
            names = sorted(file.name for file in self.path.iterdir() if file.is_file())
        except OSError as error:
            raise unreadable(self.path, error) from error
        return [name for name in names if name in WEIGHT_FILES or name.endswith(WEIGHT_ENDINGS)]

    @property
    def _folder(self) -> Path:
        return self.path.parent if self.single else self.path

    def _open(self, path: Path) -> LocalFile | None:
        try:
            there = path.is_file()
        except OSError as error:
            raise unreadable(path, error) from error
        # Neither folders nor pipes and devices, which may never end.
        if not there:
            return None
        self._opened.append(LocalFile(path))
        return self._opened[-1]
