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
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import unquote

# Any commit; the client needs one to name its snapshot.
COMMIT = "0123456789abcdef0123456789abcdef01234567"
# A repository for those who need no particular one, and a token that only its hub may see.
REPO = "someone/some-model"
TOKEN = "hf_secret"
CHUNK = 2**14
# What the hub's client asks for once in a process, whatever it is used for.
HARNESSES = "/api/agent-harnesses"
# Of what is called by one word, as gpt2 is, the hub tells the owner.
OWNER = "canonical"


@dataclass
class Asked:
    """A request, and with what it was answered; 0 before it was."""

    server: "HubServer"
    method: str
    path: str
    headers: Message
    status: int = 0


@dataclass
class Reply:
    """What is about to be sent. After ``send`` bytes of the body the server breaks off, and closes."""

    asked: Asked
    status: int
    headers: dict[str, str | None]
    body: bytes = b""
    file: Path | None = None
    send: int | None = None

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

    def __call__(self, reply: Reply) -> None:
        alike = [asked for asked in reply.asked.server.asked if re.search(self.pattern, asked.path)]
        if reply.asked in alike and self.after < len(alike) <= self.after + self.times:
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


def says_nothing(reply: Reply) -> None:
    """Takes the request, and sends not even a status."""
    reply.asked.server.closing.wait(60)
    raise ConnectionAbortedError


def login_page(reply: Reply) -> None:
    """What a hotel's network answers to everything."""
    reply.become(
        200, {"Content-Type": "text/html; charset=utf-8"}, b"<!doctype html><title>Welcome</title>" + b" " * 999
    )


class HubServer(ThreadingHTTPServer):
    """Serves folders as the main branches of repositories, by their names.

    Before ``start`` the port is taken and every connection to it is refused. ``asked`` holds every request, ``sent`` is
    the bytes of all bodies, ``faults`` are in force in their order; the branches can be moved to commits of other
    folders.
    """

    daemon_threads = True

    def __init__(self, repositories: dict[str, Path]):
        super().__init__(("127.0.0.1", 0), _Handler, bind_and_activate=False)
        self.server_bind()
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.branches = {"main": COMMIT}
        self.folders = {(repo, COMMIT): folder for repo, folder in repositories.items()}
        self.faults: list[Fault] = []
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self.closing = threading.Event()
        self.forget()

    @property
    def requests(self) -> list[str]:
        return [f"{asked.method} {asked.path}" for asked in self.asked]

    def forget(self) -> None:
        self.asked: list[Asked] = []
        self.sent = 0

    def start(self) -> None:
        self.server_activate()
        self.thread.start()

    def stop(self) -> None:
        self.closing.set()
        if self.thread.is_alive():
            self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing for clients that hang up, as they may."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def reply(self, asked: Asked) -> Reply:
        """What a hub without faults answers."""
        path = asked.path.partition("?")[0].replace(f"/{OWNER}/", "/")
        file_of = re.fullmatch(r"/(.+)/resolve/([^/]+)/(.+)", path)
        about = re.fullmatch(r"/api/models/(.+?)(?:/(revision|tree)/([^/]+))?", path)
        if file_of is None and about is None:
            return _refusal(asked, 404, "EntryNotFound")
        repo, revision, name = map(unquote, file_of.groups() if file_of else (about[1], about[3] or "main", ""))
        if repo not in {known for known, _ in self.folders}:
            return _refusal(asked, 401, "RepoNotFound", **{"X-Error-Message": "Repository not found"})
        commit = self.branches.get(revision, revision)
        if (repo, commit) not in self.folders:
            return _refusal(asked, 404, "RevisionNotFound")
        folder = self.folders[repo, commit]
        if about:
            return _told(asked, _listed(folder) if about[2] == "tree" else _about(repo, commit, folder))
        file = folder / name
        found = _file_reply(asked, file) if file.is_file() else _refusal(asked, 404, "EntryNotFound")
        found.headers["X-Repo-Commit"] = commit
        return found


def _refusal(asked: Asked, status: int, code: str, **headers: str) -> Reply:
    return Reply(asked, status, {"X-Error-Code": code, "Content-Length": "0", **headers})


def _about(repo: str, commit: str, folder: Path) -> dict[str, Any]:
    """What the hub tells of a repository, under its whole name."""
    name = repo if "/" in repo else f"{OWNER}/{repo}"
    return {"id": name, "sha": commit, "siblings": [{"rfilename": each["path"]} for each in _listed(folder)]}


def _listed(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    return [{"type": "file", "oid": "0", "size": file.stat().st_size, "path": file.name} for file in files]


def _told(asked: Asked, value: Any) -> Reply:
    body = json.dumps(value).encode()
    return Reply(asked, 200, {"Content-Type": "application/json", "Content-Length": str(len(body))}, body)


def _file_reply(asked: Asked, file: Path) -> Reply:
    whole, status = file.read_bytes(), 200
    headers = {"ETag": f'"{hashlib.sha256(whole).hexdigest()}"', "Accept-Ranges": "bytes"}
    body = whole
    if wanted := asked.headers.get("Range"):
        first, last = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted).groups()
        body, status = whole[int(first) : int(last or len(whole)) + 1], 206
        headers["Content-Range"] = f"bytes {first}-{int(first) + len(body) - 1}/{len(whole)}"
    return Reply(asked, status, {**headers, "Content-Length": str(len(body))}, body, file)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HubServer

    def setup(self) -> None:
        super().setup()
        # What the client leaves unread shall not count as sent.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CHUNK)

    def log_message(self, *_: object) -> None:
        """Nothing: the tests look at what a reader would see on stderr."""

    def do_GET(self) -> None:
        asked = Asked(self.server, self.command, self.path, self.headers)
        if self.path != HARNESSES:
            self.server.asked.append(asked)
        reply = self.server.reply(asked)
        try:
            for fault in self.server.faults:
                fault(reply)
            asked.status = reply.status
            self._send(reply)
        except ConnectionError:
            self.close_connection = True

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        if reply.headers.get("Content-Length") is None:
            # The end of the connection is the end of the body; the header makes http.server close it.
            reply.headers["Connection"] = "close"
        for name, value in {"X-Repo-Commit": COMMIT, **reply.headers}.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        body = b"" if self.command == "HEAD" else reply.body[: reply.send]
        for start in range(0, len(body), CHUNK):
            self.wfile.write(body[start : start + CHUNK])
            self.server.sent += len(body[start : start + CHUNK])
        if reply.send is not None and self.command == "GET":
            self.close_connection = True
