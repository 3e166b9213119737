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
from absent import folders
from sandbox import STALLED
from wire import decode, encode, write

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
IMAGE = "posembed-grading"
# What is in the sandbox, besides the submission.
INSIDE = [HERE / name for name in ("absent.py", "checking.py", "sandbox.py", "watch.py", "wire.py")]
# What the cells of a submission may take of a processor, one cell half of it and all together three quarters; and then
# once more its answers, a call a quarter. What the grader itself computes, and what other programs take, is not theirs;
# by the clock it is STALLED times as much.
SECONDS = 240
# After a cell or a call that ends the sandbox, what is left is run in a new one, so many times in all.
LIVES = 3
NOBODY = 65534
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
# It would warn that nothing can be shared here, and a notebook may have made errors of warnings.
ENVIRONMENT |= {"JOBLIB_MULTIPROCESSING": "0"}
ADVICE = "install bubblewrap (apt install bubblewrap) or Docker, or trust all submissions: make grade UNSAFE=yes"


class EndedError(Exception):
    """The sandbox is gone; the message says why."""


class GraderError(Exception):
    """The grader itself does not work here; no row would be right."""


class StudentError(Exception):
    """A name of the submission is missing, of a type that cannot be graded, or a function that raised an error."""


def kind_of_house(unsafe=False):
    """Which sandbox there is: "bubblewrap" or "docker"; "none" only where that is asked for.

    A fourth, "user", is for containers that hold one submission, as Gradescope's do: another user's process.
    """
    if unsafe:
        return "none"
    if has_bubblewrap():
        return "bubblewrap"
    if shutil.which("docker") and not subprocess.run(["docker", "info"], capture_output=True).returncode:
        build = ["docker", "build", "--quiet", "--tag", IMAGE, "--file", HERE / "Dockerfile", ROOT]
        if subprocess.run(build, stdout=subprocess.DEVNULL).returncode == 0:
            return "docker"
    sys.exit(f"grade: there is no sandbox here; {ADVICE}")


def has_bubblewrap():
    """Whether it is here, and may make namespaces."""
    return bool(
        shutil.which("bwrap") and not subprocess.run([*_bubblewrap(), "/usr/bin/true"], capture_output=True).returncode
    )


def _bubblewrap(away=()):
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
    for path in dict.fromkeys([sys.base_prefix, sys.prefix, PACKAGE, *INSIDE]):
        command += ["--ro-bind", path, path]
    for path in ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"):
        command += ["--ro-bind-try", path, path]
    for path in away:
        command += ["--size", "4096", "--tmpfs", path, "--remount-ro", path]
    command += ["--proc", "/proc", "--dev", "/dev", "--size", str(DISK), "--tmpfs", "/desk", "--chdir", "/desk"]
    # Both are in memory too, and have no bound of their own.
    command += ["--remount-ro", "/dev", "--remount-ro", "/"]
    return [str(word) for word in command]


def _docker(name, seconds):
    command = ["docker", "run", "--rm", "--interactive", "--init", "--name", name, "--network", "none", "--read-only"]
    # Its processes are nobody's children here, so that nobody else counts what they compute.
    command += ["--ulimit", f"cpu={2 * seconds}"]
    command += ["--memory", str(MEMORY), "--memory-swap", str(MEMORY), "--pids-limit", str(PROCESSES)]
    command += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", "65534:65534"]
    command += ["--tmpfs", f"/desk:size={DISK},mode=1777", "--workdir", "/desk"]
    for option, value in ENVIRONMENT.items():
        if option not in ("PATH", "PYTHONPATH"):
            command += ["--env", f"{option}={value}"]
    return [*command, IMAGE]


class Box:
    """A sandbox, from its start to its end.

    Args:
        kind: as `kind_of_house` gives it.
        seconds: how much of a processor it may take until `begin` is called, and then once more.
        away: what is taken away before anything is run, as a question forbids it.
    """

    def __init__(self, kind, seconds, away=()):
        program, self.name = [sys.executable, str(HERE / "sandbox.py")], f"{IMAGE}-{secrets.token_hex(8)}"
        command = {
            "bubblewrap": [*_bubblewrap(folders(away) if away else ()), *program],
            "docker": _docker(self.name, seconds),
        }.get(kind, program)
        options = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.desk = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        if kind == "bubblewrap":
            # Its own first process keeps what it was given, and can be looked at from inside.
            options["env"] = {"PATH": os.environ["PATH"]}
        held = no_fork.descriptor() if kind == "bubblewrap" else None
        if held is not None:
            command[1:1] = ["--seccomp", str(held)]
            options["pass_fds"] = [held]
        if kind == "user":
            command = self._as_nobody()
            options |= {"user": NOBODY, "group": NOBODY, "extra_groups": [], "env": ENVIRONMENT | self._own_desk()}
        try:
            self.process = subprocess.Popen(command, start_new_session=True, cwd=self.desk.name, **options)
        except OSError as error:
            raise GraderError(f"the sandbox cannot be started: {error}") from None
        finally:
            if held is not None:
                os.close(held)
        self.why, self.kind, self.seconds, self.n_asked = "", kind, seconds, 0
        self.by_clock, self.since, self.computed, self.before = 0.0, None, 0.0, 0.0
        # It says so before anything of the submission is run.
        if not self.process.stdout.readline(ANSWER):
            raise GraderError(f"the sandbox cannot be started: {self.process.stderr.read().decode().strip()[-300:]}")
        threading.Thread(target=self._watch, daemon=True).start()
        self.ask({"addresses": ADDRESSES})
        if away:
            self.ask({"away": list(away)})
        self.begin()

    def _as_nobody(self):
        """The program, where a user sees it who may not see what lies beside it."""
        for path in INSIDE:
            shutil.copy(path, self.desk.name)
        os.chown(self.desk.name, NOBODY, NOBODY)
        return [sys.executable, str(Path(self.desk.name, "sandbox.py"))]

    def _own_desk(self):
        return {"HOME": self.desk.name, "TMPDIR": self.desk.name}

    def end(self, why):
        """End all that runs in it."""
        self.why = self.why or why
        if self.kind == "docker":
            subprocess.run(["docker", "kill", self.name], capture_output=True)
        if self.kind in ("none", "user"):
            for each in _family(self.process):
                each.kill()
        self.process.kill()
        self.process.wait()
        self.desk.cleanup()

    def ask(self, message, functions=()):
        """Say something; give the answer, whatever it holds.

        Args:
            message: what is asked.
            functions: those that the message hands over, by their places: until the answer they are computed here.
        """
        self.n_asked += 1
        self.since = time.monotonic()
        try:
            write(self.process.stdin, message | {"number": self.n_asked})
            while (line := self.process.stdout.readline(ANSWER)).endswith(b"\n"):
                answer = _answer(line, self.n_asked)
                if answer is None:
                    self.end("wrote something where the grader reads its answers")
                    break
                if "place" not in answer:
                    return answer
                write(self.process.stdin, _computed_here(functions, answer))
            self.end(f"gave back more than {ANSWER // 2**20} MB" if line else "")
        except BrokenPipeError:
            pass
        finally:
            self.by_clock, self.since = self._by_clock(), None
        time.sleep(2 * LOOK)  # the watch says why, where it was it
        self.process.wait()
        self.why = self.why or "ended the notebook's own process"
        raise EndedError(self.why)

    def begin(self):
        """Count the time anew."""
        self.by_clock, self.before = 0.0, self.before + self.spent()

    def spent(self):
        """What it took of a processor since it began; or of the clock, so much as others cannot have taken of it."""
        self.computed = max(self.computed, sum(map(_computed, _family(self.process))))
        return max(self.computed - self.before, self._by_clock() / STALLED)

    def _by_clock(self):
        since = self.since
        return self.by_clock + (time.monotonic() - since if since is not None else 0)

    def _watch(self):
        while self.process.poll() is None:
            family = _family(self.process)
            if self.spent() > self.seconds:
                stalled = self._by_clock() > STALLED * self.seconds
                self.end(
                    f"took more than {f'{STALLED * self.seconds} s by the clock' if stalled else f'{self.seconds} s'}"
                )
            if len(family) > PROCESSES:
                self.end(f"started more than {PROCESSES} processes")
            if sum(_memory(each) for each in family) > MEMORY:
                self.end(f"used more than {MEMORY // 2**30} GB of memory")
            time.sleep(LOOK)


class House:
    """A submission in its sandbox. A cell that ends the sandbox is left out of the next; what was done before counts.

    Args:
        kind: as `kind_of_house` gives it.
        cells: the numbers and sources of the cells with code.
        seconds: for all cells and questions of one sandbox.
        away: what is taken away before a cell is run, as a question forbids it.

    Attributes:
        errors: what cells raised, in words, in their order.
        notes: what was skipped, in words.
    """

    def __init__(self, kind, cells, seconds=SECONDS, away=()):
        self.kind, self.cells, self.seconds, self.away = kind, cells, seconds, away
        self.box, self.lives, self.left_out, self.errors, self.notes = None, LIVES, {}, [], []
        self.move()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.box.end("")

    def move(self):
        """Run the notebook in a new sandbox, until one is left that answers."""
        ran = False
        while not ran:
            if self.box is not None:
                self.box.end("")
            if not self.lives:
                raise EndedError(": ".join([f"it ended {LIVES} sandboxes", *filter(None, ["; ".join(self.errors)])]))
            self.lives -= 1
            self.box = Box(self.kind, self.seconds, self.away)
            ran = self._run_cells()

    def _run_cells(self):
        self.errors, self.notes = [], []
        for number, cell in self.cells:
            if number in self.left_out:
                self.errors.append(f"cell {number} {self.left_out[number]}, and was left out")
                continue
            left = int(0.75 * self.seconds - self.box.spent())
            if left < 1:
                self.errors.append(f"cell {number} was not run: those before it took all of the time")
                continue
            try:
                done = self.box.ask({"cell": cell, "seconds": max(1, min(self.seconds // 2, left))})
            except EndedError as error:
                self.left_out[number] = str(error)
                self.errors.append(f"cell {number} {error}")
                return False
            self.errors += [f"cell {number}: {done['error']}"] if done.get("error") else []
            skipped = ", ".join(str(each)[:60] for each in dict.fromkeys(done.get("notes") or []))
            self.notes += [f"cell {number}: skipped {skipped}"] if skipped else []
        self.box.begin()
        return True

    def ask(self, message, functions=()):
        """Say something to the sandbox; after its end the notebook is run in another one for what is asked next."""
        try:
            return self.box.ask(message | {"seconds": max(1, self.seconds // 4)}, functions)
        except EndedError:
            self.move()
            raise


def _answer(line, number):
    """What the sandbox answered to the question with this number; None for whatever else a submission has written."""
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        answer = None
    return answer if isinstance(answer, dict) and answer.get("number") == number else None


def _by_place(arguments):
    """Encoded arguments, with its place for the code of a function, in which could be read what is to be found out."""
    places = [
        each | {"source": None, "place": place} if isinstance(each, dict) and each.get("source") else each
        for place, each in enumerate(arguments["tuple"])
    ]
    return {"tuple": places}


def _computed_here(functions, asked):
    """What a function gives that was handed over."""
    try:
        function, (args, kwargs) = functions[asked["place"]], (decode(asked[key], None) for key in ("args", "kwargs"))
        return {"value": encode(function(*args, **kwargs))}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:1000]}


def _family(process):
    try:
        return [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    except psutil.Error:
        return []


def _computed(process):
    """Seconds of a processor that a process took, and those of its children that have ended."""
    try:
        return sum(process.cpu_times()[:4])
    except psutil.Error:
        return 0


def _memory(process):
    try:
        # Pages that processes share count once, where the system tells.
        told = process.memory_full_info()
        return getattr(told, "pss", told.rss)
    except psutil.Error:
        return 0


class Names(dict):
    """The names of a submission, as otter's tests ask for them.

    Values are fetched once, before any check, as plain data. Functions are called in the sandbox, and what one has
    answered to the same arguments it has answered: a check that asks again gets that. A function whose question forbids
    something is called in another sandbox, from which that was taken away before the notebook was run there.

    Args:
        house: the sandbox.
        data: the folder of what was drawn.
        wanted: every name that a test asks for.
        forbidden: what each question forbids, of those that do.

    Attributes:
        question: whose tests are run.
    """

    def __init__(self, house, data, wanted, forbidden=None):
        super().__init__(__folder__=str(data), __drawn__="")
        self.house, self.question, self.forbidden = house, "", {n: tuple(f) for n, f in (forbidden or {}).items() if f}
        self.bare = {}
        self.values, self.answers, self.ended, self.problems = {}, {}, {}, {}
        for name in wanted:
            if name not in self:
                self.values |= self._fetched(name)

    def _fetched(self, name):
        try:
            answer = self.house.ask({"get": [name]}).get("values")
            return {name: answer.get(name) if isinstance(answer, dict) else None}
        except EndedError as error:
            return {name: {"error": str(error)}}

    def get(self, name, default=None):
        """The value of a name of the submission; otter asks so for what a test names."""
        if name in self:
            return self[name]
        answer = self.values.get(name)
        if not isinstance(answer, dict) or "missing" in answer:
            self._refuse(name, f"`{name}` is not there: what gives it failed, or is gone")
        if "error" in answer:
            self._refuse(name, f"`{name}`: {str(answer['error'])[:1000]}")
        return self._value(answer, name)

    def _call(self, name, request, functions):
        # What took too long or ended the sandbox is not asked again: it would take the time of the other questions.
        if name in self.ended:
            raise StudentError(self.ended[name])
        key = json.dumps(request, sort_keys=True)
        if key not in self.answers:
            self.answers[key] = self._answer(request | {"args": _by_place(request["args"])}, functions)
        answer = self.answers[key]
        if answer.get("used"):
            used = ", ".join(f"`{str(each)[:60]}`" for each in answer["used"])
            self._refuse(name, f"`{name}` used {used}, which this question forbids")
        if answer.get("too slow"):
            self.ended[name] = f"`{name}` {str(answer.get('error'))[:1000]}"
            self._refuse(name, self.ended[name])
        if "error" in answer:
            self._refuse(name, f"`{name}`: {str(answer['error'])[:1000]}")
        return self._value(answer, name)

    def _answer(self, request, functions):
        away = tuple(request["without"])
        try:
            if not away:
                return self.house.ask(request, functions)
            # One sandbox does for all questions, unless an answer needs what another question forbids.
            for each in dict.fromkeys((tuple(dict.fromkeys(sum(self.forbidden.values(), ()))), away)):
                answer = self._bare(each).ask(request, functions)
                if "error" not in answer or answer.get("used") or answer.get("too slow"):
                    return answer
            if answer.get("absent"):
                return {"used": [f"{answer['absent']}()"]}
            return answer | {"error": f"{answer['error']} (as run without what this question forbids)"}
        except EndedError as error:
            return {"error": str(error), "too slow": True}

    def _bare(self, away):
        """The sandbox from which something was taken away."""
        if away not in self.bare:
            self.bare[away] = None
            self.bare[away] = House(self.house.kind, self.house.cells, self.house.seconds, away)
        if self.bare[away] is None:
            raise EndedError("cannot be run without what this question forbids")
        return self.bare[away]

    def close(self):
        """End the sandboxes from which something was taken away."""
        for each in self.bare.values():
            if each is not None:
                each.box.end("")

    def _refuse(self, name, why):
        self.problems.setdefault(name, why)
        raise StudentError(why)

    def _value(self, answer, name):
        try:
            return decode(answer["value"], self._function)
        except (TypeError, ValueError, KeyError, AttributeError, RuntimeError, OverflowError, MemoryError) as error:
            self._refuse(name, f"`{name}` cannot be graded: {error}")

    def _function(self, name, _place):
        def call(*args, **kwargs):
            request = {"call": name, "args": encode(args), "kwargs": encode(kwargs), "without": []}
            request["without"] += self.forbidden.get(self.question, ())
            return self._call(str(name), request, args)

        call.remote, call.__name__ = name, str(name)
        return call
