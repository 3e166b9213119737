"""Write `requirements/lock.txt` anew: every version pinned, for every platform, without index addresses.

CUDA's packages are left out: torch pins them itself, exactly, and its CPU build wants none of them.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "lock.txt"
TORCH = "torch==2.13.0"
HEADER = (
    "# Made by `make lock` from pyproject.toml. Install with pip; PyTorch's CUDA packages follow torch's own pins.\n"
)
CUDA_PREFIXES = ("cuda-", "nvidia-", "triton")


def main():
    command = [sys.executable, "-m", "uv", "pip", "compile", "--universal", "--python-version", "3.11", "--quiet"]
    command += ["--no-annotate", "--no-header", "--constraints", "-"]
    command += ["--all-extras", "--group", "dev", "pyproject.toml"]
    # uv's output would name the index when one is configured; the pins alone are kept.
    result = subprocess.run(command, cwd=ROOT, input=TORCH, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"lock: uv could not resolve the versions: {result.stderr.strip()}")
    pins = [line for line in result.stdout.splitlines() if "==" in line and not line.startswith(CUDA_PREFIXES)]
    LOCK.write_text(HEADER + "\n".join(pins) + "\n")
    print(f"lock: {len(pins)} packages in {LOCK.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
