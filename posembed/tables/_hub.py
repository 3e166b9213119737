"""A checkpoint on the Hugging Face hub, of which only what is asked for is moved."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

from ..errors import CheckpointNotFoundError, PosembedError
from . import _cache
from ._bytes import WEIGHT_FILES, LocalFile, checked_filename, read_json
from ._http import RENEW, Answer, HubClient, NoAnswerError, innermost, one_line, origin, site
from ._hub_file import HubFile
from ._ranges import LOGIN_PAGE, RefusedError, RemoteFile

# Enough for the header of a safetensors file, or the list of tensors at the front of torch's zip, of most models.
FIRST = 2**16
# What git allows as a name, with no slash at its ends.
REVISION = re.compile(r"(?!/)[^\s~^:?*\[\\\x00-\x1f\x7f]{1,200}(?<!/)")


class HubCheckpoint:
    """One commit of a repository on the hub.

    Nothing is asked before the first file is. Every request after the first names the commit that it told, so that a
    push in between mixes no revisions. What was read is remembered; `keep` writes it to posembed's cache, from which
    the same reads are answered the next time without a request. Files in huggingface_hub's own cache are read there.

    Args:
        repo_id: "gpt2", "owner/name".
        revision: a branch, tag or commit; None for main.
        download: fetch whole files into huggingface_hub's cache and read them there.
        refresh: leave the caches out.

    Attributes:
        source: the repository's id.
        revision: the commit, None where it is not known yet.

    Raises:
        CheckpointNotFoundError: no repository or revision can be called so.
        CheckpointNotFoundError: HF_ENDPOINT is not the address of a hub.
    """

    def __init__(self, repo_id: str, *, revision: str | None = None, download: bool = False, refresh: bool = False):
        check_endpoint()
        self.source = _checked_repo_id(repo_id)
        self._asked = _checked_revision("main" if revision is None else revision)
        self.revision = self._asked if _cache.COMMIT.fullmatch(self._asked) else None
        self._client = HubClient()
        self._remotes: dict[str, RemoteFile] = {}
        self._files: dict[str, LocalFile | HubFile] = {}
        self._record: _cache.Record = {}
        self._snapshot: Path | None = None
        self._moved = 0
        self._download = download
        if not (refresh or download):
            self._look_in_caches()

    @property
    def bytes_read(self) -> int:
        """Bytes moved over the network or read from the disk so far."""
        return (
            self._moved
            + self._client.bytes_read
            + sum(file.bytes_read for file in self._files.values() if isinstance(file, LocalFile))
        )

    @property
    def n_requests(self) -> int:
        """Requests so far, redirects and whole downloads not counted."""
        return self._client.n_requests

    def config(self) -> dict[str, Any] | None:
        """Return config.json, None where there is none."""
        file = self.open("config.json")
        return None if file is None else read_json(file)

    def open(self, filename: str) -> LocalFile | HubFile | None:
        """Return a file, with what stands at its beginning already there; None where this commit has no such file.

        Raises:
            CheckpointNotFoundError: there is no such repository or revision.
            CheckpointNotFoundError: the hub cannot be reached, refuses, or breaks off.
        """
        if checked_filename(filename) not in self._files:
            file = self._downloaded(filename) if self._download else self._found(filename)
            if file is None:
                return None
            self._files[filename] = file
        return self._files[filename]

    def keep(self) -> None:
        """Write what was read to posembed's cache. Call it when the table is whole: only good answers are kept."""
        if self.revision is not None and self._client.n_requests:
            _cache.keep(self.source, self._asked, self.revision, self._record)

    def _look_in_caches(self) -> None:
        if (found := _cache.recall(self.source, self._asked)) is not None:
            self.revision, self._record, self._moved = found
        for name in WEIGHT_FILES:
            path = self._in_hub_cache(name)
            if path is not None and _cache.COMMIT.fullmatch(path.parent.name):
                self._snapshot, self.revision = path.parent, path.parent.name
                return

    def _in_hub_cache(self, filename: str) -> Path | None:
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(self.source, filename, revision=self.revision or self._asked)
        return Path(found) if isinstance(found, str) else None

    def _found(self, filename: str) -> LocalFile | HubFile | None:
        if filename not in self._record and self._snapshot is not None:
            if (self._snapshot / filename).is_file():
                return LocalFile(self._snapshot / filename)
            # Only shards are asked for where they are missing: of the weights there is one form already.
            if filename in (*WEIGHT_FILES, "config.json"):
                return None
        if filename not in self._record:
            self._record[filename] = self._first_look(filename)
        pieces = self._record[filename]
        return None if pieces.size is None else HubFile(filename, pieces.size, pieces, self._fetch)

    def _first_look(self, filename: str) -> _cache.Pieces:
        """Ask for the beginning of a file, or for all of it where it describes others."""
        remote = self._remote(filename)
        try:
            data = remote.fetch_all() if filename.endswith(".json") else remote.fetch(0, FIRST)
        except RefusedError as error:
            if (meant := self._meaning(error, filename)) is not None:
                raise meant from error
            return _cache.Pieces(None)
        return _cache.Pieces(remote.size, {0: data})

    def _fetch(self, filename: str, start: int, stop: int) -> bytes:
        try:
            return self._remote(filename).fetch(start, stop)
        except RefusedError as error:
            gone = CheckpointNotFoundError(f"{filename} of {self.source} is no longer on the hub; try again")
            raise self._meaning(error, filename) or gone from error

    def _remote(self, filename: str) -> RemoteFile:
        from huggingface_hub import constants, hf_hub_url

        if constants.HF_HUB_OFFLINE:
            offline = "which is not in the local caches, and HF_HUB_OFFLINE forbids to ask the hub; unset it, or put"
            raise CheckpointNotFoundError(
                f"{self.source} needs {filename}, {offline} the checkpoint in POSEMBED_CHECKPOINTS"
            )
        url = hf_hub_url(self.source, filename, revision=self.revision or self._asked)
        if filename not in self._remotes:
            known = self._record.get(filename)
            size = None if known is None else known.size
            what = f"{filename} of {self.source}"
            self._remotes[filename] = RemoteFile(self._client, url, what, self._pin, size)
        self._remotes[filename].url = url
        return self._remotes[filename]

    def _pin(self, answer: Answer) -> None:
        commit = answer.passed.get("x-repo-commit", "")
        if not _cache.COMMIT.fullmatch(commit):  # a mirror that tells none
            return
        if self.revision not in (None, commit):
            raise CheckpointNotFoundError(f"{self.source} changed while it was read; try again")
        self.revision = commit

    def _meaning(self, refused: RefusedError, filename: str) -> PosembedError | None:
        """What a refusal means to the user; None where it only says that there is no such file."""
        from huggingface_hub import constants

        at = f"{site(constants.ENDPOINT)}/{self.source}"
        if refused.code == "EntryNotFound" or (refused.status, refused.code, refused.from_hub) == (404, "", True):
            return None
        if refused.code == "RevisionNotFound":
            return CheckpointNotFoundError(f"{self.source} has no branch, tag or commit {self._asked!r} on the hub")
        if refused.code == "GatedRepo":
            return CheckpointNotFoundError(
                f"{self.source} is gated: accept its terms at {at}, then log in with: hf auth login"
            )
        if refused.status == 401 and "redentials" in refused.words:
            return CheckpointNotFoundError(f"{at} is refused to everybody with this token; {RENEW}")
        if refused.code == "RepoNotFound" or (refused.status, refused.from_hub) == (401, True):
            hint = "check the spelling, or log in with: hf auth login"
            return CheckpointNotFoundError(f"there is no checkpoint at {at}, or it is private; {hint}")
        return CheckpointNotFoundError(f"the hub refuses {filename} of {self.source} ({refused}); see {at}")

    def _downloaded(self, filename: str) -> LocalFile | None:
        """Fetch a whole file with huggingface_hub, unless its cache has it."""
        from huggingface_hub import hf_hub_download

        before = self._in_hub_cache(filename)
        try:
            path = Path(hf_hub_download(self.source, filename, revision=self.revision or self._asked))
        except Exception as error:  # the hub client's own kinds, those of its HTTP package, a full disk
            response = getattr(error, "response", None)
            if response is None:
                raise self._not_downloaded(filename, error) from error
            headers = {name.lower(): value for name, value in response.headers.items()}
            refused = RefusedError(response.status_code, headers, from_hub=True)
            if (meant := self._meaning(refused, filename)) is not None:
                raise meant from error
            return None
        self._moved += 0 if before == path else path.stat().st_size
        commit = path.parents[filename.count("/")].name
        self.revision = commit if _cache.COMMIT.fullmatch(commit) else self.revision
        return LocalFile(path)

    def _not_downloaded(self, filename: str, error: Exception) -> CheckpointNotFoundError:
        reason = one_line(innermost(error))
        check = "check the internet connection, and whether there is room on the disk"
        return CheckpointNotFoundError(f"{filename} of {self.source} could not be downloaded: {reason}; {check}")


def is_repo_id(text: str) -> bool:
    """Whether a repository of the hub can be called so: "gpt2", "owner/name"."""
    try:
        return bool(_checked_repo_id(text))
    except CheckpointNotFoundError:
        return False


def why_unreachable(patience: float = 3.0) -> str | None:
    """Ask the hub for a small file once, as a table is asked for: None where it answers, else the reason in one line.

    Args:
        patience: seconds to wait.
    """
    try:
        check_endpoint()
    except CheckpointNotFoundError as error:
        return str(error)
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "not asked, because HF_HUB_OFFLINE is set"
    found: list[str | None] = []
    # In a thread, because looking up a name has no time limit of its own.
    asking = threading.Thread(target=lambda: found.append(_ask(patience)), daemon=True)
    asking.start()
    asking.join(patience + 0.5)
    reason = found[0] if found else f"no answer within {patience:g} s"
    return None if reason is None else f"{site(constants.ENDPOINT)}: {reason}"


def _ask(patience: float) -> str | None:
    from huggingface_hub import hf_hub_url

    try:
        with HubClient(patience).get(hf_hub_url("gpt2", "config.json"), {}) as answer:
            if answer.status == 200 and "text/html" in answer.headers.get("content-type", ""):
                return LOGIN_PAGE
            # That it has no such model, or wants to know who asks, is an answer too.
            return None if answer.status < 400 or answer.status in (401, 403, 404) else f"it answers {answer.status}"
    except (NoAnswerError, CheckpointNotFoundError) as error:
        return str(error)


def check_endpoint() -> None:
    """See whether the address of the hub is one; huggingface_hub meets one that is not with errors of many kinds.

    Raises:
        CheckpointNotFoundError: it is none of the web.
    """
    try:
        from huggingface_hub import constants

        scheme, host, _ = origin(constants.ENDPOINT)
    except ValueError:  # a port that is no number, a bracket that does not close; the import may find it too
        scheme = host = ""
    if scheme not in ("http", "https") or not host:
        # Not quoted: there may be a password in it.
        raise CheckpointNotFoundError(
            "HF_ENDPOINT is not the address of a hub; unset it, or write it as https://huggingface.co"
        )


def _checked_repo_id(repo_id: str) -> str:
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(repo_id)
    except ValueError as error:
        wanted = 'neither a folder or file here nor the name of a repository on the hub, as "gpt2" or "owner/name"'
        raise CheckpointNotFoundError(f"{repo_id[:100]!r} is {wanted}") from error
    return repo_id


def _checked_revision(revision: str) -> str:
    if not REVISION.fullmatch(revision) or ".." in revision or "//" in revision:
        raise CheckpointNotFoundError(f"revision={revision[:100]!r} is not the name of a branch, a tag or a commit")
    return revision
