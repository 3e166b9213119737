"""A Hugging Face hub on this machine that serves one folder, and breaks down on request."""

import hashlib
import json
import re
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# Any commit; the client needs one to name its snapshot.
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class HubServer(ThreadingHTTPServer):
    """Serves ``folder`` as the main branch of ``repo``.

    Before ``start`` the port is taken and every connection to it is refused. ``fault`` is None, a status with which
    everything is answered, "cut" (the weights end half-way, and again wherever the client asks to go on) or "tokenizer"
    (500 for the tokenizer's files alone).
    """

    daemon_threads = True

    def __init__(self, folder: Path, repo: str):
        super().__init__(("127.0.0.1", 0), _Handler, bind_and_activate=False)
        self.server_bind()
        self.folder, self.repo, self.fault = folder, repo, None
        self.requests: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def start(self) -> None:
        self.server_activate()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HubServer

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def log_message(self, *_: object) -> None:
        """Nothing: the tests look at what a reader would see on stderr."""

    def _answer(self, with_body: bool) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        if isinstance(self.server.fault, int):
            return self._refuse(self.server.fault)
        path = self.path.partition("?")[0]
        if path.startswith("/api/"):
            return self._answer_api(path)
        match = re.fullmatch(rf"/{self.server.repo}/resolve/(main|{COMMIT})/(.+)", path)
        file = self.server.folder / match[2] if match else None
        if file is None or not file.is_file():
            return self._refuse(404, {"X-Error-Code": "EntryNotFound"})
        if self.server.fault == "tokenizer" and file.name in ("tokenizer.json", "vocab.txt"):
            return self._refuse(500)
        return self._send_file(file, with_body)

    def _answer_api(self, path: str) -> None:
        about = f"/api/models/{self.server.repo}"
        names = [str(file.relative_to(self.server.folder)) for file in self.server.folder.rglob("*") if file.is_file()]
        if path == about:
            self._send({"id": self.server.repo, "sha": COMMIT, "siblings": [{"rfilename": name} for name in names]})
        elif path in (f"{about}/tree/main", f"{about}/tree/{COMMIT}"):
            sizes = {name: (self.server.folder / name).stat().st_size for name in names}
            self._send([{"type": "file", "path": name, "size": size, "oid": COMMIT} for name, size in sizes.items()])
        else:
            self._refuse(404, {"X-Error-Code": "EntryNotFound"})

    def _refuse(self, status: int, headers: dict[str, str] | None = None) -> None:
        self._head(status, {"Content-Length": "0", **(headers or {})})

    def _send(self, answer: object) -> None:
        body = json.dumps(answer).encode()
        self._head(200, {"Content-Length": str(len(body)), "Content-Type": "application/json"})
        self.wfile.write(body)

    def _send_file(self, file: Path, with_body: bool) -> None:
        content = file.read_bytes()
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        headers = {
            "ETag": f'"{_digest(file)}"',
            "Accept-Ranges": "bytes",
            "Content-Length": str(len(content) - start),
            "Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}",
        }
        self._head(206 if "Range" in self.headers else 200, headers)
        if not with_body:
            return
        if self.server.fault == "cut" and file.suffix == ".safetensors":
            self.wfile.write(content[start : len(content) // 2])
            self.close_connection = True
        else:
            self.wfile.write(content[start:])

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"X-Repo-Commit": COMMIT, **headers}.items():
            self.send_header(name, value)
        self.end_headers()


@cache
def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
