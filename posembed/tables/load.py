"""Load the position table of anything that has one."""

from __future__ import annotations

import operator
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from ..errors import CheckpointError, CheckpointNotFoundError, PositionTableError
from ._bytes import CheckpointFiles, LocalCheckpoint, unreadable
from ._checkpoint import open_checkpoint
from ._layouts import find_layout
from ._live import table_of_array, table_of_embedding, table_of_model, table_of_tensor
from .table import PositionTable

# Names a folder of checkpoints, each in a folder of its id: "gpt2", "facebook/opt-125m".
VARIABLE = "POSEMBED_CHECKPOINTS"
# What may be an id: no "..", and nothing else that leads out of that folder.
_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def load_table(
    source: Any,
    *,
    part: str | None = None,
    revision: str | None = None,
    name: str | None = None,
    offset: int | None = None,
    download: bool = False,
    refresh: bool = False,
) -> PositionTable:
    """Load the learned position table of a checkpoint, a model, or what you have in memory.

    A string is looked for in this order: a file or folder of that name; the folder of that name in the folder that the
    environment variable POSEMBED_CHECKPOINTS names; posembed's own cache (POSEMBED_CACHE, else ~/.cache/posembed);
    huggingface_hub's cache; the hub. From a file only the list of its tensors and the table itself are read, so a table
    of BERT (1.6 MB) costs no download of 440 MB.
    Pickled checkpoints are read through torch's weights-only loader alone.

    Rows that stand before position 0 are cut off: RoBERTa counts positions from its padding id + 1, OPT and BART from
    2 (https://github.com/huggingface/transformers/issues/15292). Which model does is known by the model_type in
    config.json; nothing is guessed where it is not.

    Args:
        source: an id on the hub ("gpt2", "facebook/opt-125m"), a local folder or file of weights, a transformers model
            or any module with a table, an nn.Embedding, a tensor or a numpy array. An nn.Embedding with a padding_idx
            is taken for RoBERTa's layout: position 0 is row padding_idx + 1; say offset=0 where it is not.
        part: of a model with several tables, the part whose table is meant: "encoder", "decoder", "text", "vision", or
            a part of the table's name.
        revision: a branch, tag or commit, of a checkpoint on the hub. Local folders are then left out.
        name: the tensor's name, for a layout that is not known, or to choose among several.
        offset: how many rows stand before position 0, where it is not known or is to be something else.
        download: fetch the whole file of weights into huggingface_hub's cache, which torch's old format needs.
        refresh: ask the hub again, past the caches and POSEMBED_CHECKPOINTS.

    Returns:
        The table, in float32 (float64 where stored so), in memory of its own.

    Raises:
        PositionTableError: there is no table, or several, or an unknown layout: the message lists the candidates and
            shows the call to make. A model that marks positions otherwise is told what it has instead.
        CheckpointNotFoundError: there is no such checkpoint, or it has no weights.
        CheckpointError: its files are damaged, contradict themselves, are refused, or hold quantised numbers.
        CheckpointNotFoundError: the hub cannot be reached, refuses, or breaks off.

    Example:
        >>> import torch
        >>> from posembed.tables import load_table
        >>> embedding = torch.nn.Embedding(514, 8, padding_idx=1)  # RoBERTa's kind
        >>> table = load_table(embedding)
        >>> table.offset, tuple(table.weight.shape)
        (2, (512, 8))
        >>> torch.equal(table.weight[0], embedding.weight[2])
        True
    """
    _check_options(part=part, revision=revision, name=name)
    offset = _checked_offset(offset)
    if isinstance(source, (str, Path)):
        files = _files(source, revision=revision, download=download, refresh=refresh)
        return _table_of_files(files, part=part, name=name, offset=offset)
    if revision is not None:
        raise PositionTableError(f"revision= is for checkpoints on the hub; a {type(source).__name__} has none")
    if isinstance(source, nn.Module) and not isinstance(source, nn.Embedding):
        return table_of_model(source, part=part, name=name, offset=offset)
    if part is not None or name is not None:
        raise PositionTableError(f"part= and name= choose among several tables; a {type(source).__name__} is one")
    if isinstance(source, nn.Embedding):
        return table_of_embedding(source, offset=offset)
    if isinstance(source, Tensor):
        return table_of_tensor(source, offset=offset)
    if isinstance(source, np.ndarray):
        return table_of_array(source, offset=offset)
    if isinstance(source, PositionTable) and offset is None:
        return source
    raise PositionTableError(
        f"a {type(source).__name__} has no position table; give an id on the hub, a path, a model, an nn.Embedding, a "
        "tensor or a numpy array"
    )


def as_table(source: Any) -> PositionTable:
    """Return a position table as it is, and load it from anything else.

    Args:
        source: a PositionTable, or what `load_table` takes.

    Raises:
        PositionTableError: and the other errors of `load_table`.

    Example:
        >>> import torch
        >>> from posembed.tables import as_table
        >>> table = as_table(torch.eye(4))
        >>> as_table(table) is table
        True
    """
    return source if isinstance(source, PositionTable) else load_table(source)


def _table_of_files(files: CheckpointFiles, *, part: str | None, name: str | None, offset: int | None) -> PositionTable:
    config = files.config()
    checkpoint = open_checkpoint(files)
    layout = find_layout(checkpoint, config, source=files.source, part=part, name=name, offset=offset)
    stored = checkpoint.read(layout.entry)
    table = PositionTable(
        stored.reshape(stored.shape[-2:])[layout.offset :].clone(),
        name=layout.entry.name,
        offset=layout.offset,
        source=files.source,
        bytes_read=files.bytes_read,
        part=layout.part,
        revision=files.revision,
        file=layout.entry.file,
        stored_dtype=layout.entry.kind,
        n_class_tokens=layout.n_class_tokens,
        grid=layout.grid,
    )
    files.keep()
    return table


def _files(source: str | Path, *, revision: str | None, download: bool, refresh: bool) -> CheckpointFiles:
    text, path = str(source), Path(source)
    if text and _is_there(path):
        if revision is not None:
            raise CheckpointError(f"{text} is a path on this machine, which has no revisions; leave out revision=")
        return LocalCheckpoint(path, text)
    if isinstance(source, Path):
        raise CheckpointNotFoundError(f"there is no file or folder {text!r:.300}")
    folder = os.environ.get(VARIABLE)
    if folder and revision is None and not refresh and _ID.fullmatch(text) and _is_there(Path(folder, text)):
        return LocalCheckpoint(Path(folder, text), text)
    # The hub's client is slow to import, and not needed for what is here.
    from ._hub import HubCheckpoint

    return HubCheckpoint(text, revision=revision, download=download, refresh=refresh)


def _is_there(path: Path) -> bool:
    """Whether a file or folder is there; what cannot be a path, as a name of 5000 letters, is not."""
    try:
        return path.exists()
    except PermissionError as error:
        raise unreadable(path, error) from error
    except OSError:
        return False


def _check_options(**options: Any) -> None:
    for name, value in options.items():
        if value is not None and not (isinstance(value, str) and value):
            raise PositionTableError(f"{name}={value!r:.100} is no name; leave it out or give a string")


def _checked_offset(offset: Any) -> int | None:
    if offset is None:
        return None
    try:
        if isinstance(offset, bool):
            raise TypeError
        return operator.index(offset)
    except TypeError:
        raise PositionTableError(f"offset={offset!r:.100} is no number of rows") from None
