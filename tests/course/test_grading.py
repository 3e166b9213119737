"""`make grade` on a folder of honest and hostile notebooks: every one gets its row, and none harms another."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time

import psutil
import pytest
import torch
from tool import ROOT, load

NAME, MOST = "order-and-lookup", 36
GRADE = [sys.executable, ROOT / "course" / "grading" / "grade.py"]
LIMIT = 40
TRIAL = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
needs_bubblewrap = pytest.mark.skipif(
    not shutil.which("bwrap") or subprocess.run(TRIAL, capture_output=True).returncode != 0,
    reason="needs bubblewrap, where it may make namespaces",
)

# What a cell does before the answers, the points that are left, and what the row says of it.
HOSTILE = {
    "loops": ("while True: pass", MOST, "cell 2: took more than 20 s"),
    "exits": ("import os; os._exit(0)", MOST, "cell 2 ended the notebook's own process, and was left out"),
    "prints": ("for _ in range(10**6): print('x' * 1000)", MOST, ""),
    "forks": ("import os, time\nfor _ in range(7): os.fork()\ntime.sleep(9)", MOST, "cell 2: PermissionError"),
    "fills the disk": ("open('full', 'wb').write(bytes(2**29))", MOST, "No space left on device"),
    "takes memory": ("x = b'x' * 2**35", MOST, "cell 2: MemoryError"),
    "fills memory that is no process's": (
        """
import ctypes, os
libc, refused = ctypes.CDLL(None, use_errno=True), []
for path in ("/full", "/dev/full2", "/dev/shm/full"):
    try: open(path, "wb")
    except OSError as error: refused.append(error.errno)
for done in (libc.memfd_create(b"full", 0), libc.shmget(0, 4096, 0o1600), libc.unshare(2**28)):
    if done < 0: refused.append(ctypes.get_errno())
raise OSError(refused)
""",
        MOST,
        "cell 2: OSError: [30, 30, 30, 1, 1, 1]",
    ),
    "deletes": (
        "import shutil; shutil.rmtree('{folder}', ignore_errors=True); shutil.rmtree('/usr')",
        MOST,
        "cell 2: ",
    ),
    "reads the tests": ("open('{graders}/{name}/tests/q3.py').read()", MOST, "No such file or directory"),
    "opens a socket": ("import socket; socket.create_connection(('127.0.0.1', 80))", MOST, "cell 2: "),
    "leaves a process": ("import subprocess; subprocess.Popen(['sleep', '4321'])", MOST, "cell 2: PermissionError"),
    "starts threads": (
        "import threading, time\nfor _ in range(200): threading.Thread(target=time.sleep, args=(60,)).start()",
        MOST,
        "",
    ),
    "answers with something else": ("import json; json.dumps = lambda *_, **__: '[]'", MOST, "cell 2 wrote something"),
    "gives back too much": (
        "import json; json.dumps = lambda _: 'x' * 2**27",
        MOST,
        "cell 2 gave back more than 64 MB",
    ),
    "kills its parents": ("import os\nfor pid in (os.getppid(), 1): os.kill(pid, 9)", None, ""),
    "waits where nothing can stop it": (
        "import signal as s\nfor each in (s.SIGALRM, s.SIGPROF): s.signal(each, s.SIG_IGN)\nwhile True: pass",
        MOST,
        "cell 2 took more than 40 s, and was left out",
    ),
    "raises nonsense": ("raise ValueError('=1+1\\n\\ud800,\"')", MOST, "cell 2: ValueError"),
}
# These give no answers, and would like points for it.
FORGED = {
    "patches": "import torch, otter\ntorch.allclose = lambda *_, **__: True\notter.Notebook = None",
    "writes scores": """
import os
for fd in range(64):
    try: os.write(fd, b'{"value": true}\\n')
    except OSError: pass
""",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The course with the first assignment, and its two notebooks as dictionaries."""
    out = tmp_path_factory.mktemp("course")
    load("course").make(ROOT / "course" / NAME, out, "a seed for tests")
    key, untouched = (json.loads((out / who / NAME / f"{NAME}.ipynb").read_text()) for who in ("graders", "students"))
    return out / "graders", key, untouched


def write(folder, name, notebook, cell=None, **changes):
    notebook = json.loads(json.dumps(notebook))
    if cell is not None:
        notebook["cells"].insert(1, {"cell_type": "code", "source": cell, "metadata": {}, "outputs": []})
    notebook["metadata"]["posembed"] |= changes
    path = folder / f"{name}.ipynb"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(notebook))
    return path


def grade(folder, graders, out, *options, environment):
    return subprocess.run(
        [*GRADE, folder, "--course", graders, "--out", out, "--seconds", str(LIMIT), *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )


def rows_of(out):
    with (out / "grades.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@needs_bubblewrap
def test_honest_and_hostile_notebooks_each_get_their_row(made, tmp_path, fresh_environment):
    graders, key, untouched = made
    folder, out = tmp_path / "submissions", tmp_path / "grades"
    folder.mkdir()
    names = {"folder": folder, "graders": graders, "name": NAME}
    for name, (cell, _, _) in HOSTILE.items():
        for word, value in names.items():
            cell = cell.replace(f"{{{word}}}", str(value))
        write(folder, name, key, cell)
    for name, cell in FORGED.items():
        write(folder, name, untouched, cell)
    write(folder, "right", key)
    write(folder, '=1+1,"\n', key)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    start = time.monotonic()
    done = grade(folder, graders, out, environment=fresh_environment)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["student"]: row for row in rows_of(out)}
    assert len(rows) == len(HOSTILE) + len(FORGED) + 2
    surprises = {}
    for name, (_, points, reason) in HOSTILE.items():
        row = rows[name]
        if float(row["score"]) not in ([points] if points is not None else [0, MOST]) or reason not in row["reason"]:
            surprises[name] = row
    surprises |= {name: rows[name] for name in FORGED if float(rows[name]["score"])}
    surprises |= {name: rows[name] for name in ("right", "'=1+1,\"\\n") if rows[name]["score"] != f"{MOST}"}
    assert not surprises
    # Nothing was written outside, nothing goes on, and the same again gives the same.
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert not [each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"] == ["sleep", "4321"]]
    assert time.monotonic() - start < 600


@pytest.mark.slow
@needs_bubblewrap
def test_what_cannot_be_graded_has_a_row_that_says_why(made, tmp_path, fresh_environment):
    graders, key, _ = made
    folder, out = tmp_path / "submissions", tmp_path / "grades"
    folder.mkdir()
    right = write(folder, "right", key)
    for name in ("cleo", "twice"):
        write(folder / name, "a", key)
    write(folder / "twice", "b", key)
    write(folder, "other", key, assignment="unlabelled-museum")
    write(folder, "last year", key, course="0123456789ab")
    (folder / "half.ipynb").write_text(right.read_text()[:500])
    (folder / "deep.ipynb").write_text("[" * 100_000)
    (folder / "text.ipynb").write_bytes(b"\xff\xfe not a notebook")
    (folder / "essay.pdf").write_bytes(b"%PDF")
    (folder / "empty").mkdir()
    (folder / "link.ipynb").symlink_to(right)
    os.mkfifo(folder / "pipe.ipynb")
    for _ in range(2):
        done = grade(folder, graders, out, environment=fresh_environment)
        assert done.returncode == 0, done.stdout + done.stderr
    found = {row["file"]: (row["score"], row["reason"]) for row in rows_of(out)}
    assert {row["open"] for row in rows_of(out)} == {"4"} and {row["out of"] for row in rows_of(out)} == {"40"}
    partly = ("0", "it is no notebook, or only a part of one")
    no_file, two = ("0", "it is no plain file"), "one of 2 submissions of this student, each graded"
    assert found == {
        "right.ipynb": ("36", ""),
        "cleo/a.ipynb": ("36", ""),
        "twice/a.ipynb": ("36", two),
        "twice/b.ipynb": ("36", two),
        "other.ipynb": ("0", f"it is of 'unlabelled-museum', not of '{NAME}'"),
        "last year.ipynb": (
            "0",
            f"it was made for another course, or from other files; ASSIGNMENT={NAME} grades it all the same",
        ),
        **dict.fromkeys(("half.ipynb", "deep.ipynb", "text.ipynb"), partly),
        "essay.pdf": ("0", "it is no notebook; ask for the .ipynb file"),
        "empty": ("0", "there is no notebook in it"),
        **dict.fromkeys(("link.ipynb", "pipe.ipynb"), no_file),
    }
    # The same again left the same files; what an instructor wrote into the table is kept.
    assert len(list(out.iterdir())) == len(found) + 3
    (out / "grades.csv").write_bytes(b"m\xefne")
    (out / "by-hand.csv").write_text("student;file;q9 (4);comment\nright;right.ipynb;2,5;good\ngone;gone.ipynb;1;\n")
    assert grade(folder, graders, out, environment=fresh_environment).returncode == 0
    assert (out / "grades.1.csv").read_bytes() == b"m\xefne" and len(rows_of(out)) == len(found)
    # What was entered by hand stays, in whatever form a spreadsheet saved it, and is added.
    by_hand = (out / "by-hand.csv").read_text().splitlines()
    assert "right,right.ipynb,2.5,good" in by_hand and "gone,gone.ipynb,1," in by_hand
    row = next(row for row in rows_of(out) if row["student"] == "right")
    assert (row["score"], row["q9 (4)"], row["open"]) == ("38.5", "2.5", "0")


# Behind the key's cells: shortcuts that a question forbids, by those who know what watches; the points that they lose.
BLIND = "import watch\nwatch.Watch.__enter__ = lambda self: self\nwatch.Watch.__exit__ = lambda *_: None\n"
SHORTCUTS = {
    "patches the watch": (
        BLIND
        + "def attention(x, wq, wk, wv, causal=False):\n"
        + "    return F.scaled_dot_product_attention(x @ wq, x @ wk, x @ wv, is_causal=causal)",
        6,
        "`attention` used `scaled_dot_product_attention()`, which this question forbids",
    ),
    "keeps it from before": (
        BLIND + "one_hot = lambda ids, n, kept=F.one_hot: kept(ids, n).float()",
        4,
        "`one_hot` used `one_hot()`, which this question forbids",
    ),
    "patches what takes away": (
        BLIND
        + "import absent, sandbox\nabsent.take_away = sandbox.take_away = lambda _: None\n"
        + "def gradient_of_table(ids, g, n):\n"
        + "    table = torch.zeros(n, g.shape[-1], requires_grad=True)\n"
        + "    (table[ids] * g).sum().backward()\n"
        + "    return table.grad",
        5,
        "`gradient_of_table` used `backward()`, which this question forbids",
    ),
    "has the package": (
        BLIND + "import posembed\nis_equivariant = lambda f, x: posembed.check_equivariance(f, x).equivariant",
        5,
        "`is_equivariant`: NameError: name 'posembed' is not defined (as run without what this question forbids)",
    ),
    # To compare with what a question forbids is no answer that used it; the cell goes on behind it.
    "compares": (
        "%%time\nfrom posembed import check_equivariance\nx = torch.randn(2, 5, 8)\nids = torch.tensor([1])\n"
        + "w = torch.eye(8)\nout = F.scaled_dot_product_attention(x, x, x)\n"
        + "assert torch.allclose(attention(x, w, w, w), out, atol=1e-5)\n"
        + "assert (F.one_hot(ids, 3) == one_hot(ids, 3)).all()\nright = one_hot\ndel one_hot\n"
        + "one_hot = lambda ids, n: right(ids, n)",
        0,
        "",
    ),
    # Parts of PyTorch that are loaded when they are asked for, and threads, are allowed.
    "asks whether two are close, in threads": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        + "def is_close(f, x, seed):\n"
        + "    order = torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(seed))\n"
        + "    try:\n"
        + "        torch.testing.assert_close(f(x[:, order]), f(x)[:, order], atol=1e-5, rtol=1e-5)\n"
        + "    except AssertionError:\n"
        + "        return False\n"
        + "    return True\n"
        + "is_equivariant = lambda f, x: all(is_close(f, x, seed) for seed in range(20))\n"
        + "sums = gradient_of_table\n"
        + "def gradient_of_table(ids, g, n):\n"
        + "    with ThreadPoolExecutor(2) as pool:\n"
        + "        return sum(pool.map(lambda i, g: sums(i[None], g[None], n), ids.flatten(), g.flatten(0, -2)))",
        0,
        "",
    ),
    "needs what another question forbids": (
        "gradient_of_table = lambda ids, g, n: F.one_hot(ids.flatten(), n).to(g.dtype).T @ g.flatten(0, -2)",
        0,
        "",
    ),
}


@pytest.mark.slow
@needs_bubblewrap
def test_what_a_question_forbids_earns_nothing_whatever_is_patched(made, tmp_path, fresh_environment):
    graders, key, _ = made
    for name, (cell, _, _) in SHORTCUTS.items():
        cells = [*key["cells"], {"cell_type": "code", "source": cell, "metadata": {}, "outputs": []}]
        write(tmp_path / "submissions", name, key | {"cells": cells})
    done = grade(tmp_path / "submissions", graders, tmp_path / "grades", environment=fresh_environment)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["student"]: row for row in rows_of(tmp_path / "grades")}
    surprises = {
        name: rows[name]
        for name, (_, less, reason) in SHORTCUTS.items()
        if float(rows[name]["score"]) != MOST - less or reason not in rows[name]["reason"]
    }
    assert not surprises


DOCKER = """#!/bin/sh
echo "$@" >> "$0.log"
[ "$1" = run ] || exit 0
PYTHONPATH={root} exec {python} {root}/course/grading/sandbox.py
"""


@pytest.mark.slow
def test_without_bubblewrap_it_is_docker_that_runs_them(made, tmp_path, fresh_environment):
    """A stand-in for Docker runs what the image runs, each notebook twice: once without what questions forbid."""
    graders, key, _ = made
    (tmp_path / "bin").mkdir()
    docker = tmp_path / "bin" / "docker"
    docker.write_text(DOCKER.format(root=ROOT, python=sys.executable))
    docker.chmod(0o755)
    write(tmp_path / "submissions", "right", key)
    write(tmp_path / "submissions", "loops", key, "while True: pass")
    environment = fresh_environment | {"PATH": str(docker.parent)}
    done = grade(tmp_path / "submissions", graders, tmp_path / "grades", environment=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [row["score"] for row in rows_of(tmp_path / "grades")] == [f"{MOST}"] * 2
    asked = (tmp_path / "bin" / "docker.log").read_text()
    assert asked.count("run --rm") == asked.count("--network none --read-only") == asked.count("kill ") == 4
    copied = re.findall(r"^COPY (.+) \S+$", (ROOT / "course/grading/Dockerfile").read_text(), re.MULTILINE)
    of_course = [path for path in " ".join(copied).split() if path.startswith("course")]
    assert sorted(of_course) == [
        f"course/grading/{name}.py" for name in ("absent", "checking", "sandbox", "watch", "wire")
    ]


TEST = """
from otter.test_files import test_case

name, points = "q1", 1

@test_case(points=1)
def test_x(x):
    import os
    while x == "loop":
        pass
    if x == "kill":
        os.kill(os.getpid(), 9)
    assert x == "right"
"""


def graded_by(questions, answers, seconds, folder, environment):
    """Score and reason of each answer, by questions with their points and their tests."""
    (folder / "graders" / "own" / "tests").mkdir(parents=True)
    for name, (_, test) in questions.items():
        (folder / "graders" / "own" / "tests" / f"{name}.py").write_text(test)
    (folder / "graders" / "own" / "tests" / "given.json").write_text("[]")
    about = {"title": "Own", "course": "c"}
    about["questions"] = [{"name": name, "points": most, "manual": False} for name, (most, _) in questions.items()]
    (folder / "graders" / "own" / "assignment.json").write_text(json.dumps(about))
    notebook = {"cells": [], "metadata": {"posembed": {"assignment": "own", "course": "c"}}, "nbformat": 4}
    for name, cell in answers.items():
        write(folder / "submissions", name, notebook, cell)
    options = [folder / "graders", folder / "out", "--unsafe", "--seconds", str(seconds)]
    done = grade(folder / "submissions", *options, environment=environment)
    assert done.returncode == 0, done.stderr
    return {row["student"]: (row["score"], row["reason"]) for row in rows_of(folder / "out")}


@pytest.mark.slow
def test_an_answer_that_a_test_does_not_survive_costs_its_own_row_alone(tmp_path, fresh_environment):
    answers = {name: f"x = {name!r}" for name in ("kill", "loop", "right", "wrong")}
    assert graded_by({"q1": (1, TEST)}, answers, 16, tmp_path, fresh_environment) == {
        "kill": ("0", "its answers brought the grader's own process down"),
        "loop": ("0", "its answers kept the tests busy for more than 32 s"),
        "right": ("1", ""),
        "wrong": ("0", ""),
    }


@pytest.mark.slow
def test_time_is_that_of_the_processor_and_a_wait_costs_nothing_until_the_clock_ends_it():
    house = load("house", ROOT / "course" / "grading")
    box = house.Box("none", 60)
    waited, computed, stalled = (
        box.ask({"cell": cell, "seconds": 1})["error"]
        for cell in ("import time; time.sleep(2)", "while True: pass", "time.sleep(99)")
    )
    box.end("")
    assert (waited, computed, stalled) == ("", "took more than 1 s", "took more than 5 s by the clock")


@pytest.mark.slow
@needs_bubblewrap
def test_what_the_graders_environment_holds_is_not_in_the_sandbox(monkeypatch):
    monkeypatch.setenv("OF_THE_INSTRUCTOR", "a token")
    house = load("house", ROOT / "course" / "grading")
    box = house.Box("bubblewrap", 60)
    read = "import glob\nfound = b''.join(open(path, 'rb').read() for path in glob.glob('/proc/[0-9]*/environ'))\n"
    said = box.ask({"cell": read + "assert found and b'OF_THE_INSTRUCTOR' not in found", "seconds": 20})
    box.end("")
    assert said["error"] == ""


TWO_QUESTIONS = {
    "q1": """
from otter.test_files import test_case

name, points = "q1", 3

@test_case(points=1)
def test_one(f):
    assert f(1) == 1

@test_case(points=1)
def test_two(f):
    assert f(2) == 2

@test_case(points=1)
def test_three(f):
    assert f(3) == 3
""",
    "q2": """
from otter.test_files import test_case

name, points = "q2", 1

@test_case(points=1)
def test_x(x):
    assert x == "right"
""",
}
# Of `f`; the points that are left, and what the row says.
ANSWERS = {
    "right": ("f = lambda n: n", "4", ""),
    "loops": ("def f(n):\n    while True: pass", "1", "`f` took more than 20 s"),
    "a huge number": (
        "f = 10**5000",
        "1",
        "`f`: ValueError: a number of so many digits cannot be graded",
    ),
    "exits": ("import os\ndef f(n): os._exit(0)", "1", "`f` ended the notebook's own process"),
    "writes": (
        "import json\ndef f(n): json.dumps = lambda *_: '[]'",
        "1",
        "`f` wrote something where the grader reads its answers",
    ),
    # Fetched once: a dictionary that gives another number each time is one number.
    "changes": ("f = lambda n, seen=[]: seen.append(n) or len(seen)", "4", ""),
    "is missing": ("", "1", "`f` is not there: what gives it failed, or is gone"),
    "fails": (
        "f = open('at 0x7f3a2b1c4d5e')\nf(1)",
        "1",
        "cell 1: FileNotFoundError: [Errno 2] No such file or directory: 'at 0x…'; "
        "`f` is not there: what gives it failed, or is gone",
    ),
    # What fails costs what needs it, and nothing of what stands below it in its cell.
    "lacks a library": (
        "import math, not_there\nnot_there.style()\nf = lambda n: math.floor(n)",
        "4",
        "cell 1: ModuleNotFoundError: No module named 'not_there'",
    ),
}


@pytest.mark.slow
def test_an_answer_that_fails_leaves_the_others_their_points_or_says_why_not(tmp_path, fresh_environment):
    answers = {name: f"x = 'right'\n{cell}" for name, (cell, _, _) in ANSWERS.items()}
    questions = {"q1": (3, TWO_QUESTIONS["q1"]), "q2": (1, TWO_QUESTIONS["q2"])}
    found = graded_by(questions, answers, 80, tmp_path, fresh_environment)
    assert found == {name: (points, reason) for name, (_, points, reason) in ANSWERS.items()}


@pytest.mark.bad_input
def test_what_cannot_be_done_is_said_in_one_line(made, tmp_path, fresh_environment):
    graders, key, _ = made
    write(tmp_path / "some", "right", key)
    (tmp_path / "none").mkdir()
    (tmp_path / "file").touch()
    for folder, course, out, path, line in (
        ("missing", graders, "out", None, "is no folder; name the one that holds the notebooks"),
        ("none", graders, "out", None, "there is no notebook in"),
        ("some", tmp_path / "not made", "out", None, "run `make course`, with the seed of this course"),
        ("some", graders, "out", str(tmp_path), "there is no sandbox here; install bubblewrap"),
        ("some", graders, "file", None, "name another folder: make grade OUT=folder"),
    ):
        environment = fresh_environment | ({"PATH": path} if path else {})
        unsafe = ["--unsafe"] if out == "file" else []
        done = grade(tmp_path / folder, course, tmp_path / out, *unsafe, environment=environment)
        assert done.returncode == 1 and line in done.stderr and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.slow
def test_a_function_that_is_handed_over_stays_with_the_grader_who_computes_it():
    house, checking = (load(name, ROOT / "course" / "grading") for name in ("house", "checking"))
    cell = """
def reads(f, x): return [f(x), list(f.__code__.co_names), list(f.__code__.co_consts)]
def asks_on_and_on(f, x):
    while True: f(x)
def asks_nonsense(f, x): f("nonsense")
"""
    handed = checking.function("def candidate(x): return 3.5 * x.cumsum(dim=0)")
    with house.House("none", [(1, cell)], 8) as inside:
        names = house.Names(inside, "", ["reads", "asks_on_and_on", "asks_nonsense"])
        for name, why in (("asks_on_and_on", "took more than"), ("asks_nonsense", "AttributeError: 'str'")):
            with pytest.raises(house.StudentError, match=why):
                names.get(name)(handed, torch.ones(3))
        out, called, constants = names.get("reads")(handed, torch.ones(3))
    assert out.tolist() == [3.5, 7.0, 10.5]
    assert "cumsum" not in called and 3.5 not in constants


@pytest.mark.slow
def test_a_module_that_a_cell_has_written_can_be_imported():
    house = load("house", ROOT / "course" / "grading")
    with house.House("none", [(1, "%%writefile mine.py\nx = 3\n"), (2, "from mine import x")], 20) as inside:
        assert inside.errors == inside.notes == []
        assert house.Names(inside, "", ["x"]).get("x") == 3
