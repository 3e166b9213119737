"""The zip for Gradescope, run by otter as there: it gives what `make grade` gives."""

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
from tool import ROOT, load

pytestmark = pytest.mark.slow
NAME, MOST = "order-and-lookup", 36
HABITS = "%matplotlib inline\n!pip install torch\nimport torch\nimport torch.nn.functional as F"
# What is put behind the key's cells; the points it then has less.
WRONG = {
    "equivariant = ...\ndef attention(x, wq, wk, wv, causal=False): return F.scaled_dot_product_attention(x, x, x)": 3
    + 6,
    "row_after_three_steps = float('nan')": 2,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The graders' folder of an assignment, and a folder of notebooks with the points that each should have."""
    out = tmp_path_factory.mktemp("course")
    load("course").make(ROOT / "course" / NAME, out, "a seed for tests")
    key, untouched = (json.loads((out / who / NAME / f"{NAME}.ipynb").read_text()) for who in ("graders", "students"))
    (out / "submissions").mkdir()
    points = {"untouched": 0, "key": MOST, "without metadata": MOST}
    write(out, "untouched", untouched)
    write(out, "key", key, [HABITS])
    write(out, "without metadata", key | {"metadata": {}})
    for number, (cell, less) in enumerate(WRONG.items()):
        points[f"wrong {number}"] = MOST - less
        write(out, f"wrong {number}", key, [], [cell])
    return out / "graders", out / "submissions", points


def write(out, name, notebook, before=(), after=()):
    cells = [
        [{"cell_type": "code", "source": each, "metadata": {}, "outputs": []} for each in more]
        for more in (before, after)
    ]
    notebook = notebook | {"cells": cells[0] + notebook["cells"] + cells[1]}
    (out / "submissions" / f"{name}.ipynb").write_text(json.dumps(notebook))


def run_by_otter(archive, notebook, folder, environment, inside=()):
    """The points of each question, as Gradescope gets them, and what the student reads."""
    source = folder / "source"
    with zipfile.ZipFile(archive) as files:
        files.extractall(source)
    # There, what starts otter lies beside the graders, and so they can be imported.
    environment = environment | {"PYTHONPATH": os.pathsep.join([str(source), str(ROOT)])}
    otter = Path(sys.executable).with_name("otter")
    command = [*inside, otter, "run", "--no-logo", "--autograder", archive, "--output-dir", folder, notebook]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((folder / "results.json").read_text())
    return {each["name"]: each["score"] for each in results["tests"] if "score" in each}, results["output"]


@pytest.fixture(scope="module")
def rows(made, tmp_path_factory, fresh_environment):
    """What `make grade` gives each, question by question."""
    graders, submissions, _ = made
    out = tmp_path_factory.mktemp("grades")
    command = [sys.executable, ROOT / "course/grading/grade.py", submissions, "--course", graders, "--out", out]
    command += ["--unsafe", "--assignment", NAME]
    subprocess.run(command, env=fresh_environment, check=True, capture_output=True, timeout=900)
    with (out / "grades.csv").open(encoding="utf-8", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def test_otter_gives_the_points_that_make_grade_gives(made, rows, tmp_path, fresh_environment):
    graders, submissions, points = made
    for name, most in points.items():
        (tmp_path / name).mkdir()
        notebook = submissions / f"{name}.ipynb"
        found, said = run_by_otter(graders / NAME / "gradescope.zip", notebook, tmp_path / name, fresh_environment)
        of_make = {key.split()[0]: float(value) for key, value in rows[name].items() if key.startswith("q") and value}
        assert found == of_make and sum(found.values()) == most, name
        if name == "key":
            assert "skipped %matplotlib, !pip" in said
        if name == "wrong 0":
            assert "`attention` used `scaled_dot_product_attention()`" in said


# A container as Gradescope's: root's, which every user may cross to where Python lies.
ON_THE_WAY = [str(path) for path in reversed(Path(sys.base_prefix).parents) if path.is_relative_to("/root")]
CONTAINER = [shutil.which("bwrap"), "--dev-bind", "/", "/", "--tmpfs", "/root", "--cap-add", "ALL"]
CONTAINER += [word for path in ON_THE_WAY for word in ("--perms", "0755", "--dir", path)]
CONTAINER += ["--ro-bind", sys.base_prefix, sys.base_prefix]


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("bwrap"), reason="needs root, and bubblewrap for a container")
def test_where_there_is_no_sandbox_another_user_runs_the_notebook(made, fresh_environment):
    graders, submissions, _ = made
    key = json.loads((submissions / "key.ipynb").read_text())
    # Pytest's own folders are closed to other users, which would be no test.
    with tempfile.TemporaryDirectory() as open_to_all:
        folder = Path(open_to_all)
        folder.chmod(0o755)
        files = str(folder / "source" / "**" / "*.py")
        peek = f"import glob, os\nassert os.getuid() and not glob.glob({files!r}, recursive=True), 'the tests are seen'"
        write(submissions.parent, "peeks", key, [], [peek])
        without = fresh_environment | {"PATH": str(Path(sys.executable).parent)}
        archive, notebook = graders / NAME / "gradescope.zip", submissions / "peeks.ipynb"
        found, said = run_by_otter(archive, notebook, folder, without, CONTAINER)
    assert sum(found.values()) == MOST and "AssertionError" not in said, said
