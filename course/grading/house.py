"""A sandbox that holds one submission: bubblewrap's or Docker's, watched for time, memory, processes and output."""

import importlib.util
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import no_fork
import psutil
from wire import decode, encode, write

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
IMAGE = "posembed-grading"
# What one submission may use at most; a cell half of its time, a call a quarter.
SECONDS = 240
MEMORY, DISK, PROCESSES, ANSWER = 4 * 2**30, 2**28, 64, 2**26
# What a process may ask for, in the sandbox and outside; a library asks for more than it uses.
ADDRESSES = 16 * 2**30
LOOK = 0.2
PACKAGE = Path(importlib.util.find_spec("posembed").origin).parent
ENVIRONMENT = {
    "PYTHONPATH": str(PACKAGE.parent),
    "PATH": "/usr/bin:/bin",
    "HOME": "/desk",
    "TMPDIR": "/desk",
    "MPLBACKEND": "Agg",
    "LANG": "C.UTF-8",
}
ENVIRONMENT |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONHASHSEED": "0"}
ENVIRONMENT |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}
ADVICE = "install bubblewrap (apt install bubblewrap) or Docker, or trust all submissions: make grade UNSAFE=yes"


class EndedError(Exception):
    """The sandbox is gone; the message says why."""


class GraderError(Exception):
    """The grader itself does not work here; no row would be right."""


class StudentError(Exception):
    """A function of the submission raised an error."""


def kind_of_house(unsafe=False):
    """Which sandbox there is: "bubblewrap" or "docker"; "none" only where that is asked for."""
    if unsafe:
        return "none"
    if shutil.which("bwrap") and not subprocess.run([*_bubblewrap(), "/usr/bin/true"], capture_output=True).returncode:
        return "bubblewrap"
    if shutil.which("docker") and not subprocess.run(["docker", "info"], capture_output=True).returncode:
        build = ["docker", "build", "--quiet", "--tag", IMAGE, "--file", HERE / "Dockerfile", ROOT]
        if subprocess.run(build, stdout=subprocess.DEVNULL).returncode == 0:
            return "docker"
    sys.exit(f"grade: there is no sandbox here; {ADVICE}")


def _bubblewrap():
    """Nothing to see but Python, its libraries and the package; nothing to write but a desk that is thrown away."""
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    for name, value in ENVIRONMENT.items():
        command += ["--setenv", name, value]
    command += ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib64"):
        path = Path("/", name)
        command += (
            ["--symlink", str(path.readlink()), str(path)] if path.is_symlink() else ["--ro-bind-try", path, path]
        )
    for path in dict.fromkeys([sys.base_prefix, sys.prefix, PACKAGE, HERE / "wire.py", HERE / "sandbox.py"]):
        command += ["--ro-bind", path, path]
    for path in ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"):
        command += ["--ro-bind-try", path, path]
    command += ["--proc", "/proc", "--dev", "/dev", "--size", str(DISK), "--tmpfs", "/desk", "--chdir", "/desk"]
    # Both are in memory too, and have no bound of their own.
    command += ["--remount-ro", "/dev", "--remount-ro", "/"]
    return [str(word) for word in command]


def _docker(name):
    command = ["docker", "run", "--rm", "--interactive", "--init", "--name", name, "--network", "none", "--read-only"]
    command += ["--memory", str(MEMORY), "--memory-swap", str(MEMORY), "--pids-limit", str(PROCESSES)]
    command += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", "65534:65534"]
    command += ["--tmpfs", f"/desk:size={DISK},mode=1777", "--workdir", "/desk"]
    for option, value in ENVIRONMENT.items():
        if option not in ("PATH", "PYTHONPATH"):
            command += ["--env", f"{option}={value}"]
    return [*command, IMAGE]


class House:
    """A sandbox with one submission in it, from its first cell to the last question about its names."""

    def __init__(self, kind, cells, seconds=SECONDS):
        program, self.name = [sys.executable, str(HERE / "sandbox.py")], f"{IMAGE}-{secrets.token_hex(8)}"
        command = {"bubblewrap": [*_bubblewrap(), *program], "docker": _docker(self.name), "none": program}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.desk = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        held = no_fork.descriptor() if kind == "bubblewrap" else None
        if held is not None:
            command[kind][1:1] = ["--seccomp", str(held)]
            pipes["pass_fds"] = [held]
        self.process = subprocess.Popen(command[kind], start_new_session=True, cwd=self.desk.name, **pipes)
        if held is not None:
            os.close(held)
        self.why, self.kind, self.seconds, self.n_asked = "", kind, seconds, 0
        # It says so before anything of the submission is run.
        if not self.process.stdout.readline(ANSWER):
            raise GraderError(f"the sandbox cannot be started: {self.process.stderr.read().decode().strip()[-300:]}")
        threading.Thread(target=self._watch, daemon=True).start()
        limits = {"cell": max(1, seconds // 2), "call": max(1, seconds // 4), "addresses": ADDRESSES}
        told = self.ask({"cells": cells, "limits": limits}).get("errors", [])
        self.errors = [f"cell {number}: {error}" for number, error in told]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end("")

    def end(self, why):
        """End all that runs in it."""
        self.why = self.why or why
        if self.kind == "docker":
            subprocess.run(["docker", "kill", self.name], capture_output=True)
        if self.kind == "none":
            for each in _family(self.process):
                each.kill()
        self.process.kill()
        self.process.wait()
        self.desk.cleanup()

    def ask(self, message):
        """Say something; give the answer, whatever it holds."""
        self.n_asked += 1
        try:
            write(self.process.stdin, message | {"number": self.n_asked})
            line = self.process.stdout.readline(ANSWER)
            if line.endswith(b"\n"):
                if (answer := _answer(line, self.n_asked)) is not None:
                    return answer
                self.end("it wrote something where the grader reads its answers")
            self.end(f"gave back more than {ANSWER // 2**20} MB" if line else "")
        except BrokenPipeError:
            pass
        time.sleep(2 * LOOK)  # the watch says why, where it was it
        self.process.wait()
        self.why = self.why or "the notebook ended its own process"
        raise EndedError(self.why)

    def _watch(self):
        start = time.monotonic()
        while self.process.poll() is None:
            if time.monotonic() - start > self.seconds:
                self.end(f"took more than {self.seconds} s")
            family = _family(self.process)
            if len(family) > PROCESSES:
                self.end(f"started more than {PROCESSES} processes")
            if sum(_memory(each) for each in family) > MEMORY:
                self.end(f"used more than {MEMORY // 2**30} GB of memory")
            time.sleep(LOOK)


def _answer(line, number):
    """What the sandbox answered to the question with this number; None for whatever else a submission has written."""
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        answer = None
    return answer if isinstance(answer, dict) and answer.get("number") == number else None


def _family(process):
    try:
        return [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    except psutil.Error:
        return []


def _memory(process):
    try:
        # Pages that processes share count once, where the system tells.
        told = process.memory_full_info()
        return getattr(told, "pss", told.rss)
    except psutil.Error:
        return 0


class Names(dict):
    """The names of a submission, as otter's tests ask for them: values are fetched, functions called in the sandbox."""

    def __init__(self, house, tests):
        super().__init__(__folder__=str(tests))
        self.house = house
        self.too_slow = {}

    def get(self, name, default=None):
        """The value of a name of the submission; otter asks so for what a test names."""
        if name in self:
            return self[name]
        return self._ask({"get": name}, name)

    def _ask(self, request, name):
        # What took too long once is not asked again: it would take the time of the other questions.
        if name in self.too_slow:
            raise StudentError(self.too_slow[name])
        answer = self.house.ask(request)
        if answer.get("too slow"):
            self.too_slow[name] = f"`{name}` {str(answer.get('error'))[:1000]}"
        return self._value(answer, name)

    def _value(self, answer, name):
        if "error" in answer:
            raise StudentError(str(answer["error"])[:1000])
        try:
            return decode(answer["value"], self._function)
        except (TypeError, ValueError, KeyError, AttributeError, RuntimeError) as error:
            raise StudentError(f"`{name}` cannot be graded: {error}") from None

    def _function(self, name, _source):
        def call(*args, **kwargs):
            request = {"call": name, "args": encode(args), "kwargs": encode(kwargs)}
            return self._ask(request, name)

        call.remote, call.__name__ = name, str(name)
        return call
