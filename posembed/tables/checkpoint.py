"""A checkpoint's files, here or on the hub, and the tensors in them, of which each is read when it is needed."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import fsspec
import numpy as np
import torch
from torch import Tensor

from ..errors import CheckpointError, CheckpointNotFoundError, PosembedError
from ..serialization import each_once
from .weights import ALONE, Entry, Weights, array_entry, kind_of, tensor_entry

# The names under which transformers and the hub keep weights, in the order of preference.
WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
# How weights' files may end, in a folder that has none of those names.
WEIGHT_ENDINGS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt")
# So many bytes of a file of safetensors hold the list of its tensors, mostly; a request costs more than that.
HEAD = 2**17
_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


@dataclass
class Place:
    """Where a checkpoint is.

    Attributes:
        source: what the user gave, as text.
        path: of a folder, or of one file of weights.
        revision: the commit, of a checkpoint on the hub; the wheel, of one that was installed.
        hub: the file system that the folder is on, where that is not this machine's.
        reading: a context in which that hub is read, which says in words what goes wrong.
        bytes_read: bytes moved so far.
    """

    source: str
    path: Path | str
    revision: str | None = None
    hub: Any = None
    reading: Callable[[], AbstractContextManager[None]] = nullcontext
    bytes_read: int = 0


class Checkpoint:
    """The files of a checkpoint.

    A single file is read with the config.json beside it only where it has one of the names under which checkpoints are
    kept: in a folder of downloads, a config.json may be of another model.

    Attributes:
        place: where it is, which counts the bytes that are read.
        alone: the name of the one file that was given, None where a folder was.
        sizes: those of the files in bytes, by their names.
    """

    def __init__(self, place: Place):
        self.place, self.files, path = place, place.hub or fsspec.filesystem("file"), place.path
        self.alone = path.name if isinstance(path, Path) and path.is_file() else None
        self.folder = str(path.parent if isinstance(path, Path) and self.alone else path)
        with place.reading():
            listed = self.files.ls(self.folder, detail=True)
        self.sizes = {Path(each["name"]).name: each["size"] for each in listed}
        if self.alone and not self.alone.startswith(("model", "pytorch_model")):
            self.sizes.pop("config.json", None)

    def part(self, name: str, start: int, stop: int) -> bytes:
        """Return exactly these bytes of a file."""
        with self.place.reading(), self.files.open(f"{self.folder}/{name}", "rb", cache_type="none") as file:
            file.seek(start)
            data: bytes = file.read(stop - start)
        self.place.bytes_read += len(data)
        if len(data) != stop - start:
            # Of a server that ignores ranges the beginning would be taken for the table.
            way = "; load_table(..., download=True) fetches the whole file" if self.place.hub else ""
            raise CheckpointError(
                f"{name} is damaged or was not copied in full: {stop - start:,} bytes are needed, and {len(data):,} "
                f"came{way}"
            )
        return data

    def json(self, name: str) -> dict[str, Any]:
        """Return the JSON object that a file is, empty where there is none."""
        if name not in self.sizes:
            return {}
        with understood(name):
            found = json.loads(self.part(name, 0, self.sizes[name]))
            if not isinstance(found, dict):
                raise ValueError(f"it holds a JSON {type(found).__name__}, not an object")
            return found

    @property
    def weights(self) -> str:
        """The name of the file of weights, or of the index of several.

        Raises:
            CheckpointNotFoundError: there is none under a name that is known.
            CheckpointError: several files may be meant.
        """
        if self.alone:
            return self.alone
        usual = [name for name in WEIGHT_FILES if name in self.sizes]
        others = [] if self.place.hub else sorted(name for name in self.sizes if name.endswith(WEIGHT_ENDINGS))
        if not usual and len(others) > 1:
            raise CheckpointError(
                f"{self.place.source} holds several files of weights; give the path of one: {', '.join(others)}"
            )
        if not usual and not others:
            raise CheckpointNotFoundError(
                f"{self.place.source} holds no weights that can be read: no {', '.join(WEIGHT_FILES)}, nor on this "
                f"machine a file that ends in {', '.join(WEIGHT_ENDINGS)}"
            )
        return (usual or others)[0]


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Say of a file that somebody else wrote that it cannot be read, whatever it makes its reader do."""
    try:
        yield
    except PosembedError:
        raise
    except UnpicklingError as error:
        asked = re.search(r"GLOBAL ([\w.]+)", str(error))
        raise CheckpointError(
            f"{what} is refused: it holds more than weights{f' ({asked[1]})' if asked else ''}, which torch.load does "
            "not run; of a checkpoint of your own, save its state_dict alone"
        ) from error
    except Exception as error:
        reason = getattr(error, "strerror", None) or (str(error).strip() or type(error).__name__).splitlines()[0]
        raise CheckpointError(f"{what} cannot be read; it may be damaged or incomplete ({reason:.200})") from error


def open_checkpoint(place: Place) -> Weights:
    """Open the weights of a checkpoint, in one file or in shards.

    Raises:
        CheckpointNotFoundError: it has none under a name that is known.
        CheckpointError: the weights are damaged, several files may hold them, or they cannot be read by parts.
    """
    files = Checkpoint(place)
    name, tensors_of = files.weights, partial(_tensors_of, files)
    if place.hub and name.startswith("pytorch_model"):
        size = sum(size for name, size in files.sizes.items() if re.fullmatch(r"pytorch_model.*\.bin", name))
        raise CheckpointError(
            f"{place.source} has its weights in {name}, of which no part can be read alone; to download all of its "
            f"{size:,} bytes, call load_table(..., download=True)"
        )
    config = files.json("config.json")
    if not name.endswith(".json"):
        return Weights(place.source, config, tensors_of(name))
    shards = files.json(name).get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise CheckpointError(f"{name} has no weight_map that says which file beside it holds which tensor")
    return Weights(place.source, config, {}, shards, tensors_of)


def _tensors_of(files: Checkpoint, name: str) -> dict[str, Entry]:
    """Describe the tensors of a file, of which its first bytes tell the format."""
    if name not in files.sizes:
        raise CheckpointError(f"{name!r}, which should hold some of the weights of {files.place.source}, is not there")
    with understood(name):
        head = files.part(name, 0, min(HEAD, files.sizes[name]))
        if head.startswith(b"version https://git-lfs"):
            raise CheckpointError(f"{name} is a pointer of Git LFS, not the weights; run `git lfs pull` first")
        if head[8:9] == b"{":
            return _of_safetensors(files, name, head)
        if head.startswith((b"PK", b"\x80")):
            return _of_pickle(files, name)
        if head.startswith(b"\x93NUMPY"):
            return _of_npy(files, name)
    raise CheckpointError(
        f"{name} is no file of weights, or it is damaged; give one that ends in {', '.join(WEIGHT_ENDINGS)} or .npy, "
        "or the folder of a checkpoint"
    )


def _of_safetensors(files: Checkpoint, name: str, head: bytes) -> dict[str, Entry]:
    """Eight bytes with the length of a JSON header, the header, and the tensors' bytes one after the other.

    The format: https://github.com/huggingface/safetensors.
    """
    begin = 8 + int.from_bytes(head[:8], "little")
    text = head[8:begin] if begin <= len(head) else head[8:] + files.part(name, len(head), begin)
    header = json.loads(text, object_pairs_hook=each_once)
    header.pop("__metadata__", None)
    entries, size = {}, begin
    for tensor, claims in header.items():
        start, stop = claims["data_offsets"]
        size += stop - start
        kind = kind_of(_DTYPES[claims["dtype"]]) if claims["dtype"] in _DTYPES else claims["dtype"]
        read = partial(_numbers, files, name, (begin + start, begin + stop), claims)
        entries[tensor] = Entry(tensor, tuple(claims["shape"]), kind, (start, stop), read, name)
    if size != files.sizes[name]:
        raise CheckpointError(
            f"{name} is damaged or was not copied in full: its tensors need {size:,} bytes, and it has "
            f"{files.sizes[name]:,}"
        )
    return entries


def _numbers(files: Checkpoint, name: str, span: tuple[int, int], claims: Mapping[str, Any]) -> Tensor:
    with understood(name):
        data = bytearray(files.part(name, *span))
        return torch.frombuffer(data, dtype=_DTYPES[claims["dtype"]]).reshape(claims["shape"])


def _of_pickle(files: Checkpoint, name: str) -> dict[str, Entry]:
    """What torch.save wrote, without what it would run; since 2020 numbers stay in the file until they are read."""
    path = Path(files.folder, name)
    files.place.bytes_read += files.sizes[name]
    state = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    tensors = {at: tensor for at, tensor in _tensors_in(state) if tensor.layout == torch.strided}
    return {at: tensor_entry(at, it, (it.data_ptr(), it.stride()), file=name) for at, it in tensors.items()}


def _of_npy(files: Checkpoint, name: str) -> dict[str, Entry]:
    files.place.bytes_read += files.sizes[name]
    stored = np.load(Path(files.folder, name), mmap_mode="r")
    return {ALONE: array_entry(ALONE, stored, file=name)}


def _tensors_in(value: Any, path: tuple[str, ...] = ()) -> Iterator[Any]:
    """Walk through dictionaries in dictionaries."""
    if isinstance(value, Tensor):
        yield ".".join(path) or ALONE, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            if isinstance(key, str):
                yield from _tensors_in(each, (*path, key))
