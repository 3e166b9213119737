"""One GET of the hub: where it goes, who is given the token, and how long it may take."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urljoin, urlsplit

from ..errors import CheckpointNotFoundError

# A renamed repository and the storage behind the hub are two.
MOST_REDIRECTS = 8
FEW_WORDS = 4096
RENEW = "renew it (HF_TOKEN, or: hf auth login) or log out (hf auth logout)"
# Below this many bytes within one timeout, what comes is no answer but a way of holding the line.
SLOWEST = 2**13


class NoAnswerError(Exception):
    """Nothing came, or it broke off; `passing` where another try may go better."""

    def __init__(self, reason: str, *, passing: bool):
        super().__init__(reason)
        self.passing = passing


@dataclass(frozen=True)
class Answer:
    """An answer that is no redirect, before its body is read.

    Attributes:
        status: of HTTP.
        headers: by their names in small letters.
        passed: the headers of the redirects before it too, the earliest of each name. The hub tells there what the
            storage behind it does not know: the commit and the file's own ETag.
        from_hub: whether the hub itself answered, not the storage that it redirects to.
        body: its bytes, as they arrive; what stands below a refusal may be read already.
    """

    status: int
    headers: Mapping[str, str]
    passed: Mapping[str, str]
    from_hub: bool
    body: Iterator[bytes]


class HubClient:
    """GET requests through huggingface_hub's own session, with the user's proxies, certificates and token.

    The package of the session (httpx, httpx2) depends on the version of huggingface_hub, so none is imported here.

    Args:
        timeout: seconds for the connection and between two pieces of an answer; None for huggingface_hub's setting.

    Attributes:
        bytes_read: bytes of all bodies.
        n_requests: without redirects.
    """

    def __init__(self, timeout: float | None = None):
        self._timeout = timeout
        self._answered = False
        self.bytes_read = 0
        self.n_requests = 0

    @contextmanager
    def get(self, url: str, headers: Mapping[str, str]) -> Iterator[Answer]:
        """Ask for an address, follow its redirects, and close the connection's answer at the end of the block.

        Raises:
            NoAnswerError: no connection, no answer, a redirect that leads nowhere good.
        """
        try:
            hub, passed = origin(url), dict[str, str]()
        except ValueError as error:  # HF_ENDPOINT with a port that is no number
            raise NoAnswerError(one_line(error), passing=False) from error
        for _ in range(MOST_REDIRECTS + 1):
            with self._exchange(url, headers, with_token=origin(url) == hub) as response:
                found = {name.lower(): value for name, value in response.headers.items()}
                passed = found | passed
                if response.status_code >= 300:
                    self._finish(response, found)
                if response.status_code not in (301, 302, 303, 307, 308):
                    self.n_requests += 1
                    yield Answer(response.status_code, found, passed, origin(url) == hub, self._body(response))
                    return
                url = redirected(url, found.get("location", ""))
        raise NoAnswerError(f"it redirects more than {MOST_REDIRECTS} times", passing=False)

    @property
    def timeout(self) -> float:
        """Seconds without a byte after which an answer counts as broken off."""
        from huggingface_hub import constants

        return float(constants.HF_HUB_DOWNLOAD_TIMEOUT) if self._timeout is None else self._timeout

    @contextmanager
    def _exchange(self, url: str, headers: Mapping[str, str], *, with_token: bool) -> Iterator[Any]:
        from huggingface_hub.utils import get_session

        sent = {"user-agent": "posembed", "accept-encoding": "identity", **headers}
        if with_token and self._token is not None:
            sent["authorization"] = f"Bearer {self._token}"
        with ExitStack() as stack:
            try:
                asked = get_session().stream("GET", url, headers=sent, timeout=self.timeout, follow_redirects=False)
                response = stack.enter_context(asked)
            except Exception as error:  # of httpx or httpx2, of ssl, of a client of the user's own
                self.n_requests += 1
                raise self._no_answer(error) from error
            self._answered = True
            yield response

    @cached_property
    def _token(self) -> str | None:
        return _users_token()

    def _finish(self, response: Any, headers: Mapping[str, str]) -> None:
        """Read the few words that stand below a refusal or a redirect: without them the connection has to be closed."""
        if headers.get("content-length", "").isdecimal() and int(headers["content-length"]) <= FEW_WORDS:
            for _ in self._body(response):
                pass

    def _body(self, response: Any) -> Iterator[bytes]:
        chunks, since, arrived = response.iter_raw(), time.monotonic(), 0
        while True:
            try:
                chunk = next(chunks, None)
            except Exception as error:  # as above
                raise self._no_answer(error) from error
            if chunk is None:
                return
            self.bytes_read += len(chunk)
            arrived += len(chunk)
            yield chunk
            if time.monotonic() - since > self.timeout:
                if arrived < SLOWEST:
                    raise NoAnswerError(f"only {arrived} bytes came within {self.timeout:g} s", passing=True)
                since, arrived = time.monotonic(), 0

    def _no_answer(self, error: Exception) -> NoAnswerError:
        # By name: the classes are those of whichever package huggingface_hub uses.
        kinds = {kind.__name__ for kind in type(error).__mro__}
        reason = one_line(innermost(error))
        if "TimeoutException" in kinds:
            reason = f"nothing came for {self.timeout:g} s"
        if kinds & {"ConnectError", "ConnectTimeout"}:
            # Who cannot be reached at all will not be there in a second; who answered before may.
            return NoAnswerError(reason, passing=self._answered)
        return NoAnswerError(reason, passing=bool(kinds & {"TimeoutException", "NetworkError", "RemoteProtocolError"}))


def _users_token() -> str | None:
    """The user's token for the hub, where there is one and it may be used unasked.

    Not by huggingface_hub's own build_hf_headers, which may ask the hub what it knows of coding agents (2.4).
    """
    from huggingface_hub import constants, get_token

    try:
        token = None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()
    except Exception as error:  # a file that cannot be read, a login that cannot be renewed
        raise CheckpointNotFoundError(f"the token for the hub cannot be read: {one_line(error)}; {RENEW}") from error
    if token is not None and not (token.isascii() and token.isprintable()):
        # Said here, because the client would quote it.
        raise CheckpointNotFoundError(f"the token for the hub holds characters that no token has; {RENEW}")
    return token


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of an address: a token for one is not for another."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def site(url: str) -> str:
    """The part of an address that says whose it is."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def redirected(url: str, location: str) -> str:
    """The address that a redirect leads to, which may be relative.

    Raises:
        NoAnswerError: there is none, or it is none of the web, or one without the encryption that there was before.
    """
    try:
        target = urljoin(url, location)
        old, new = origin(url)[0], origin(target)
    except ValueError:  # a port that is no number, a bracket that does not close
        location = ""
    if not location:
        raise NoAnswerError("it redirects to no address", passing=False)
    if new[0] not in ("http", "https") or (old, new[0]) == ("https", "http") or not new[1]:
        raise NoAnswerError(f"it redirects to an address of the kind {one_line(new[0])[:20]}:", passing=False)
    return target


def innermost(error: BaseException) -> BaseException:
    """Return what went wrong first, which says most."""
    return error if error.__cause__ is None else innermost(error.__cause__)


def one_line(found: object, longest: int = 200) -> str:
    """Text that somebody else wrote, in one line that can be printed."""
    text = str(found) or (type(found).__name__ if isinstance(found, BaseException) else "")
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split()).strip(" .")
    return text if len(text) <= longest else text[:longest].rstrip() + " [...]"
