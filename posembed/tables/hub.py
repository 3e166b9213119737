"""A checkpoint on the Hugging Face hub, of which only parts are moved, and the tables that were read there before."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import torch

from ..checks import is_there
from ..errors import CheckpointNotFoundError
from ._files import BLOCK, LARGEST_TEXT, WEIGHT_FILES, CheckpointFiles, File, local_file
from ._names import printable
from .table import PositionTable

# Whose files huggingface_hub's cache is taken to hold: it does not say of any where it came from.
HUB = "https://huggingface.co"
COMMIT = re.compile(r"[0-9a-f]{40}")
# What git allows as a name, with no slash at its ends.
_REVISION = re.compile(r"(?!/)(?!.*(?:\.\.|//))[^\s~^:?*\[\\\x00-\x1f\x7f]{1,200}(?<!/)")
# Seconds before the second and the third try, and what another try may mend: answers, and errors of the HTTP client.
WAITS = (1.0, 3.0)
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_BROKEN_OFF = frozenset({"ReadError", "ReadTimeout", "RemoteProtocolError", "WriteError", "WriteTimeout"})
# What is kept is only as right as what was known of layouts then: raise it when that changes.
_FORMAT = 1


def cache_folder() -> Path:
    """Where tables are kept: the folder tables in POSEMBED_CACHE, else in posembed's part of the user's cache."""
    if chosen := os.environ.get("POSEMBED_CACHE"):
        return Path(chosen).expanduser() / "tables"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "posembed" / "tables"


def hub_address() -> str:
    """The address of the hub, without the name and password that may stand in it.

    Raises:
        CheckpointNotFoundError: HF_ENDPOINT is not one of the web.
    """
    parts = urlsplit(_client().constants.ENDPOINT)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def why_unreachable(patience: float = 3.0) -> str | None:
    """Ask the hub for a small file once, as a table is asked for: None where it answers, else the reason in one line.

    Args:
        patience: seconds to wait.
    """
    try:
        address = hub_address()
    except CheckpointNotFoundError as error:
        return str(error)
    if _client().constants.HF_HUB_OFFLINE:
        return "not asked, because HF_HUB_OFFLINE is set"
    found: list[str | None] = []
    # In a thread, because looking up a name has no time limit of its own.
    asking = threading.Thread(target=lambda: found.append(_ask(patience)), daemon=True)
    asking.start()
    asking.join(patience + 0.5)
    reason = found[0] if found else f"no answer within {patience:g} s"
    return None if reason is None else f"{address}: {reason}"


def _ask(patience: float) -> str | None:
    try:
        _fetched(("gpt2", "config.json", "main"), 0, BLOCK, patience)
    except Exception as error:  # the hub client's own kinds, those of its HTTP package
        if type(error).__name__.endswith("Timeout"):
            return f"nothing came for {patience:g} s"
        # That it has no such model, or wants to know who asks, is an answer too.
        return None if _status(error) in (401, 403, 404) else _reason(error)
    return None


class HubFiles(CheckpointFiles):
    """The files of one commit of a repository on the hub; for those in huggingface_hub's own cache nothing is asked.

    Where HF_ENDPOINT names another hub than huggingface.co, whole files are kept in a folder of its own.

    Every request after the first names the commit that it told, so that a push in between mixes no revisions.

    Args:
        repo_id: "gpt2", "owner/name".
        branch: a branch, tag or commit.
        download: fetch whole files into huggingface_hub's cache and read them there.
        refresh: leave that cache out.

    Attributes:
        revision: the commit, None where it is not known yet.
        asked: whether the hub was asked for anything.

    Raises:
        CheckpointNotFoundError: no revision can be called so, or HF_ENDPOINT is not the address of a hub.
    """

    def __init__(self, repo_id: str, branch: str, *, download: bool = False, refresh: bool = False):
        super().__init__(repo_id)
        if not _REVISION.fullmatch(branch):
            raise CheckpointNotFoundError(f"revision={branch[:100]!r} is not the name of a branch, a tag or a commit")
        self._hub, self._branch, self._download, self._refresh, self.asked = _client(), branch, download, refresh, False
        self.revision = branch if COMMIT.fullmatch(branch) else None
        address = self._hub.constants.ENDPOINT
        own = cache_folder().with_name("hubs") / hashlib.sha256(address.encode()).hexdigest()[:40]
        self._cache = {} if address == HUB else {"cache_dir": own}

    def candidates(self) -> list[str]:
        """The names under which the hub keeps weights; what is here already will do, in whichever form."""
        return sorted(WEIGHT_FILES, key=lambda name: not isinstance(self._cached(name), str))

    def find(self, filename: str) -> File | None:
        """Open a file in huggingface_hub's cache, or else on the hub; None where this commit has none."""
        cached = self._cached(filename)
        if cached is not None and not isinstance(cached, str):
            return None
        try:
            return self._remote(filename) if cached is None and not self._download else self._whole(filename, cached)
        except FileNotFoundError:
            return None

    def _cached(self, filename: str) -> Any:
        """The path in huggingface_hub's cache; None where it has none, another object where it knows that none is."""
        where = {"revision": self.revision or self._branch, **self._cache}
        folder = Path(self._cache.get("cache_dir", self._hub.constants.HF_HUB_CACHE))
        _regular(folder / f"models--{self.source.replace('/', '--')}" / "refs" / (self.revision or self._branch))
        return None if self._refresh else self._hub.try_to_load_from_cache(self.source, filename, **where)

    def _whole(self, filename: str, cached: str | None) -> File | None:
        where = {"revision": self.revision or self._branch, **self._cache}
        get = partial(self._hub.hf_hub_download, self.source, filename, **where)
        with _waits_are_ours(self._hub):
            path = Path(cached or self._asked_for(filename, get))
        self.revision = next(filter(COMMIT.fullmatch, reversed(path.parts)), self.revision)
        file = local_file(_regular(path))
        if file is not None and cached is None:
            file.bytes_read = file.size
        return file

    def _remote(self, filename: str) -> File:
        def ask(start: int, stop: int) -> Any:
            where = self.source, filename, self.revision or self._branch
            return self._asked_for(filename, partial(_fetched, where, start, stop))

        head, size, commit = ask(0, LARGEST_TEXT if filename.endswith(".json") else 2 * BLOCK)
        if not COMMIT.fullmatch(commit) or self.revision not in (None, commit):
            raise CheckpointNotFoundError(f"the hub gave {filename} of {self.source} as of no commit, or of another")
        self.revision = commit
        return File(filename, size, lambda start, stop: head[start:stop] if stop <= len(head) else ask(start, stop)[0])

    def _asked_for(self, filename: str, call: Callable[[], Any]) -> Any:
        """What a call gives, after another try where the hub stumbles.

        Raises:
            FileNotFoundError: the repository has no such file.
            CheckpointNotFoundError: there is no such repository or revision; the hub cannot be reached, refuses, or
                breaks off.
        """
        self.asked = True
        for wait in (*WAITS, None):
            try:
                return call()
            except Exception as error:  # the hub client's own kinds, those of its HTTP package, a full disk
                passing = _status(error) in _PASSING or type(error).__name__ in _BROKEN_OFF
                if wait is None or not passing:
                    raise self._in_words(error, filename) from error
            sleep(wait)

    def _in_words(self, error: Exception, filename: str) -> Exception:
        kinds, at = self._hub.errors, f"{hub_address()}/{self.source}"
        response: Any = getattr(error, "response", None)
        # Not what the storage behind the hub lacks.
        if _status(error) == 404 and not response.history and "x-error-code" not in response.headers:
            return FileNotFoundError(filename)
        texts = {
            kinds.RemoteEntryNotFoundError: "",
            kinds.GatedRepoError: f"{self.source} is gated: accept its terms at {at}, then log in with: hf auth login",
            kinds.RepositoryNotFoundError: f"there is no checkpoint at {at}, or it is private; check the spelling, "
            "or log in with: hf auth login",
            kinds.RevisionNotFoundError: f"{self.source} has no branch, tag or commit {self._branch!r} on the hub",
            kinds.OfflineModeIsEnabled: f"{self.source} needs {filename}, which is not in the local caches, and "
            "HF_HUB_OFFLINE forbids to ask the hub; unset it, or put the checkpoint in POSEMBED_CHECKPOINTS",
            Exception: f"{filename} of {self.source} could not be read from {hub_address()}: {_reason(error)}; "
            "check the internet connection, or try again later; no file or folder here has this name",
        }
        text = next(text for kind, text in texts.items() if isinstance(error, kind))
        return CheckpointNotFoundError(text) if text else FileNotFoundError(filename)


@contextmanager
def _waits_are_ours(hub: Any) -> Iterator[None]:
    """Keep from huggingface_hub how long a server tells it to wait, which may be days: it waits some seconds then."""

    def forget(response: Any) -> None:
        for name in ("retry-after", "ratelimit"):
            response.headers.pop(name, None)

    hooks = hub.utils.get_session().event_hooks["response"]
    hooks.append(forget)
    try:
        yield
    finally:
        hooks.remove(forget)


def _client() -> Any:
    """huggingface_hub, which is slow to import and reads HF_ENDPOINT then.

    Raises:
        CheckpointNotFoundError: HF_ENDPOINT is not an address of the web.
    """
    try:
        import huggingface_hub.constants
        import huggingface_hub.errors
        import huggingface_hub.utils

        parts = urlsplit(huggingface_hub.constants.ENDPOINT)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return huggingface_hub
    except ValueError:  # a port that is no number, a bracket that does not close; the import may find it too
        pass
    # Not quoted: there may be a password in it.
    raise CheckpointNotFoundError(
        "HF_ENDPOINT is not the address of a hub; unset it, or write it as https://huggingface.co"
    )


def _fetched(
    where: tuple[str, str, str], start: int, stop: int, timeout: float | None = None
) -> tuple[bytes, int, str]:
    """Ask for the bytes from start to stop: those that the file has, its size, and the commit ("" if none is told).

    huggingface_hub's own HTTP client follows redirects, and sends the token to no other host.
    """
    hub, data = _client(), bytearray()
    token = None if hub.constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else hub.get_token()
    if token and not (token.isascii() and token.isprintable()):  # the client would quote it
        raise CheckpointNotFoundError("the token for the hub holds characters that no token has; renew it (HF_TOKEN)")
    headers = {"range": f"bytes={start}-{stop - 1}", "accept-encoding": "identity", "user-agent": "posembed"}
    headers |= {"authorization": f"Bearer {token}"} if token else {}
    url = hub.hf_hub_url(where[0], where[1], revision=where[2])
    settings = {"timeout": timeout or hub.constants.HF_HUB_DOWNLOAD_TIMEOUT, "follow_redirects": True}
    with hub.utils.get_session().stream("GET", url, headers=headers, **settings) as response:
        hub.utils.hf_raise_for_status(response)
        told = response.headers
        if "text/html" in told.get("content-type", ""):
            raise CheckpointNotFoundError("a web page came instead; is there a network's login page in between?")
        part = re.fullmatch(rf"bytes {start}-[0-9]+/([0-9]{{1,18}})", told.get("content-range", ""))
        # Of a server that ignores Range, the beginning is right all the same.
        if part is None and (start or not told.get("content-length", "").isdecimal()):
            raise CheckpointNotFoundError("it ignores Range; load_table(..., download=True) fetches the whole file")
        size = int(part[1] if part else told["content-length"])
        for chunk in response.iter_raw():  # no more than was asked for, however much there is
            data += chunk
            if len(data) >= stop - start:
                break
    if len(data) < min(stop, size) - start:
        raise CheckpointNotFoundError(f"it broke off after {len(data):,} bytes")
    commits = [each.headers.get("x-repo-commit", "") for each in (*response.history, response)]
    return bytes(data[: stop - start]), size, next(filter(None, commits), "")


def _regular(path: Path) -> Path:
    """A path in huggingface_hub's cache, where nothing or a file is: its client would wait for a pipe."""
    if is_there(path) and not path.is_file():
        raise CheckpointNotFoundError(f"{printable(str(path))} is no regular file; remove it and try again")
    return path


def _status(error: BaseException) -> int | None:
    return getattr(getattr(error, "response", None), "status_code", None)


def _reason(error: BaseException) -> str:
    """What went wrong first, which says most, in one line."""
    if (status := _status(error)) is not None:
        return f"it answers {status}" + ("; renew the token or log out (hf auth logout)" if status == 401 else "")
    while error.__cause__ is not None:
        error = error.__cause__
    text = "".join(char if char.isprintable() else " " for char in str(error))
    return " ".join(text.split())[:200] or type(error).__name__


def recall(repo_id: str, revision: str, choice: tuple[Any, ...]) -> PositionTable | None:
    """A table that was kept; None where none was, or what was kept is damaged: a disk may lose bytes."""
    try:
        path, key = _place(repo_id, revision, choice)
        if not path.is_file():  # a pipe may never end
            return None
        with np.load(path) as stored:
            about, weight = json.loads(str(stored["about"])), torch.from_numpy(stored["weight"])
        about["grid"] = about["grid"] and tuple(about["grid"])
        return PositionTable(weight, **about, bytes_read=path.stat().st_size) if about.pop("key") == key else None
    except Exception:  # whatever a damaged file makes numpy or json raise
        return None


def keep(table: PositionTable, revision: str, choice: tuple[Any, ...]) -> None:
    """Keep a table by its branch and by its commit, each whole or not at all, or warn of what hinders it."""
    about = {
        each.name: getattr(table, each.name) for each in fields(table) if each.name not in ("weight", "bytes_read")
    }
    try:
        for name in {revision, table.revision or revision}:
            path, key = _place(table.source, name, choice)
            path.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=path.parent, prefix=".") as folder:
                np.savez(part := Path(folder, "table.npz"), about=json.dumps(about | {"key": key}), weight=table.weight)
                part.replace(path)
    except (OSError, RuntimeError) as error:  # a read-only or full disk, a user without a home
        reason = getattr(error, "strerror", None) or error
        warnings.warn(f"{table.source} is not kept for the next time: {reason}", RuntimeWarning, stacklevel=4)


def _place(repo_id: str, revision: str, choice: tuple[Any, ...]) -> tuple[Path, str]:
    key = json.dumps([_FORMAT, _client().constants.ENDPOINT, repo_id, revision, *choice])
    # No repository has two hyphens in its name.
    return cache_folder() / repo_id.replace("/", "--") / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.npz", key
