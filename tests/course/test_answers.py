"""What the graders make of answers: the key, the untouched notebook, right ones in other words, wrong ones, stubs."""

import base64
import contextlib
import functools
import hashlib
import io
import json
import random
import re
import sys
import zipfile
from fractions import Fraction
from types import SimpleNamespace

import jupytext
import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
from otter.test_files.exception_test import ExceptionTestFile
from tool import TOOLS, load

from posembed.stats import interval

pytestmark = pytest.mark.slow
wire = load("wire", TOOLS.parent / "course" / "grading")
# Codes of students who have numbers of their own, and their folders.
STUDENTS = [("1f2e", "ada"), ("9a8b", "bo")]
FOLDERS = sorted(path.parent for path in (TOOLS.parent / "course").glob("*/master.md"))


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def assignment(request, tmp_path_factory):
    """An assignment: its folder, and those of graders and of students as `make course` makes them."""
    out = tmp_path_factory.mktemp("course")
    load("course").make(request.param, out, "a seed for tests", STUDENTS)
    return request.param, *(out / who / request.param.name for who in ("graders", "students"))


@pytest.fixture(scope="module")
def notebooks(assignment):
    """The names of the key, and those of the untouched notebook."""
    return [names_of(folder) for folder in assignment[1:]]


def names_of(folder):
    """What is there when all cells but the first have been run, which installs."""
    notebook, names = nbformat.read(folder / f"{folder.name}.ipynb", as_version=4), {}
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"][1:]
    with contextlib.chdir(folder):
        for cell in cells:
            if not cell.startswith("grader.check"):
                exec(cell, names)
    return names


@functools.cache
def file_of(path):
    """The tests of a question; what they keep of one answer, such as a run that they trained, they keep for others."""
    return ExceptionTestFile.from_file(str(path))


def score(tests, question, names, drawn="", data=None):
    """The points, and what the checks that failed say, of answers that went through the wire."""
    test = file_of(tests / f"{question}.py")
    plain = {name: sent(names[name]) for name in wanted_of(test, names) & set(names)}
    test.run(plain | {"__folder__": str(data or tests), "__drawn__": drawn})
    assert sum(case.points for case in test.test_cases) == pytest.approx(test.possible), question
    return round(test.score, 6), [result.message for result in test.test_case_results if not result.passed]


def wanted_of(test, names):
    """What a question asks for; a piece without a fault counts beside others, which other questions ask for."""
    of_pieces = {name for name in names if name.startswith("found_")}
    return of_pieces | {name for case in test.test_cases for name in case.body._get_func_params()}


def sent(value):
    """A value as the grader gets it; what a function gives is sent as well."""

    def from_sandbox(*args, **kwargs):
        return wire.decode(wire.encode(value(*args, **kwargs)), lambda *_: None)

    try:
        return wire.decode(wire.encode(value), lambda *_: from_sandbox)
    except (TypeError, ValueError):
        return None


def answers_of(folder):
    answers = load("answers", folder)
    return answers.RIGHT, answers.WRONG


def answered(answer, key, tests):
    """The key's names after an answer, which may use what was drawn."""
    names = copied(key) | {"drawn": drawn_of(tests)}
    random.seed(0)
    exec(answer, names)
    return names


def drawn_of(tests):
    return json.loads((tests / "truth.json").read_text(encoding="utf-8"))


def asked_of(folder, tests, notebooks):
    """Of each question that a machine grades, what it asks for: what an untouched notebook leaves open."""
    key, untouched = notebooks
    for question in load("course").questions_of(folder):
        if not question["manual"]:
            test = file_of(tests / f"{question['name']}.py")
            wanted = wanted_of(test, key)
            yield question, [each for each in wanted if each in key and is_open(untouched.get(each))]


def test_the_graders_know_right_from_wrong(assignment, notebooks):
    folder, graders, _ = assignment
    tests = graders / "tests"
    questions = {q["name"]: q["points"] for q in load("course").questions_of(folder) if not q["manual"]}
    key, untouched = notebooks
    right, wrong = answers_of(folder)
    assert set(right) == set(wrong) == set(questions)
    surprises = []
    for name, points in questions.items():
        if (found := score(tests, name, key))[0] != points:
            surprises.append((name, "the key", found))
        if (found := score(tests, name, untouched))[0] != 0:
            surprises.append((name, "the untouched notebook", found))
        assert len(right[name]) >= 3 and len(wrong[name]) >= 5, name
        for answer in right[name]:
            if (found := score(tests, name, answered(answer, key, tests)))[0] != points:
                surprises.append((name, answer, found))
        for what, answer in wrong[name].items():
            if (found := score(tests, name, answered(answer, key, tests)))[0] == points:
                surprises.append((name, what, found))
    assert not surprises


def test_inputs_of_any_submission_find_the_key_right(assignment, notebooks):
    folder, graders, _ = assignment
    key, _ = notebooks
    questions = [q for q in load("course").questions_of(folder) if not q["manual"]]
    lost = []
    for drawn in map(str, range(6)):
        found = {q["name"]: score(graders / "tests", q["name"], key, drawn) for q in questions}
        lost += [(q["name"], drawn, found[q["name"]]) for q in questions if found[q["name"]][0] != q["points"]]
    assert not lost


def test_each_student_is_asked_for_numbers_of_their_own(assignment, notebooks):
    folder, graders, _ = assignment
    key, tests = notebooks[0], graders / "tests"
    questions = {q["name"]: q["points"] for q in load("course").questions_of(folder) if not q["manual"]}
    # Those whose answers depend on what was drawn; each has right answers that are computed from it.
    drawn = [name for name in questions if re.search(r"(?<!def )drawn\(env\)", (tests / f"{name}.py").read_text())]
    right = answers_of(folder)[0]
    for code, _ in STUDENTS:
        data = graders / "by-student" / code
        others = [name for name in drawn if score(tests, name, key, data=data)[0] < questions[name]]
        assert others, f"{code} has the numbers of all"
        if folder.name == "honest-probe":
            continue
        names = dict(key)
        for name in drawn:
            found = [score(tests, name, answered(answer, names, data), data=data)[0] for answer in right[name]]
            assert max(found) == questions[name], (code, name)


def test_whoever_trained_one_seed_and_made_up_the_others_is_found_out_whatever_is_drawn():
    folder, names = TOOLS.parent / "course" / "without-positions", {}
    cells = [cell.source for cell in jupytext.read(folder / "master.md").cells]
    for path in (folder.parent / "grading" / "checking.py", folder / "shared.py"):
        exec(path.read_text(), names)
    exec(next(source for source in cells if "def test_own_models" in source), names)
    # Runs that nobody trained: a loss, and errors of a probe, for each seed.
    names["trained_again"] = lambda arm, seed: SimpleNamespace(metrics={"loss": 2.0 + seed}, model=seed)
    names["probe_errors"] = lambda seed: [8.0, 6.0, 6.0 + 0.1 * seed] if isinstance(seed, int) else [8.0, 7.0, 7.0]
    plan = {"arms": ["nopos", "rope", "alibi"], "seeds": [1, 2, 3], "measure": "loss"}

    def settings(scheme, seed):
        return names["SIZES"] | {"scheme": scheme, "seed": seed}

    def told(made_up):
        losses = {arm: {seed: 2.0 + seed + made_up * (seed - 1) for seed in (1, 2, 3)} for arm in plan["arms"]}
        errors = {name: {seed: [8.0, 7.0, 7.0] for seed in (1, 2, 3)} for name in ("untrained", "both ways")}
        errors["trained"] = {seed: [8.0, 6.0 - made_up * (seed - 1), 6.0 + 0.1 * seed] for seed in (1, 2, 3)}
        found = interval([min(errors["trained"][seed]) - 7.0 for seed in (1, 2, 3)])
        return losses, (errors, dict.fromkeys(errors, True), [found.mean, found.low, found.high])

    for env in ({"__drawn__": str(n)} for n in range(6)):
        losses, of_models = told(made_up=0.0)
        names["refuse_other_runs"](env, plan, settings, losses)
        names["test_own_models"](env, plan, *of_models)
        losses, of_models = told(made_up=0.2)
        with pytest.raises(AssertionError, match="trained again"):
            names["refuse_other_runs"](env, plan, settings, losses)
        with pytest.raises(AssertionError, match="probed again"):
            names["test_own_models"](env, plan, *of_models)


def test_the_grader_imports_nothing_that_settings_name():
    folder, names = TOOLS.parent / "course" / "without-positions", {}
    exec((folder / "shared.py").read_text(), names)
    with pytest.raises(AssertionError, match="another run"):
        names["run_of"](lambda scheme, seed: {"scheme": "antigravity:Scheme", "seed": seed}, "nopos", 1)
    assert "antigravity" not in sys.modules


# What stands in place of every number, verdict and tensor of a right answer.
STUBS = {
    "nothing": lambda right: None,
    "zeros": lambda right: 0 * right if is_number(right) else like(right, 0),
    "ones": lambda right: like(right, 1),
    "NaN": lambda right: like(right, float("nan")),
    "always True": lambda right: True,
    "always False": lambda right: False,
    "the mean": lambda right: like(right, mean(right)),
    "empty": lambda right: right[:0] if hasattr(right, "shape") and right.ndim else [],
    "far too large": lambda right: torch.zeros(1, dtype=torch.int8).expand(2**14, 2**5),
    "always equal": lambda right: AlwaysEqual(),
}


class AlwaysEqual(dict):
    """An answer that is equal to any other, and other ones each time."""

    def __eq__(self, other):
        return True

    def __lt__(self, other):
        return True

    __gt__ = __le__ = __ge__ = __lt__
    __hash__ = None

    def get(self, *_):
        return True


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def mean(right):
    return float(np.mean(np.asarray(right, dtype=float))) if hasattr(right, "shape") and np.size(right) else 0.5


def like(right, number):
    """The same type and shape, each number this one."""
    if isinstance(right, torch.Tensor):
        return torch.full(right.shape, number, dtype=None if number != number else right.dtype)
    if isinstance(right, np.ndarray):
        return np.full(right.shape, float(number))
    if isinstance(right, bool):
        return bool(number == number and number)
    return number if is_number(right) else right


def stubbed(value, stub):
    """An answer with a stub in place of all that it holds, or gives where it is a function."""
    if callable(value):
        return lambda *args, **kwargs: stubbed(value(*args, **kwargs), stub)
    if isinstance(value, dict):
        # Where the values are words, the keys are answers too.
        return {key: stubbed(each, stub) for key, each in value.items() if not isinstance(each, str)}
    if isinstance(value, str):
        return ""
    if isinstance(value, (list, tuple)):
        return type(value)(stubbed(each, stub) for each in value)
    return stub(value)


def test_stubs_earn_nothing(assignment, notebooks):
    folder, graders, _ = assignment
    key, tests = notebooks[0], graders / "tests"
    answers, earned = load("answers", folder), []
    for question, asked in asked_of(folder, tests, notebooks):
        name = question["name"]
        stubs = {what: {each: stubbed(key[each], stub) for each in asked} for what, stub in STUBS.items()}
        for what, source in getattr(answers, "STUBS", {}).get(name, {}).items():
            stubs[what] = answered(source, key, tests)
        for what, names in stubs.items():
            if (found := score(tests, name, key | names))[0]:
                earned.append((name, what, found))
    assert not earned


# Questions of True and False alone in which a coin earns more than a tenth; the instructor's page says so.
GUESSED = {("order-and-lookup", "q1"), ("honest-probe", "q9")}


def test_truth_values_by_a_coin_earn_little(assignment, notebooks):
    folder, graders, _ = assignment
    key, coin, earned = notebooks[0], random.Random(0), {}
    for question, asked in asked_of(folder, graders / "tests", notebooks):
        if all(isinstance(key[each], dict) and {*map(type, key[each].values())} == {bool} for each in asked):
            tries = [{each: {k: coin.random() < 0.5 for k in key[each]} for each in asked} for _ in range(200)]
            points = [score(graders / "tests", question["name"], key | names)[0] for names in tries]
            earned[folder.name, question["name"]] = sum(points) / len(points) / question["points"]
    assert {question for question, share in earned.items() if share > 0.1} == GUESSED & set(earned)
    assert max(earned.values(), default=0) < 0.35


# How students write a number or a truth value, and a list of them; both mean what the key's mean.
FORMS = {
    "NumPy's numbers and arrays": (lambda value: np.asarray(value)[()], np.asarray),
    "arrays without axes, and tuples": (np.asarray, tuple),
    "PyTorch's": (lambda value: torch.tensor(value, dtype=dtype_of(value)), torch.tensor),
    "fractions, and what is not a list yet": (
        lambda value: Fraction(value) if is_number(value) else value,
        lambda values: (each for each in values),
    ),
    "a table's": (lambda value: pd.Series([value])[0], pd.Index),
}


def dtype_of(value):
    return torch.float64 if isinstance(value, float) else None


def in_form(value, form):
    """An answer in other words, also what a function gives, but for tensors and arrays."""
    of_one, of_list = form
    if callable(value):
        return lambda *args, **kwargs: in_form(value(*args, **kwargs), form)
    if isinstance(value, dict):
        return {key: in_form(each, form) for key, each in value.items()}
    if isinstance(value, (list, tuple)) and value and all(map(is_number, value)):
        return of_list(value)
    if isinstance(value, (list, tuple)):
        return type(value)(in_form(each, form) for each in value)
    return of_one(value) if isinstance(value, (bool, int, float)) else value


def test_answers_in_another_form_keep_their_points(assignment, notebooks):
    folder, graders, _ = assignment
    key, tests, lost = notebooks[0], graders / "tests", []
    for question, asked in asked_of(folder, tests, notebooks):
        name = question["name"]
        for what, form in FORMS.items():
            # What a configuration takes is RunConfig's to say, which refuses it in the notebook already.
            names = key | {each: in_form(key[each], form) for each in asked if each != "settings"}
            if (found := score(tests, name, names))[0] != question["points"]:
                lost.append((name, what, found))
    assert not lost


def is_open(value):
    """Whether nothing is answered: `...`, a function that is not written, containers without anything else."""
    if isinstance(value, dict):
        return all(map(is_open, value.values()))
    return value is None or value is ... or callable(value)


def copied(names):
    """The names, with containers of their own: an answer may change them."""
    return {name: value.copy() if isinstance(value, (dict, list)) else value for name, value in names.items()}


def test_students_get_no_solution_no_hidden_test_and_no_seed(assignment):
    folder, graders, students = assignment
    key, notebook = (nbformat.read(each / f"{folder.name}.ipynb", as_version=4) for each in (graders, students))
    archive = re.search(r'FILES = "([^"]+)"', notebook.cells[0].source)[1]
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(archive))) as files:
        carried = {name: files.read(name) for name in files.namelist()}
    beside = {
        path.relative_to(students).as_posix(): path.read_bytes() for path in students.rglob("*") if path.is_file()
    }
    assert carried == {name: content for name, content in beside.items() if not name.endswith(".ipynb")}
    given = "\n".join(content.decode(errors="replace") for content in beside.values())
    given += "\n".join(cell.source for cell in notebook.cells)
    # Lines of the key that the untouched notebook does not have; short ones stand anywhere.
    kept = {line.strip() for cell in notebook.cells for line in cell.source.splitlines()}
    solved = {line.strip() for cell in key.cells for line in cell.source.splitlines()} - kept
    tests = {path.name: path.read_text() for path in (graders / "tests").glob("*.py")}
    names = {name for text in tests.values() for name in re.findall(r"hidden=True\)\ndef (\w+)", text)}
    assert len(solved) > 10 and names
    assert not [line for line in solved if len(line) > 20 and line in given]
    assert not [name for name in names if re.search(rf"\b{name}\b", given)]
    assert "a seed for tests" not in given and "hidden=True" not in given and "# SOLUTION" not in given
    public, truth = load("course").drawn_of(folder, "a seed for tests")
    assert (
        json.loads(json.dumps(truth)) == json.loads((graders / "tests" / "truth.json").read_text())
        and "truth.json" not in carried
    )
    assert all(carried[name] == public[name] for name in public)
    # A code that a guess of the truth can be held against would say whether it is right.
    course = load("course")
    guessed = hashlib.sha256(course.zipped(carried) + json.dumps(truth).encode()).hexdigest()
    assert not guessed.startswith(notebook.metadata.posembed.course)
    assert "{{" not in "".join(cell.source for cell in [*notebook.cells, *key.cells])
    # Neither in what a page of the notebook does not show.
    assert set(notebook.metadata) == {"kernelspec", "otter", "posembed"}
    of_otter = notebook.metadata.otter
    assert set(of_otter) == {"assignment_name", "OK_FORMAT", "tests"} and not of_otter.tests
    assert set(notebook.metadata.posembed) == {"assignment", "course"}
    assert all(not cell.get("outputs") and not cell.get("attachments") for cell in notebook.cells)
    assert {name for cell in notebook.cells for name in cell.metadata} <= {"tags", "jupyter", "deletable", "editable"}
