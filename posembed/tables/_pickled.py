"""One tensor of a checkpoint that torch.save wrote, without the rest, and only through torch's weights-only loader.

Such a file is a zip archive: ``data.pkl`` is a pickle that describes the tensors, and ``data/0``, ``data/1``, ... hold
their numbers. torch.load is given a copy of the archive in which those records are empty, on the meta device, where
tensors have a shape and no numbers; where a tensor's empty record stands in the copy
(``untyped_storage()._checkpoint_offset``, which torch's GPUDirect tutorial documents) says which record is its own.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import CheckpointError
from ._bytes import ByteSource, LocalFile, lfs_pointer
from ._floats import checked_kind, item_size, kind_of, widen, widened
from ._names import printable
from ._weights import Entry
from ._zip import Archive

# The pickle of a large model has some 100 kB; each of its bytes may cost a hundred in memory.
LARGEST_PICKLE = 4 * 2**20
# How deep dictionaries may be nested: {"state_dict": {"model": {...}}}.
DEEPEST = 8


@dataclass(frozen=True)
class _View:
    """Which numbers of which record a tensor is."""

    key: str
    start: int
    strides: tuple[int, ...]  # torch refuses negative ones

    def span(self, shape: tuple[int, ...]) -> int:
        """How many of the record's numbers lie between its first and its last."""
        return 1 + sum((size - 1) * stride for size, stride in zip(shape, self.strides, strict=True))


class PickledFile:
    """The tensors of one file of torch.save, by name; those in nested dictionaries as "outer.inner".

    Args:
        source: the file. The old format, without a zip archive, can only be loaded whole, so from this machine.

    Raises:
        CheckpointError: no such file, or a damaged one, or one that asks for more than weights.
    """

    def __init__(self, source: ByteSource):
        self._source = source
        self.entries: dict[str, Entry] = {}
        self._views: dict[str, _View] = {}
        self._whole: dict[str, Tensor] = {}
        archive = Archive.of(source)
        if archive is None:
            self._load_whole()
        else:
            self._describe(archive)

    def read(self, name: str) -> Tensor:
        """Return one tensor; only its own bytes are read, where the file is a zip archive."""
        entry, what = self.entries[name], f"{printable(name)} in {self._source.name}"
        checked_kind(entry.kind, what)
        if name in self._whole:
            return widened(self._whole[name])
        view, size = self._views[name], item_size(entry.kind)
        span = view.span(entry.shape)
        record = self._archive.records.get(f"data/{view.key}")
        if record is None or (view.start + span) * size > record.size:
            raise CheckpointError(f"{what} is not all there: the file is damaged or was not copied in full")
        data = self._archive.read(record, view.start * size, (view.start + span) * size)
        numbers = widen(data, entry.kind, big_endian=self._big_endian)
        return numbers.as_strided(entry.shape, view.strides).contiguous()

    def _describe(self, archive: Archive) -> None:
        self._archive, file = archive, self._source.name
        if "constants.pkl" in archive.records:
            raise CheckpointError(f"{file} is a TorchScript program, not weights; save its state_dict with torch.save")
        pickle, order = archive.records.get("data.pkl"), archive.records.get("byteorder")
        if pickle is None:
            raise CheckpointError(f"{file} is a zip archive without a data.pkl, so torch.save did not write it")
        if pickle.size > LARGEST_PICKLE:
            raise CheckpointError(f"{file} describes its tensors in {pickle.size:,} bytes; no checkpoint needs as many")
        # torch writes one behind the other, so both come with one read; before torch 2.1 it wrote no byte order.
        description, *written = archive.read_all([pickle] if order is None else [pickle, order])
        if written not in ([], [b"little"], [b"big"]):
            raise CheckpointError(f"{file} is damaged: its byte order is neither little nor big")
        self._big_endian = written == [b"big"]
        keys = [name[5:] for name in archive.records if re.fullmatch(r"data/[0-9]{1,20}", name)]
        for name, tensor, key in _described(description, keys, file):
            self._add(name, tensor, key)

    def _add(self, name: str, tensor: Tensor, key: str) -> None:
        view = _View(key, int(tensor.storage_offset()), tensor.stride())
        shape, kind = tuple(tensor.shape), kind_of(tensor)
        if name in self.entries:
            raise CheckpointError(f"{self._source.name} holds two tensors called {name!r:.150}")
        # An expanded tensor repeats its numbers: little in the file may be more than memory can hold.
        if 0 < tensor.numel() <= view.span(shape) and not tensor.is_neg():
            self._views[name] = view
            self.entries[name] = Entry(name, shape, kind, self._source.name, view)

    def _load_whole(self) -> None:
        source = self._source
        start = source.read(0, min(64, source.size))
        if lfs_pointer(start):
            raise CheckpointError(f"{source.name} is a pointer of Git LFS, not the weights; run `git lfs pull` first")
        if start[:1] != b"\x80":
            raise CheckpointError(f"{source.name} is damaged, was not copied in full, or is no file of torch.save")
        if not isinstance(source, LocalFile):
            raise CheckpointError(
                f"{source.name} is in torch's old format, which cannot be read in part; to download all of its "
                f"{source.size:,} bytes, call load_table(..., download=True)"
            )
        found = _loaded(source.path, source.name, "cpu")
        source.bytes_read = max(source.bytes_read, source.size)
        for name, tensor in _tensors(found):
            storage = _storage(tensor)
            if storage is not None:
                self._add(name, tensor, str(storage.data_ptr()))
                self._whole[name] = tensor


def _described(pickle: bytes, keys: list[str], file: str) -> Iterator[tuple[str, Tensor, str]]:
    """Yield each tensor's name, the tensor without its numbers, and the key of the record that holds them."""
    # The one call a weights-only pickle may make that takes as much memory as it likes.
    if b"\nbytearray\n" in pickle:
        raise CheckpointError(f"{file} is refused: its pickle makes a bytearray, which is no part of weights")
    copy = io.BytesIO()
    with zipfile.ZipFile(copy, "w") as archive:
        archive.writestr("archive/data.pkl", pickle)
        archive.writestr("archive/version", "3\n")
        for key in keys:
            archive.writestr(f"archive/data/{key}", b"")
        # zipfile gives these small records no extra field: their data begins behind the header and the name.
        begins: dict[int | None, str] = {
            info.header_offset + 30 + len(info.filename): info.filename for info in archive.infolist()
        }
    copy.seek(0)
    for name, tensor in _tensors(_loaded(copy, file, "meta")):
        record = begins.get(getattr(_storage(tensor), "_checkpoint_offset", None))
        if record is not None:
            yield name, tensor, record.removeprefix("archive/data/")


def _storage(tensor: Tensor) -> Any:
    """The tensor's storage; None for a sparse or nested tensor, which has several."""
    return tensor.untyped_storage() if tensor.layout == torch.strided and not tensor.is_nested else None


def _loaded(source: Any, file: str, device: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a pickle protocol that torch did not expect: it reads or it does not
            return torch.load(source, map_location=device, weights_only=True)
    except Exception as error:  # the loader meets whatever the file makes it do
        raise CheckpointError(f"{file} is refused: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    # torch's own message advises to load the file without the weights-only loader: never that.
    text = str(error)
    wanted = re.search(r"GLOBAL (\S+) (was not an allowed global|whose module)", text)
    if wanted:
        return f"it asks for {wanted[1]:.100}, which is no part of weights (and was not run); save its state_dict alone"
    words = text.partition("WeightsUnpickler error:")[2] if text.startswith("Weights only load failed") else text
    first = (words.strip() or type(error).__name__).splitlines()[0]
    return f"torch cannot read it as weights ({first:.200})"


def _tensors(found: Any) -> Iterator[tuple[str, Tensor]]:
    """Walk through dictionaries in dictionaries, each once: a pickle can put one into itself."""
    seen: set[int] = set()

    def walk(value: Any, name: str, depth: int) -> Iterator[tuple[str, Tensor]]:
        if isinstance(value, Tensor):
            yield name, value
        elif isinstance(value, dict) and depth < DEEPEST and id(value) not in seen:
            seen.add(id(value))
            for key, each in value.items():
                if isinstance(key, str):
                    yield from walk(each, f"{name}.{key}" if name else key, depth + 1)

    return walk(found, "", 0)
