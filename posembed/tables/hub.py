"""A checkpoint on the Hugging Face hub, of which only parts are moved, and the tables that were read there before."""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from ..errors import CheckpointNotFoundError, PosembedError
from .checkpoint import WEIGHT_FILES, Checkpoint
from .table import PositionTable

# What is kept is only as right as what was known of layouts then: raise it when that changes.
_FORMAT = 5


def cache_folder() -> Path:
    """Where tables are kept: the folder tables in POSEMBED_CACHE, else in posembed's part of the user's cache."""
    if chosen := os.environ.get("POSEMBED_CACHE"):
        return Path(chosen).expanduser() / "tables"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "posembed" / "tables"


def hub_address() -> str:
    """The address of the hub, without the name and password that may stand in it."""
    return re.sub("//.*@", "//", _client().constants.ENDPOINT)


def why_unreachable(patience: float = 3.0) -> str | None:
    """Ask the hub for a model once: None where it answers, else the reason in one line.

    Args:
        patience: seconds to wait.
    """
    hub = _client()
    if hub.constants.HF_HUB_OFFLINE:
        return "not asked, because HF_HUB_OFFLINE is set"
    try:
        hub.HfApi(endpoint=hub.constants.ENDPOINT).model_info("gpt2", timeout=patience)
    except Exception as error:  # the hub client's own kinds, those of its HTTP package
        # That it has no such model, or wants to know who asks, is an answer too.
        status = getattr(getattr(error, "response", None), "status_code", None)
        return None if status in (401, 403, 404) else f"{hub_address()}: {_reason(error)}"
    return None


def find_on_hub(repo_id: str, branch: str, *, download: bool = False, refresh: bool = False) -> Checkpoint:
    """Find a checkpoint in huggingface_hub's cache, or else on the hub, as of one commit.

    Args:
        repo_id: "gpt2", "owner/name".
        branch: a branch, tag or commit.
        download: fetch whole files into huggingface_hub's cache and read them there.
        refresh: leave out what is in that cache.

    Raises:
        CheckpointNotFoundError: there is no such repository or revision; the hub cannot be reached, or refuses.
    """
    hub, reading = _client(), partial(_in_words, repo_id, branch)
    with reading():
        # Its client cannot even be imported where HF_ENDPOINT is no address.
        if not refresh and (folder := _in_cache(repo_id, branch)):
            return Checkpoint(repo_id, folder, folder.name)
        # Every request after this one names the commit that it told, so that a push in between mixes no revisions.
        info = hub.HfApi(endpoint=hub.constants.ENDPOINT).model_info(repo_id, revision=branch)
        if not download:
            files = hub.HfFileSystem(endpoint=hub.constants.ENDPOINT, skip_instance_cache=True)
            return Checkpoint(repo_id, f"{info.id}@{info.sha}", info.sha, files, reading)
        names = [each.rfilename for each in info.siblings or ()]
        weights = next((name for name in WEIGHT_FILES if name in names), WEIGHT_FILES[0])
        shards = weights.removesuffix(".index.json").replace(".", "-*.")
        wanted = ["config.json", weights, shards]
        folder = Path(hub.snapshot_download(repo_id, revision=branch, allow_patterns=wanted))
    found = Checkpoint(repo_id, folder, folder.name)
    found.bytes_read = sum(found.sizes.values())
    return found


def _client() -> Any:
    """huggingface_hub, which is slow to import."""
    import huggingface_hub.constants
    import huggingface_hub.errors

    return huggingface_hub


def _in_cache(repo_id: str, branch: str) -> Path | None:
    """The folder of a commit in huggingface_hub's cache, where it holds weights."""
    found = (_client().try_to_load_from_cache(repo_id, name, revision=branch) for name in WEIGHT_FILES)
    return next((Path(path).parent for path in found if isinstance(path, str)), None)


@contextmanager
def _in_words(repo_id: str, branch: str) -> Iterator[None]:
    """Say in one line what the hub's client says in several, and what to do."""
    kinds, at = _client().errors, f"{hub_address()}/{repo_id}"
    known = {
        kinds.GatedRepoError: f"{repo_id} is gated: accept its terms at {at}, then log in with: hf auth login",
        kinds.RepositoryNotFoundError: (
            f"there is no checkpoint at {at}, or it is private; check the spelling, or log in with: hf auth login"
        ),
        kinds.RevisionNotFoundError: f"{repo_id} has no branch, tag or commit {branch!r} on the hub",
        kinds.OfflineModeIsEnabled: (
            f"{repo_id} is not in the local caches, and HF_HUB_OFFLINE forbids to ask the hub; unset it, or put the "
            "checkpoint in POSEMBED_CHECKPOINTS"
        ),
    }
    try:
        yield
    except PosembedError:
        raise
    except Exception as error:  # the other kinds, those of its HTTP package, a full disk
        other = (
            f"{repo_id} could not be read from {hub_address()}: {_reason(error)}; check the internet connection, or "
            "try again later"
        )
        said = next((words for kind, words in known.items() if isinstance(error, kind)), other)
        raise CheckpointNotFoundError(said) from error


def _reason(error: BaseException) -> str:
    """What went wrong first, which says most, in one line."""
    if (response := getattr(error, "response", None)) is not None:
        renew = "; renew the token or log out (hf auth logout)" if response.status_code == 401 else ""
        return f"it answers {response.status_code}{renew}"
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split())[:200] or type(error).__name__


def recall(repo_id: str, revision: str, choice: tuple[Any, ...]) -> PositionTable | None:
    """A table that was kept; None where none was, or what was kept is damaged: a disk may lose bytes."""
    with suppress(Exception), np.load(path := _kept_at(repo_id, revision, choice)) as stored:
        about = json.loads(str(stored["about"]))
        about["grid"] = about["grid"] and tuple(about["grid"])
        return PositionTable(torch.from_numpy(stored["weight"]), **about, bytes_read=path.stat().st_size)
    return None


def keep(table: PositionTable, revision: str, choice: tuple[Any, ...]) -> None:
    """Keep a table by its branch and by its commit, each whole or not at all, or warn of what hinders it."""
    about = {
        each.name: getattr(table, each.name) for each in fields(table) if each.name not in ("weight", "bytes_read")
    }
    try:
        for name in {revision, table.revision or revision}:
            path = _kept_at(table.source, name, choice)
            path.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=path.parent, prefix=".") as folder:
                np.savez(part := Path(folder, "table.npz"), about=json.dumps(about), weight=table.weight)
                part.replace(path)
    except (OSError, RuntimeError) as error:  # a read-only or full disk, a user without a home
        warnings.warn(f"{table.source} is not kept for the next time: {error}", RuntimeWarning, stacklevel=4)


def _kept_at(repo_id: str, revision: str, choice: tuple[Any, ...]) -> Path:
    key = json.dumps([_FORMAT, _client().constants.ENDPOINT, repo_id, revision, *choice])
    # No repository has two hyphens in its name.
    return cache_folder() / repo_id.replace("/", "--") / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.npz"
