"""The files of a checkpoint, of which only the needed parts are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fsspec.spec import AbstractBufferedFile

from ..errors import CheckpointError, PosembedError
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
# Bytes of a header, a config, an index or a zip's directory: those of the largest checkpoints have some megabytes.
LARGEST_TEXT = 2**24
# A larger table is refused before it is read: 65,536 positions of 1,024 numbers of four bytes. In memory it takes five
# times as much while it is read.
LARGEST_TABLE = 2**28
# What is read at once: a request costs more than this many bytes.
BLOCK = 2**16


class File(AbstractBufferedFile):
    """A file of a checkpoint, seekable, which counts and bounds what is read of it.

    Args:
        name: for messages.
        size: in bytes.
        fetch: gives the bytes from one place to another.
        path: where it is on this machine, None where it is not.
    """

    def __init__(self, name: str, size: int, fetch: Callable[[int, int], bytes], path: Path | None = None):
        super().__init__(None, name, block_size=BLOCK, cache_type="readahead", size=size)
        self.name, self.local, self._fetch = printable(name), path, fetch
        self.bytes_read, self.most = 0, LARGEST_TEXT

    def part(self, start: int, stop: int, most: int = LARGEST_TEXT) -> bytes:
        """Return exactly these bytes; nothing is read where the file has not so many or a checkpoint needs no more."""
        if not 0 <= start <= stop <= self.size:
            raise CheckpointError(
                f"{self.name} is damaged or was not copied in full: it has {self.size:,} bytes, and {stop:,} are needed"
            )
        self.most = most
        self.seek(start)
        return bytes(self.read(stop - start))

    def json(self) -> dict[str, Any]:
        """Return the JSON object that the file is."""
        with understood(self.name):
            found = json.loads(self.part(0, self.size))
            if not isinstance(found, dict):
                raise ValueError(f"it holds a JSON {type(found).__name__}, not an object")
            return found

    def _fetch_range(self, start: int, end: int) -> bytes:
        if end - start > self.most + BLOCK:
            raise CheckpointError(f"{self.name} claims {end - start:,} bytes where no checkpoint needs as many")
        data = self._fetch(start, end)
        self.bytes_read += len(data)
        if len(data) < end - start:
            raise CheckpointError(f"{self.name} ended at byte {start + len(data):,} while it was read")
        return data


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Say of a file that somebody else wrote that it cannot be read, whatever it makes its reader do."""
    try:
        yield
    except PosembedError:
        raise
    except Exception as error:
        if isinstance(error.__context__, PosembedError):
            raise error.__context__ from None  # zipfile takes a hub that breaks off for a file that is no archive
        if isinstance(error, OSError) and error.strerror:
            raise CheckpointError(f"{what} cannot be read ({error.strerror})") from error
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise CheckpointError(f"{what} cannot be read; it may be damaged or incomplete ({reason:.200})") from error


class CheckpointFiles:
    """The files of a checkpoint on this machine: of a folder, or one file of weights. Those of the hub inherit from it.

    A single file is read with the config.json beside it only where it has one of the names under which checkpoints are
    kept: in a folder of downloads, a config.json may be of another model.

    Attributes:
        source: what the user gave, as text.
        revision: the commit, of a checkpoint on the hub; the wheel, of one that was installed.
    """

    def __init__(self, source: str, path: Path = Path(), revision: str | None = None):
        self.source, self._path, self._opened = printable(source), path, list[File]()
        self.revision = revision
        if not path.is_file() and not path.is_dir():
            raise CheckpointError(f"{self.source} is neither a file nor a folder")

    @property
    def bytes_read(self) -> int:
        """Bytes moved so far, over all files."""
        return sum(file.bytes_read for file in self._opened)

    def open(self, filename: str) -> File | None:
        """Return a file by its name in the checkpoint, None where there is none."""
        file = self.find(filename)
        self._opened += [file] if file else []
        return file

    def find(self, filename: str) -> File | None:
        """Open a file of this name, wherever it is."""
        return local_file(self._path / filename if self._path.is_dir() else self._path.with_name(filename))

    def config(self) -> dict[str, Any]:
        """Return config.json, empty where there is none."""
        own = self._path.is_dir() or self._path.name.startswith(("model", "pytorch_model"))
        file = self.open("config.json") if own else None
        return file.json() if file else {}

    def candidates(self) -> list[str]:
        """The names under which weights may be, the best first."""
        if self._path.is_file():
            return [self._path.name]
        there = sorted(file.name for file in self._path.iterdir() if file.name.endswith(WEIGHT_ENDINGS))
        usual = [name for name in WEIGHT_FILES if (self._path / name).is_file()]
        if len(there) > 1 and not usual:
            listed = ", ".join(there[:8])
            raise CheckpointError(f"{self.source} holds several files of weights; give the path of one: {listed}")
        return usual or there


def local_file(path: Path) -> File | None:
    """Open a file on this machine; None where there is no ordinary one. Pipes and devices may never end."""

    def fetch(start: int, stop: int) -> bytes:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(stop - start)

    return File(path.name, path.stat().st_size, fetch, path) if path.is_file() else None
