"""The tensors in files of weights, each read when it is needed: of safetensors, and of torch.save by its safe loader.

A file of torch.save is a zip archive: ``data.pkl`` is a pickle that describes the tensors, and ``data/0``, ``data/1``,
... hold their numbers. torch.load (weights only: nothing in the pickle is run) is given a copy of the archive in which
those records are empty, on the meta device, where tensors have a shape and no numbers. Where a tensor's empty record
stands in the copy (``untyped_storage()._checkpoint_offset``, which torch's GPUDirect tutorial documents) says which
record is its own.
"""

from __future__ import annotations

import io
import json
import operator
import re
import warnings
import zipfile
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..errors import CheckpointError, CheckpointNotFoundError
from ._files import LARGEST_TABLE, WEIGHT_ENDINGS, WEIGHT_FILES, CheckpointFiles, File, understood

# The pickle of a large model has some 100 kB; each of its bytes may cost a hundred in memory.
LARGEST_PICKLE = 2**22
# How deep dictionaries may be nested: {"state_dict": {"model": {...}}}.
DEEPEST = 8
_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


@dataclass(frozen=True)
class Entry:
    """A tensor that was not read yet.

    Attributes:
        name: in the file.
        shape: its sizes.
        kind: what its numbers are: "float32", "bfloat16", "int8".
        place: where its numbers stand: the same for tensors that are one and the same.
        read: returns it, in the kind in which it is stored.
        file: the file's name, None for what is in memory.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    place: Hashable
    read: Callable[[], Tensor]
    file: str | None = None


@dataclass
class Tensors:
    """The tensors of a checkpoint or of a model by their names; of shards, each is opened when it is needed.

    Attributes:
        seen: those of which the shape is known.
        shards: the file of each tensor, where there are several.
        files: where those are.
        schemes: those that are tables whatever they are called.
    """

    seen: dict[str, Entry]
    shards: Mapping[str, str] = field(default_factory=dict)
    files: CheckpointFiles | None = None
    schemes: Collection[str] = ()

    @property
    def names(self) -> Collection[str]:
        """Every tensor's name."""
        return self.shards.keys() or self.seen.keys()

    def __getitem__(self, name: str) -> Entry:
        if name not in self.seen and self.files is not None:
            file = self.files.open(self.shards[name])
            self.seen |= entries_of(file) if file else {}
        if name not in self.seen:
            raise CheckpointError(f"{name!r:.150} should be in {self.shards[name]}, which is not there or lacks it")
        return self.seen[name]


def open_checkpoint(files: CheckpointFiles) -> Tensors:
    """Open the weights of a checkpoint, in one file or in shards.

    Raises:
        CheckpointNotFoundError: it has none under a name that is known.
        CheckpointError: the weights are damaged, or several files may hold them.
    """
    for name in files.candidates():
        if (file := files.open(name)) is not None:
            return Tensors({}, _shards(file), files) if name.endswith(".json") else Tensors(entries_of(file))
    looked_for = f"{', '.join(WEIGHT_FILES)}, nor on this machine a file that ends in {', '.join(WEIGHT_ENDINGS)}"
    raise CheckpointNotFoundError(f"{files.source} holds no weights that can be read: no {looked_for}")


def _shards(index: File) -> dict[str, str]:
    shards = index.json().get("weight_map")
    # Nothing that leads out of the checkpoint's folder.
    named = dict(shards) if isinstance(shards, dict) else {}
    names = named.values()
    if not names or not all(isinstance(name, str) and re.fullmatch(r"(?!\.)[\w.-]{1,200}", name) for name in names):
        raise CheckpointError(f"{index.name} has no weight_map that says which file beside it holds which tensor")
    return named


def entries_of(file: File) -> dict[str, Entry]:
    """Describe the tensors of a file, of which its first bytes tell the format."""
    with understood(file.name):
        start = file.part(0, min(9, file.size))
        if start == b"version h":
            raise CheckpointError(f"{file.name} is a pointer of Git LFS, not the weights; run `git lfs pull` first")
        if start.startswith(b"PK"):
            return _of_zip(file)
        if start.startswith(b"\x80") and start[8:] != b"{":
            return _of_old_pickle(file)
        return _of_safetensors(file)


def _of_safetensors(file: File) -> dict[str, Entry]:
    """Eight bytes with the length of a JSON header, the header, and the tensors' bytes one after the other.

    The format: https://github.com/huggingface/safetensors. What the header claims of a tensor is checked when it is
    read, before memory is taken for it.
    """
    start, entries, ends = 8 + int.from_bytes(file.part(0, 8), "little"), {}, [0]
    header = json.loads(file.part(8, start))
    header.pop("__metadata__", None)
    for name, claims in header.items():
        shape, (begin, end) = tuple(map(operator.index, claims["shape"])), claims["data_offsets"]
        dtype = _DTYPES.get(kind := str(claims["dtype"]))
        ends.append(end)

        def read(begin: int = begin, end: int = end, shape: tuple[int, ...] = shape, dtype: Any = dtype) -> Tensor:
            data = bytearray(file.part(start + begin, start + end, LARGEST_TABLE))
            return torch.frombuffer(data, dtype=dtype).reshape(shape)

        entries[name] = Entry(name, shape, kind_of(dtype) if dtype else kind, (begin, end), read, file.name)
    if start + max(ends) != file.size:
        raise ValueError("its tensors do not end where it does")
    return entries


def _of_zip(file: File) -> dict[str, Entry]:
    archive = zipfile.ZipFile(file)
    names = archive.namelist()
    folder = names[0].partition("/")[0]
    if f"{folder}/byteorder" in names and _record(archive, file, f"{folder}/byteorder", 99) != b"little":
        raise CheckpointError(f"{file.name} was written on a big-endian machine; save it again on one like this")
    records = sorted({name for name in names if re.fullmatch(re.escape(folder) + r"/data/[0-9]{1,20}", name)})
    copy = io.BytesIO()
    with zipfile.ZipFile(copy, "w") as emptied:
        emptied.writestr(f"{folder}/data.pkl", _record(archive, file, f"{folder}/data.pkl", LARGEST_PICKLE))
        emptied.writestr(f"{folder}/version", "3\n")
        for record in records:
            emptied.writestr(record, b"")
        # zipfile gives these small records no extra field: their data begins behind the header and the name.
        begins = {info.header_offset + 30 + len(info.filename.encode()): info.filename for info in emptied.infolist()}
    copy.seek(0)
    entries = {}
    for name, tensor in _tensors(_loaded(copy, file, "meta")):
        record = begins.get(getattr(tensor.untyped_storage(), "_checkpoint_offset", 0), "")
        shape, strides, start = tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset())
        span = 1 + sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))
        # An expanded tensor repeats its numbers: little in the file may be more than memory can hold.
        if record and 0 < tensor.numel() <= span and not tensor.is_neg():
            read = partial(_numbers, archive, file, record, tensor, span)
            entries[name] = Entry(name, shape, kind_of(tensor.dtype), (record, start, strides), read, file.name)
    return entries


def _numbers(archive: zipfile.ZipFile, file: File, record: str, tensor: Tensor, span: int) -> Tensor:
    """The numbers of a tensor of which `span` of a record are a part."""
    data = bytearray(_record(archive, file, record, LARGEST_TABLE))
    begin = int(tensor.storage_offset()) * tensor.itemsize
    numbers = torch.frombuffer(data, dtype=tensor.dtype, count=span, offset=begin)
    return numbers.as_strided(tensor.shape, tensor.stride())


def _record(archive: zipfile.ZipFile, file: File, name: str, most: int) -> bytes:
    """Return a record of an archive; what the archive claims of it is checked before memory is taken for it."""
    info, file.most = archive.getinfo(name), most
    if info.compress_type != zipfile.ZIP_STORED or max(info.file_size, info.compress_size) > min(most, file.size):
        raise CheckpointError(f"{file.name} is refused: {name!r:.150} is compressed or far too large")
    return archive.read(info)


def _of_old_pickle(file: File) -> dict[str, Entry]:
    if file.local is None:
        raise CheckpointError(
            f"{file.name} is in torch's old format, which cannot be read in part; to download all of its "
            f"{file.size:,} bytes, call load_table(..., download=True)"
        )
    found, file.bytes_read = _tensors(_loaded(file.local, file, "cpu")), file.size
    return {
        name: Entry(name, tuple(each.shape), kind_of(each.dtype), each.data_ptr(), partial(each.clone), file.name)
        for name, each in found
    }


def _loaded(source: Any, file: File, device: str) -> Any:
    # The one call a weights-only pickle may make that takes as much memory as it likes.
    if isinstance(source, io.BytesIO) and b"\nbytearray\n" in source.getvalue():
        raise CheckpointError(f"{file.name} is refused: its pickle makes a bytearray, which is no part of weights")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a pickle protocol that torch did not expect: it reads or it does not
            return torch.load(source, map_location=device, weights_only=True)
    except Exception as error:
        # torch's own message advises to load the file without the weights-only loader: never that.
        wanted = re.search(r"GLOBAL (\S+) (was not an allowed global|whose module)", str(error))
        what = f"it asks for {wanted[1]:.100}, which is no part of weights and was not run" if wanted else "damaged"
        raise CheckpointError(f"{file.name} is refused by torch's weights-only loader: {what}") from error


def _tensors(found: Any) -> Iterator[tuple[str, Tensor]]:
    """Walk through dictionaries in dictionaries, each once: a pickle can put one into itself."""
    seen: set[int] = set()

    def walk(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Tensor]]:
        if isinstance(value, Tensor) and value.layout == torch.strided and not value.is_nested:
            yield ".".join(path), value
        elif isinstance(value, dict) and len(path) < DEEPEST and id(value) not in seen:
            seen.add(id(value))
            for key, each in value.items():
                if isinstance(key, str):
                    yield from walk(each, (*path, key))

    return walk(found, ())


def kind_of(dtype: torch.dtype) -> str:
    """The name of a dtype: "float32"."""
    return str(dtype).removeprefix("torch.")
