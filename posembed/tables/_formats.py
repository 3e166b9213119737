"""The tensors in files of weights, each read when it is needed: of safetensors, and of torch.save, without torch.load.

A file of torch.save is a zip archive: ``data.pkl`` is a pickle that describes the tensors, and ``data/0``, ``data/1``,
... hold their numbers. Before 2020 both stood one after the other.
"""

from __future__ import annotations

import io
import json
import math
import operator
import re
import zipfile
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..errors import CheckpointError, CheckpointNotFoundError
from ..serialization import each_once
from ._files import LARGEST_TABLE, WEIGHT_ENDINGS, WEIGHT_FILES, CheckpointFiles, File, understood
from ._pickles import ALONE, Described, Storage, size_of, tensors_in, unpickled

# The pickle of a large model has some 100 kB; each of its bytes may cost a hundred in memory.
LARGEST_PICKLE = 2**22
# How many numbers a tensor may have that repeats some of them.
MOST_REPEATED = 2**24
# Characters of a tensor's name; what its parts say is compared with all of a config's.
LONGEST_NAME = 300
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

    def __post_init__(self) -> None:
        if len(self.name) > LONGEST_NAME:
            raise CheckpointError(f"a name of {len(self.name):,} characters, {self.name!r:.50}..., is no tensor's")

    @property
    def matrix(self) -> tuple[int, ...]:
        """Its sizes without the one that only stands for the batch: 1 x positions x width, or positions x 1 x width."""
        batch = self.shape.index(1) if len(self.shape) == 3 and 1 in self.shape[:2] else None
        return tuple(size for place, size in enumerate(self.shape) if place != batch)


@dataclass
class Tensors:
    """The tensors of a checkpoint or of a model by their names; of shards, each is opened when it is needed.

    Attributes:
        seen: those of which the shape is known.
        shards: the file of each tensor, where there are several.
        files: where those are.
        schemes: those that are tables whatever they are called.
        widths: those of the vectors that a module looks up.
        call: how errors say that one is chosen.
    """

    seen: dict[str, Entry]
    shards: Mapping[str, str] = field(default_factory=dict)
    files: CheckpointFiles | None = None
    schemes: Collection[str] = (ALONE,)
    widths: Collection[int] = ()
    call: str = "load_table(..., name={!r:.150}, offset=0)"

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
    if (
        max(map(len, named), default=0) > LONGEST_NAME
        or not names
        or not all(isinstance(name, str) and re.fullmatch(r"(?!\.)[\w.-]{1,200}", name) for name in names)
    ):
        advice = "" if index.name.endswith(".index.json") else "; give the folder that it stands in"
        raise CheckpointError(
            f"{index.name} has no weight_map that says which file beside it holds which tensor{advice}"
        )
    return named


def entries_of(file: File) -> dict[str, Entry]:
    """Describe the tensors of a file, of which its first bytes tell the format."""
    with understood(file.name):
        start = file.part(0, min(9, file.size))
        if start == b"version h":
            raise CheckpointError(f"{file.name} is a pointer of Git LFS, not the weights; run `git lfs pull` first")
        if start.startswith(b"GGUF"):
            raise CheckpointError(f"{file.name} is a GGUF file, which is not read; give what it was made of")
        if start.startswith(b"PK"):
            return _of_zip(file)
        if start.startswith(b"\x80") and start[8:] != b"{":
            return _of_old_pickle(file)
        if start[8:] != b"{":
            raise CheckpointError(
                f"{file.name} is no file of weights, or it is damaged; give one that ends in "
                f"{', '.join(WEIGHT_ENDINGS)} or .npy, or the folder of a checkpoint"
            )
        return _of_safetensors(file)


def _of_safetensors(file: File) -> dict[str, Entry]:
    """Eight bytes with the length of a JSON header, the header, and the tensors' bytes one after the other.

    The format: https://github.com/huggingface/safetensors. What the header claims of a tensor is checked when it is
    read, before memory is taken for it.
    """
    start, entries, places = 8 + int.from_bytes(file.part(0, 8), "little"), {}, []
    header = json.loads(file.part(8, start), object_pairs_hook=each_once)
    header.pop("__metadata__", None)
    for name, claims in header.items():
        shape, (begin, end) = tuple(map(operator.index, claims["shape"])), map(operator.index, claims["data_offsets"])
        if not re.fullmatch("[A-Z][A-Z0-9_]{0,20}", str(kind := claims["dtype"])):
            raise ValueError(f"it has the dtype {kind!r:.50}; those of safetensors are F32, F16, BF16 and the like")
        places.append((begin, end))

        def read(begin: int = begin, end: int = end, shape: tuple[int, ...] = shape, kind: str = kind) -> Tensor:
            data = bytearray(file.part(start + begin, start + end, LARGEST_TABLE))
            return torch.frombuffer(data, dtype=_DTYPES[kind]).reshape(shape)

        known = kind_of(_DTYPES[kind]) if kind in _DTYPES else kind
        entries[name] = Entry(name, shape, known, (begin, end), read, file.name)
    # One behind the other, from the first byte to the last.
    places.sort()
    if [0, *(end for _, end in places)] != [*(begin for begin, _ in places), file.size - start]:
        raise ValueError("its tensors do not stand one behind the other up to its end")
    return entries


def _of_zip(file: File) -> dict[str, Entry]:
    archive = zipfile.ZipFile(file)
    names = archive.namelist()
    if len(names) > len(set(names)):
        raise ValueError("two of its records have one name")
    if names[0].endswith(".npy"):
        raise CheckpointError(
            f"{file.name} is a zip of arrays (.npz); save the one that is the table as .npy: numpy.save"
        )
    folder = names[0].partition("/")[0]
    if f"{folder}/byteorder" in names and _record(archive, file, f"{folder}/byteorder", 99) != b"little":
        raise CheckpointError(f"{file.name} was written on a big-endian machine; save it again on one like this")
    found, _ = unpickled(io.BytesIO(_record(archive, file, f"{folder}/data.pkl", LARGEST_PICKLE)), file.name)
    return _entries(found, file, lambda storage: _record(archive, file, f"{folder}/data/{storage.key}", LARGEST_TABLE))


def _record(archive: zipfile.ZipFile, file: File, name: str, most: int) -> bytes:
    """Return a record of an archive; what the archive claims of it is checked before memory is taken for it."""
    info, file.most = archive.getinfo(name), most
    if info.compress_type != zipfile.ZIP_STORED or max(info.file_size, info.compress_size) > min(most, file.size):
        raise CheckpointError(f"{file.name} is refused: {name!r:.150} is compressed or far too large")
    return archive.read(info)


def _of_old_pickle(file: File) -> dict[str, Entry]:
    """Five pickles (a number, a version, a machine, the object, the keys of the storages), then the storages.

    Each of them is its length in eight bytes and its numbers.
    """
    if file.local is None:
        raise CheckpointError(
            f"{file.name} is in torch's old format, which cannot be read in part; to download all of its "
            f"{file.size:,} bytes, call load_table(..., download=True)"
        )
    pickles = io.BytesIO(file.part(0, min(file.size, LARGEST_PICKLE)))
    _, _, (machine, _), (found, storages), (keys, _) = (unpickled(pickles, file.name) for _ in range(5))
    if machine.get("little_endian") is not True:
        raise CheckpointError(f"{file.name} was written on a big-endian machine; save it again on one like this")
    begins, at = dict[str, int](), pickles.tell()
    for key in keys:
        begins[key], at = at + 8, at + 8 + storages[key].nbytes
    if begins.keys() != storages.keys() or at != file.size:
        raise ValueError("its tensors do not end where it does")

    def read(storage: Storage) -> bytes:
        begin = begins[storage.key]
        if int.from_bytes(file.part(begin - 8, begin), "little") * size_of(storage.dtype) != storage.nbytes:
            raise ValueError("a tensor of another length than it says")
        return file.part(begin, begin + storage.nbytes, LARGEST_TABLE)

    return _entries(found, file, read)


def _entries(found: Any, file: File, bytes_of: Callable[[Storage], bytes]) -> dict[str, Entry]:
    """Describe the tensors of a pickle, whose storages are read by `bytes_of`."""
    entries = {}
    for name, tensor in tensors_in(found):
        span = 1 + sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.strides, strict=True))
        # An expanded tensor repeats its numbers: little in the file may be more than memory can hold.
        if tensor.dtype is not None and 0 < math.prod(tensor.shape) <= max(span, MOST_REPEATED):
            place = tensor.storage.key, tensor.start, tensor.strides
            read = partial(_numbers, tensor, span, bytes_of)
            entries[name] = Entry(name, tensor.shape, kind_of(tensor.dtype), place, read, file.name)
    return entries


def _numbers(tensor: Described, span: int, bytes_of: Callable[[Storage], bytes]) -> Tensor:
    """The numbers of a tensor of which `span` of a storage are a part."""
    data, begin = bytearray(bytes_of(tensor.storage)), tensor.start * size_of(tensor.dtype)
    if len(data) != tensor.storage.nbytes:
        raise ValueError(f"a tensor of {tensor.storage.nbytes:,} bytes, for which it has {len(data):,}")
    numbers = torch.frombuffer(data, dtype=tensor.dtype or torch.uint8, count=span, offset=begin)
    return numbers.as_strided(tensor.shape, tensor.strides)


def kind_of(dtype: torch.dtype) -> str:
    """The name of a dtype: "float32"."""
    return str(dtype).removeprefix("torch.")
