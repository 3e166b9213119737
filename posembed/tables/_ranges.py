"""Parts of one remote file, by HTTP Range (RFC 9110, section 14), from servers that may break off or lie."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..errors import CheckpointNotFoundError
from ._http import Answer, HubClient, NoAnswerError, one_line, site

# Seconds before the second and the third try.
WAITS = (1.0, 3.0)
# Who asks for a longer wait (429, 503) is not waited for.
LONGEST_WAIT = 30.0
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
# Where a server ignores Range, this much is read to get to what follows it.
MOST_SKIPPED = 2**16
# config.json, or the index of a sharded checkpoint.
LARGEST_WHOLE = 32 * 2**20
TOO_LONG = f"it has more than {LARGEST_WHOLE:,} bytes, too many for a file that describes a checkpoint"
INSTEAD = "load_table(..., download=True) fetches the whole file instead"
WAY_OUT = "check the internet connection, or put the checkpoint in the folder that POSEMBED_CHECKPOINTS names"
LOGIN_PAGE = "a web page came instead; is there a network's login page in between?"


class RefusedError(Exception):
    """The server answered, and did not give the file."""

    def __init__(self, status: int, headers: Mapping[str, str], *, from_hub: bool):
        self.status, self.from_hub = status, from_hub
        self.code = headers.get("x-error-code", "")
        self.words = one_line(headers.get("x-error-message", ""))
        super().__init__(" ".join(filter(None, (str(status), one_line(self.code), self.words))))


class _PassingError(Exception):
    """What another try may mend."""

    def __init__(self, reason: str, wait: float = 0.0):
        super().__init__(reason)
        self.wait = wait


@dataclass
class _Part:
    """What is wanted of a file, and what there is of it so far; `stop` is None for the whole file."""

    start: int
    stop: int | None
    data: bytearray = field(default_factory=bytearray)

    @property
    def next(self) -> int:
        return self.start + len(self.data)


class RemoteFile:
    """One file behind one address, of which any part can be fetched; all parts are of the same state of the file.

    Args:
        client: that asks.
        url: where the hub keeps the file; may be set to another address of the same file.
        what: what to call the file in messages.
        on_answer: called with every answer that is no failure of the server, before anything is taken from it.

    Attributes:
        size: bytes in the whole file, once an answer told it; None before.
    """

    def __init__(self, client: HubClient, url: str, what: str, on_answer: Callable[[Answer], None], size: int | None):
        self._client, self.url, self._what, self._on_answer = client, url, what, on_answer
        self._tags: dict[str, str] = {}
        self.size = size

    def fetch(self, start: int, stop: int) -> bytes:
        """Return the bytes from start to stop, fewer only where the file ends before.

        Raises:
            CheckpointNotFoundError: it could not be had, in one line.
            RefusedError: the server says no; whoever knows the repository says what that means.
        """
        return self._fetch(_Part(start, stop))

    def fetch_all(self) -> bytes:
        """Return the whole file, which must be a small text; raises as `fetch` does."""
        data = self._fetch(_Part(0, None))
        if data.lstrip()[:1] == b"<":
            raise self._hub_error(LOGIN_PAGE)
        return data

    def _fetch(self, part: _Part) -> bytes:
        for wait in (*WAITS, None):
            try:
                self._try(part)
                return bytes(part.data)
            except _PassingError as error:
                failed = error
            except NoAnswerError as error:
                if not error.passing:
                    raise self._hub_error(f"{error}; {WAY_OUT}") from error
                failed = _PassingError(str(error))
            if failed.wait > LONGEST_WAIT:
                raise self._hub_error(f"{failed}; it asks to be left alone for {failed.wait:.0f} s") from failed
            if wait is not None:
                pause(max(wait, failed.wait))
        raise self._hub_error(f"{failed}, {len(WAITS) + 1} times; try again later") from failed

    def _try(self, part: _Part) -> None:
        if part.stop is None:
            part.data.clear()
            headers = {}
        else:
            headers = {"range": f"bytes={part.next}-{part.stop - 1}"}
        with self._client.get(self.url, headers) as answer:
            if answer.status in PASSING:
                raise _PassingError(f"the answer is {answer.status}", asked_wait(answer.headers))
            self._on_answer(answer)
            if answer.status == 416 and answer.headers.get("content-range") == "bytes */0":
                self._set_size(0)
                return
            if answer.status not in (200, 206):
                raise RefusedError(answer.status, answer.headers, from_hub=answer.from_hub)
            self._check_same(answer)
            self._take(part, answer, self._begins(part, answer))

    def _begins(self, part: _Part, answer: Answer) -> int:
        """Where in the file the body begins; sets the size."""
        if answer.headers.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
            raise self._hub_error(f"it came packed, though that was ruled out; {INSTEAD}")
        if "text/html" in answer.headers.get("content-type", ""):
            raise self._hub_error(LOGIN_PAGE)
        if answer.status == 206:
            return self._begins_in_range(part, part.stop or LARGEST_WHOLE, answer)
        length = answer.headers.get("content-length", "")
        if length.isdecimal():
            self._set_size(int(length))
            if part.stop is None and int(length) > LARGEST_WHOLE:
                raise self._hub_error(TOO_LONG)
        elif part.stop is not None:
            raise self._hub_error(f"the server ignores Range and does not say how long the file is; {INSTEAD}")
        if part.next > MOST_SKIPPED:
            raise self._hub_error(f"the server, or a proxy in between, ignores Range; {INSTEAD}")
        return 0

    def _begins_in_range(self, part: _Part, stop: int, answer: Answer) -> int:
        told = answer.headers.get("content-range", "")
        match = re.fullmatch(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})", told)
        if match is None:
            raise self._hub_error(f"bytes came without saying which (Content-Range: {one_line(told or 'none')})")
        first, last, size = map(int, match.groups())
        length = answer.headers.get("content-length", str(last + 1 - first))
        if not part.next == first <= last < min(stop, size) or length != str(last + 1 - first):
            asked = f"bytes {part.next} to {stop - 1}"
            raise self._hub_error(f"{asked} were asked for, and {length} bytes came as {one_line(told)}; {INSTEAD}")
        self._set_size(size)
        return first

    def _take(self, part: _Part, answer: Answer, at: int) -> None:
        """Append what is wanted and not there yet; stop reading when that is all there."""
        stop = min(part.stop or LARGEST_WHOLE + 1, LARGEST_WHOLE + 1 if self.size is None else self.size)
        ends_itself = answer.headers.get("content-length") == str(stop - at)
        for chunk in answer.body:
            part.data += chunk[max(0, part.next - at) :]
            at += len(chunk)
            if part.next >= stop and not ends_itself:
                break
        del part.data[max(0, stop - part.start) :]
        if part.stop is None and part.next > LARGEST_WHOLE:
            raise self._hub_error(TOO_LONG)
        if self.size is None:  # only the end told it
            self.size = part.next
        elif part.next < stop:
            raise _PassingError(f"it broke off after {len(part.data):,} of {stop - part.start:,} bytes")

    def _check_same(self, answer: Answer) -> None:
        """The file's tags are those of the answers before: the hub's own where it tells it, else the storage's."""
        hubs = answer.passed.get("x-linked-etag")
        whose, tag = ("hub", hubs) if hubs else ("storage", answer.headers.get("etag"))
        if tag and self._tags.setdefault(whose, tag) != tag:
            raise self._changed()

    def _set_size(self, size: int) -> None:
        if self.size not in (None, size):
            raise self._changed()
        self.size = size

    def _changed(self) -> CheckpointNotFoundError:
        return self._hub_error("the file changed between two requests; try again")

    def _hub_error(self, reason: str) -> CheckpointNotFoundError:
        return CheckpointNotFoundError(f"{self._what} could not be read from {site(self.url)}: {reason}")


def asked_wait(headers: Mapping[str, str]) -> float:
    """Seconds that a server asks to wait (Retry-After, RFC 9110, or the hub's own RateLimit), 0 where it does not."""
    told = headers.get("retry-after", "").strip()
    if told.isdecimal():
        return float(told)
    limit = re.search(r";\s*r=0;\s*t=([0-9]{1,9})", headers.get("ratelimit", ""))
    if limit:
        return float(limit[1])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(told).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def pause(seconds: float) -> None:
    """Wait; the tests count the seconds instead."""
    time.sleep(seconds)
