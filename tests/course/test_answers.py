"""What the graders make of answers: the key, the untouched notebook, right answers in other words, wrong ones."""

import base64
import io
import re
import zipfile

import nbformat
import pytest
from otter.test_files.exception_test import ExceptionTestFile
from tool import TOOLS, load

pytestmark = pytest.mark.slow
FOLDERS = sorted(path.parent for path in (TOOLS.parent / "course").glob("*/master.md"))


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def assignment(request, tmp_path_factory):
    """An assignment: its folder, and those of graders and of students as `make course` makes them."""
    out = tmp_path_factory.mktemp("course")
    load("course").make(request.param, out, "a seed for tests")
    return request.param, *(out / who / request.param.name for who in ("graders", "students"))


def names_of(folder, monkeypatch):
    """What is there when all cells but the first have been run, which installs."""
    monkeypatch.chdir(folder)
    notebook, names = nbformat.read(folder / f"{folder.name}.ipynb", as_version=4), {}
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"][1:]
    for cell in cells:
        if not cell.startswith("grader.check"):
            exec(cell, names)
    return names


def score(tests, question, names):
    """The points, and what the checks that failed say."""
    test = ExceptionTestFile.from_file(str(tests / f"{question}.py"))
    test.run(names | {"__folder__": str(tests)})
    assert sum(case.points for case in test.test_cases) == pytest.approx(test.possible), question
    return round(test.score, 6), [result.message for result in test.test_case_results if not result.passed]


def answers_of(folder):
    answers = load("answers", folder)
    return answers.RIGHT, answers.WRONG


def test_the_graders_know_right_from_wrong(assignment, monkeypatch):
    folder, graders, students = assignment
    tests = graders / "tests"
    questions = {q["name"]: q["points"] for q in load("course").questions_of(folder) if not q["manual"]}
    key, untouched = names_of(graders, monkeypatch), names_of(students, monkeypatch)
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
            exec(answer, names := copied(key))
            if (found := score(tests, name, names))[0] != points:
                surprises.append((name, answer, found))
        for what, answer in wrong[name].items():
            exec(answer, names := copied(key))
            if (found := score(tests, name, names))[0] == points:
                surprises.append((name, what, found))
    assert not surprises


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
    public, private = load("course").data_of(folder, "a seed for tests")
    assert not [name for name in private if name not in public and private[name] in carried.values()]
    assert all(carried[name] == public[name] for name in public)
    # Neither in what a page of the notebook does not show.
    assert set(notebook.metadata) == {"kernelspec", "posembed"}
    assert set(notebook.metadata.posembed) == {"assignment", "course"}
    assert all(not cell.get("outputs") and not cell.get("attachments") for cell in notebook.cells)
    assert {name for cell in notebook.cells for name in cell.metadata} <= {"tags", "jupyter", "deletable", "editable"}
