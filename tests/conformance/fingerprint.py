"""What the page of comparisons was made from, in sixteen digits."""

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ("rotary-embedding-torch", "torch", "transformers", "x-transformers")


def fingerprint() -> str:
    """Of all that the page depends on: the schemes, attention, the comparisons and the peers' pins."""
    package, tests = ROOT / "posembed", ROOT / "tests"
    folders = (package / "encodings", package / "models", tests / "conformance")
    files = [*(path for folder in folders for path in sorted(folder.glob("*.py"))), tests / "peers.py"]
    lock = (ROOT / "requirements" / "lock.txt").read_text(encoding="utf-8").splitlines()
    digest = hashlib.sha256("\n".join(line for line in lock if line.split("==")[0] in LIBRARIES).encode())
    for path in files:
        digest.update(path.read_text(encoding="utf-8").encode())
    return digest.hexdigest()[:16]
