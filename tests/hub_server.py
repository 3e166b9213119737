"""A Hugging Face hub on this machine that serves folders, and breaks down on request.

A fault is a function that changes a reply before it is sent. ``server.faults`` holds those that are in force:

    server.faults = [On("safetensors", answers(500), times=2), redirects_to(storage)]
"""

import hashlib
import json
import re
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from email.message import Message
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from pathlib import Path
from urllib.parse import unquote

# Any commit; the client needs one to name its snapshot.
COMMIT = "0123456789abcdef0123456789abcdef01234567"
# A repository for those who need no particular one, and a token that only its hub may see.
REPO = "someone/some-model"
TOKEN = "hf_secret"
CHUNK = 2**14


@dataclass
class Asked:
    """A request, and with what it was answered; 0 before it was."""

    method: str
    path: str
    headers: Message
    status: int = 0

    @property
    def range(self) -> str | None:
        return self.headers.get("Range")


@dataclass
class Reply:
    """What is about to be sent. After ``send`` bytes of the body the server breaks off: it closes, or falls silent.

    ``mute`` is silent from the first header on.
    """

    asked: Asked
    status: int
    headers: dict[str, str | None]
    body: bytes = b""
    file: Path | None = None
    send: int | None = None
    silent: bool = False
    mute: bool = False

    def become(self, status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        self.status, self.body = status, body
        self.headers = {"Content-Length": str(len(body)), **(headers or {})}


Fault = Callable[[Reply], None]


@dataclass
class On:
    """A fault of some requests only: whose path holds the pattern, the first ``after`` of them spared."""

    pattern: str
    fault: Fault
    times: float = inf
    after: int = 0
    met: int = field(default=0, init=False)

    def __call__(self, reply: Reply) -> None:
        if re.search(self.pattern, reply.asked.path):
            self.met += 1
            if self.after < self.met <= self.after + self.times:
                self.fault(reply)


def answers(status: int, body: bytes = b"", **headers: str) -> Fault:
    """Another status, with nothing or with these words below it; underscores in a header's name stand for hyphens."""
    return lambda reply: reply.become(status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


def redirects_to(address: str, status: int = 302) -> Fault:
    """The same path at another place; ``address`` may be a whole one, with {path} where the path belongs."""

    def fault(reply: Reply) -> None:
        target = address.format(path=reply.asked.path) if "{path}" in address else address
        # As the hub does it: the storage knows neither the commit nor the repository's own tag.
        told = {"Location": target, "X-Linked-Etag": reply.headers.get("ETag") or "", "X-Repo-Commit": COMMIT}
        reply.become(status, told, b"Found. Redirecting to somewhere")

    return fault


def ignores_range(reply: Reply) -> None:
    """Sends the whole file, as servers may."""
    if reply.file is not None:
        reply.status, reply.body = 200, reply.file.read_bytes()
        reply.headers |= {"Content-Range": None, "Accept-Ranges": None, "Content-Length": str(len(reply.body))}


def cuts_off(after: int) -> Fault:
    """Closes the connection after so many bytes of the body."""
    return lambda reply: setattr(reply, "send", after)


def stalls(after: int = 0) -> Fault:
    """Sends so many bytes of the body, and then nothing for as long as the server runs."""
    return lambda reply: vars(reply).update(send=after, silent=True)


def says_nothing(reply: Reply) -> None:
    """Takes the request, and sends not even a status."""
    reply.mute = True


def says(**headers: str | None) -> Fault:
    """Other headers than the true ones, None for no such header."""
    return lambda reply: reply.headers.update({name.replace("_", "-"): told for name, told in headers.items()})


def login_page(reply: Reply) -> None:
    """What a hotel's network answers to everything."""
    reply.become(
        200, {"Content-Type": "text/html; charset=utf-8"}, b"<!doctype html><title>Welcome</title>" + b" " * 999
    )


def cuts_weights_in_half(reply: Reply) -> None:
    """The weights end half-way, and again wherever the client asks to go on."""
    if reply.file is not None and reply.file.suffix == ".safetensors":
        size = reply.file.stat().st_size
        reply.send = max(0, size // 2 - (size - len(reply.body)))


class HubServer(ThreadingHTTPServer):
    """Serves ``folder`` as the main branch of ``repo``.

    Before ``start`` the port is taken and every connection to it is refused. ``asked`` holds every request, ``sent`` is
    the bytes of all bodies; branches can be moved to the commits of other folders.
    """

    daemon_threads = True

    def __init__(self, folder: Path, repo: str):
        super().__init__(("127.0.0.1", 0), _Handler, bind_and_activate=False)
        self.server_bind()
        self.repo = repo
        self.branches = {"main": COMMIT}
        self.folders = {COMMIT: folder}
        self.faults = []
        self.thread: threading.Thread | None = None
        self.closing = threading.Event()
        self.forget()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def faults(self) -> list[Fault]:
        """What is in force from now on, in this order; requests are counted from here."""
        return self._faults

    @faults.setter
    def faults(self, faults: list[Fault]) -> None:
        self._faults = [replace(fault) if isinstance(fault, On) else fault for fault in faults]

    @property
    def requests(self) -> list[str]:
        return [f"{asked.method} {asked.path}" for asked in self.asked]

    def forget(self) -> None:
        self.asked: list[Asked] = []
        self.sent = 0

    def start(self) -> None:
        self.server_activate()
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.closing.set()
        if self.thread is not None:
            self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing for clients that hang up, as they may."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def reply(self, asked: Asked) -> Reply:
        """What a hub without faults answers."""
        path = asked.path.partition("?")[0]
        if path.startswith("/api/"):
            return self._api_reply(asked, path)
        match = re.fullmatch(r"/(.+)/resolve/([^/]+)/(.+)", path)
        if match is None:
            return _refusal(asked, 404, "EntryNotFound")
        if match[1] != self.repo:
            return _refusal(asked, 401, "RepoNotFound", **{"X-Error-Message": "Repository not found"})
        revision = unquote(match[2])
        commit = self.branches.get(revision, revision)
        if commit not in self.folders:
            return _refusal(asked, 404, "RevisionNotFound")
        file = self.folders[commit] / unquote(match[3])
        found = _file_reply(asked, file) if file.is_file() else _refusal(asked, 404, "EntryNotFound")
        found.headers["X-Repo-Commit"] = commit
        return found

    def _api_reply(self, asked: Asked, path: str) -> Reply:
        about, commit = f"/api/models/{self.repo}", self.branches["main"]
        folder = self.folders[commit]
        names = [str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()]
        if path == about:
            return _json(asked, {"id": self.repo, "sha": commit, "siblings": [{"rfilename": name} for name in names]})
        if path in (f"{about}/tree/main", f"{about}/tree/{commit}"):
            sizes = {name: (folder / name).stat().st_size for name in names}
            files = [{"type": "file", "path": name, "size": size, "oid": commit} for name, size in sizes.items()]
            return _json(asked, files)
        return _refusal(asked, 404, "EntryNotFound")


class HubOfSeveral(HubServer):
    """A hub with several repositories: folders by their names."""

    def __init__(self, folders: dict[str, Path]):
        super().__init__(Path(), "")
        self.hubs = {repo: HubServer(folder, repo) for repo, folder in folders.items()}

    def reply(self, asked: Asked) -> Reply:
        path = asked.path.partition("?")[0].removeprefix("/api/models")
        asked_for = (hub for repo, hub in self.hubs.items() if path == f"/{repo}" or path.startswith(f"/{repo}/"))
        return next(asked_for, super()).reply(asked)

    def stop(self) -> None:
        for hub in self.hubs.values():
            hub.server_close()
        super().stop()


def _refusal(asked: Asked, status: int, code: str, **headers: str) -> Reply:
    return Reply(asked, status, {"X-Error-Code": code, "Content-Length": "0", **headers})


def _json(asked: Asked, answer: object) -> Reply:
    body = json.dumps(answer).encode()
    return Reply(asked, 200, {"Content-Length": str(len(body)), "Content-Type": "application/json"}, body)


def _file_reply(asked: Asked, file: Path) -> Reply:
    size = file.stat().st_size
    headers = {"ETag": f'"{_digest(file, file.stat().st_mtime_ns)}"', "Accept-Ranges": "bytes"}
    if asked.range is None:
        body = file.read_bytes()
        return Reply(asked, 200, {**headers, "Content-Length": str(size)}, body, file)
    start, stop = _asked_range(asked.range, size)
    if start >= stop:
        return Reply(asked, 416, {"Content-Range": f"bytes */{size}", "Content-Length": "0"})
    with file.open("rb") as source:
        source.seek(start)
        body = source.read(stop - start)
    headers |= {"Content-Length": str(len(body)), "Content-Range": f"bytes {start}-{stop - 1}/{size}"}
    return Reply(asked, 206, headers, body, file)


def _asked_range(text: str, size: int) -> tuple[int, int]:
    first, last = re.fullmatch(r"bytes=(\d*)-(\d*)", text).groups()
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(size, int(last) + 1) if last else size


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HubServer

    def setup(self) -> None:
        super().setup()
        # What the client leaves unread shall not count as sent.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CHUNK)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def log_message(self, *_: object) -> None:
        """Nothing: the tests look at what a reader would see on stderr."""

    def _answer(self, with_body: bool) -> None:
        asked = Asked(self.command, self.path, self.headers)
        self.server.asked.append(asked)
        reply = self.server.reply(asked)
        for fault in self.server.faults:
            fault(reply)
        asked.status = reply.status
        try:
            self._send(reply, with_body)
        except ConnectionError:
            self.close_connection = True

    def _send(self, reply: Reply, with_body: bool) -> None:
        if reply.mute:
            self.close_connection = True
            self.server.closing.wait(60)
            return
        self.send_response(reply.status)
        if reply.headers.get("Content-Length") is None:
            # The end of the connection is the end of the body; the header makes http.server close it.
            reply.headers["Connection"] = "close"
        for name, value in {"X-Repo-Commit": COMMIT, **reply.headers}.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        if with_body:
            self._send_body(reply)

    def _send_body(self, reply: Reply) -> None:
        body = reply.body[: reply.send]
        for start in range(0, len(body), CHUNK):
            self.wfile.write(body[start : start + CHUNK])
            self.server.sent += len(body[start : start + CHUNK])
        if reply.send is not None:
            self.close_connection = True
            if reply.silent:
                self.server.closing.wait(60)


@cache
def _digest(file: Path, changed: int) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
