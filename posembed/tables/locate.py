"""Where a checkpoint is: a path here, a folder of checkpoints, the installed encoder, or the hub."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from ..errors import CheckpointError, CheckpointNotFoundError, shown
from ..pretrained import HUB_NAME, WHEEL, installed_folder
from .checkpoint import WEIGHT_ENDINGS, Place

# Names a folder of checkpoints, each in a folder of its id: "gpt2", "facebook/opt-125m".
VARIABLE = "POSEMBED_CHECKPOINTS"
# What the hub takes for an id: no "..", and nothing else that leads out of that folder.
_ID = re.compile(r"(?!.*(?:--|\.\.|\.git$))(?:\w[\w.-]*/)?\w(?:[\w.-]{0,94}\w)?", re.ASCII)
# How what is read may be called.
_ENDINGS = (*WEIGHT_ENDINGS, ".npy")


def find_here(source: str | Path, revision: str | None = None, *, refresh: bool = False) -> Place | str:
    """Find what a text names on this machine.

    Args:
        source: a file or folder, or the id of a checkpoint.
        revision: of a checkpoint on the hub; folders of checkpoints here are then left out.
        refresh: leave them out too.

    Returns:
        Where it is, or the id under which the hub would have it.

    Raises:
        CheckpointNotFoundError: it is neither.
        CheckpointError: a revision of a path.
    """
    text, folder = str(source), os.environ.get(VARIABLE)
    # Of a text that is no path, as one that is too long for it, Path.exists is an error.
    if text and os.path.exists(source):  # noqa: PTH110
        if revision:
            raise CheckpointError(f"{text} is a path on this machine, which has no revisions; leave out revision=")
        return Place(text, Path(source))
    if isinstance(source, Path) or text.endswith(_ENDINGS) or not _ID.fullmatch(text):
        raise CheckpointNotFoundError(
            f"{shown(text)} is neither a file or folder here nor the name of a repository on the hub, as 'gpt2' or "
            f"'owner/name'{closest(text)}"
        )
    if folder and not (revision or refresh) and Path(folder, text).exists():
        return Place(text, Path(folder, text))
    text = HUB_NAME if text == HUB_NAME.rpartition("/")[2] else text
    if text == HUB_NAME and not (revision or refresh) and (installed := installed_folder()):
        return Place(text, installed, revision=f"PyPI {WHEEL.replace('==', ' ')}")
    return text


def closest(text: str) -> str:
    """What has a name like a path's in its folder, in words; nothing where nothing has."""
    parent = Path(text).parent
    if not parent.is_dir():
        return ""
    near = difflib.get_close_matches(Path(text).name, [there.name for there in parent.iterdir()])
    return f"; the closest here are {', '.join(near)}" if near else ""
