"""The tensors of a whole checkpoint: in one file, or in shards, of which only the needed ones are opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import Tensor

from ..errors import CheckpointError, CheckpointNotFoundError
from ._bytes import (
    WEIGHT_ENDINGS,
    WEIGHT_FILES,
    ByteSource,
    CheckpointFiles,
    LocalCheckpoint,
    checked_filename,
    read_json,
)
from ._pickled import PickledFile
from ._safetensors import SafetensorsFile
from ._weights import Entry, TensorFile

_PICKLED = tuple(set(WEIGHT_ENDINGS) - {".safetensors"})


class Checkpoint:
    """The tensors of a checkpoint, by name.

    Args:
        files: where its files are.
        shards: the file of each tensor.
        opened: those of the files that are open already.
    """

    def __init__(self, files: CheckpointFiles, shards: Mapping[str, str], opened: Mapping[str, TensorFile]):
        self._files, self._shards, self._opened = files, shards, dict(opened)

    @property
    def names(self) -> Iterable[str]:
        """Every tensor's name."""
        return self._shards.keys()

    def entry(self, name: str) -> Entry:
        """What is known of one tensor; its file is opened for it."""
        shard = self._shards[name]
        if shard not in self._opened:
            file = self._files.open(shard)
            if file is None:
                raise CheckpointError(f"{self._files.source} names the file {shard:.200}, which is not there")
            self._opened[shard] = open_tensors(file)
        try:
            return self._opened[shard].entries[name]
        except KeyError:
            raise CheckpointError(
                f"{self._files.source} says that {name!r:.150} is in {shard:.200}, which does not hold it"
            ) from None

    def seen(self) -> Mapping[str, Entry]:
        """Those of which the shape is known without opening a further file."""
        return {name: entry for file in self._opened.values() for name, entry in file.entries.items()}

    def read(self, entry: Entry) -> Tensor:
        """Return one tensor in float32 or float64."""
        return self._opened[self._shards[entry.name]].read(entry.name)


def open_checkpoint(files: CheckpointFiles) -> Checkpoint:
    """Open the weights of a checkpoint.

    Raises:
        CheckpointNotFoundError: it has none under a name that is known.
        CheckpointError: the weights are damaged, or several files may hold them.
    """
    for name in _candidates(files):
        file = files.open(name)
        if file is not None:
            return _of_index(files, file) if name.endswith(".index.json") else _of_one(files, name, file)
    looked_for = ", ".join(WEIGHT_FILES)
    if isinstance(files, LocalCheckpoint):
        looked_for += f", nor a file that ends in {', '.join(WEIGHT_ENDINGS)}"
    raise CheckpointNotFoundError(f"{files.source} holds no weights that can be read: no {looked_for}")


def open_tensors(file: ByteSource) -> TensorFile:
    """Open a file of tensors, by its name where that tells the format, else by its first bytes.

    Raises:
        CheckpointError: it is damaged, or of another format.
    """
    if file.name.endswith(".safetensors"):
        return SafetensorsFile(file)
    if file.name.endswith(_PICKLED):
        return PickledFile(file)
    start = file.read(0, min(9, file.size))
    if start[8:] == b"{":
        return SafetensorsFile(file)
    if start.startswith((b"PK", b"\x80")):
        return PickledFile(file)
    raise CheckpointError(f"{file.name} is no checkpoint: it is neither a safetensors file nor one of torch.save")


def _candidates(files: CheckpointFiles) -> tuple[str, ...]:
    if not isinstance(files, LocalCheckpoint):
        return WEIGHT_FILES
    there = files.weight_files()
    usual = tuple(name for name in WEIGHT_FILES if name in there)
    if len(there) > 1 and not usual:
        listed = ", ".join(there[:8])
        raise CheckpointError(f"{files.source} holds several files of weights; give the path of one of them: {listed}")
    return usual or tuple(there)


def _of_one(files: CheckpointFiles, name: str, file: ByteSource) -> Checkpoint:
    tensors = open_tensors(file)
    return Checkpoint(files, dict.fromkeys(tensors.entries, name), {name: tensors})


def _of_index(files: CheckpointFiles, file: ByteSource) -> Checkpoint:
    shards = read_json(file).get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise CheckpointError(f"{file.name} has no weight_map that says which file holds which tensor")
    for shard in set(map(_checked_shard, shards.values())):
        checked_filename(shard)
    return Checkpoint(files, shards, {})


def _checked_shard(shard: object) -> str:
    if not isinstance(shard, str):
        raise CheckpointError(f"the index names a file {shard!r:.100}, which is no name")
    return shard
