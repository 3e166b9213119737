"""Measure built pages with Lighthouse, on a phone and a desktop; end with 1 where a score is below 95.

Usage: python tools/lighthouse.py [PAGE ...]

Needs node; npx fetches Lighthouse. A score depends on the machine and on what else it does: measure where nothing runs.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import whole
from chapters import ROOT

sys.path.insert(0, str(ROOT / "tests" / "browser"))
from chromium import QuietHandler, find_chromium, serve_folder

LIGHTHOUSE = "lighthouse@12.8.2"
# One of each kind: landing page, text, chapters with figures, a scheme, reference, a table of everything.
KINDS = (
    "intro",
    "glossary",
    "why/permutation-equivariance",
    "encodings/relative-positions",
    "schemes/rope",
    "api-models",
)
LEAST = 95
NO_NODE = "lighthouse: it needs npx, which comes with node; install node 20 or later"


class Handler(QuietHandler):
    """Files as a host of pages sends them: text compressed."""

    def do_GET(self):  # noqa: N802 (the name that the library calls)
        """Send a file."""
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            self.send_error(404)
            return
        data, kind = path.read_bytes(), self.guess_type(path)
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if kind.startswith("text/") else kind)
        self.send_header("Cache-Control", "max-age=600")
        if kind.startswith("text/") or kind.endswith(("javascript", "json", "xml")):
            data = gzip.compress(data)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def measure(address, device):
    """The scores of a page by category, of 100."""
    command = ["npx", "--yes", LIGHTHOUSE, address, "--quiet", "--output=json"]
    command += ["--chrome-flags=--headless=new --no-sandbox", *(["--preset=desktop"] if device == "desktop" else [])]
    environment = os.environ | {"CHROME_PATH": str(find_chromium())}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"lighthouse: {address} was not measured: {done.stderr.strip()[-400:]}")
    categories = json.loads(done.stdout)["categories"].values()
    return {each["title"]: round(100 * (each["score"] or 0)) for each in categories}


def main(names):
    """Measure the pages and say what is below the least score."""
    whole.needs_book("lighthouse")
    if shutil.which("npx") is None:
        sys.exit(NO_NODE)
    if find_chromium() is None:
        sys.exit(whole.NO_CHROMIUM.format("lighthouse"))
    known, low = [name for name, _ in whole.contents()], 0
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"lighthouse: there is no page {unknown[0]!r}; there are {', '.join(known)}")
    with serve_folder(whole.HTML, Handler) as address:
        for name in names or KINDS:
            for device in ("phone", "desktop"):
                scores = measure(f"{address}/{name}.html", device)
                low += min(scores.values()) < LEAST
                print(f"{name}, {device}: {', '.join(f'{k} {v}' for k, v in scores.items())}", flush=True)
    sys.exit(f"lighthouse: {low} of these have a score below {LEAST}" if low else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
