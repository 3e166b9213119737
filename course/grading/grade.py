"""Grade a folder of notebooks: grades.csv, and a page of feedback for each.

Usage: python course/grading/grade.py SUBMISSIONS [--course FOLDER] [--out FOLDER] [--assignment NAME] [--unsafe]

A submission is a notebook in the folder, or in a folder of its own there; the name of the file, or of that folder, is
its student's. Each runs in a sandbox. Otter's tests run here, outside: they ask the sandbox for values and compare.
"""

import argparse
import contextlib
import csv
import hashlib
import html
import io
import json
import os
import re
import resource
import signal
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path

import house

ROOT = Path(__file__).resolve().parents[2]
# A notebook with all its pictures is smaller.
LARGEST = 50 * 2**20


@dataclass
class Grade:
    """What one submission is given.

    Attributes:
        student: a name that can be printed.
        file: the notebook, within the folder.
        assignment: its name; "" where the notebook does not say.
        points: of each question that a machine grades.
        feedback: of each question, what its checks said.
        reason: what went wrong, for the table.
    """

    student: str
    file: str
    assignment: str = ""
    points: dict = field(default_factory=dict)
    feedback: dict = field(default_factory=dict)
    reason: str = ""


def submissions(folder):
    """Every file of the folder that could be one: its student's name and its path, in a fixed order."""
    found = []
    for path in sorted(folder.iterdir(), key=lambda each: os.fsencode(each.name)):
        if path.name.startswith(".") or path.name == "__MACOSX":
            continue
        if path.is_dir() and not path.is_symlink():
            inside = sorted((p for p in path.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts), key=os.fsencode)
            found += [(path.name, each) for each in inside or [path]]
        else:
            found.append((path.stem, path))
    return found


def printable(name):
    """A name with nothing in it that could break a line of a table, or be a formula of a spreadsheet."""
    name = name.encode("utf-8", "surrogatepass").decode("utf-8", "backslashreplace")
    name = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in name)
    return f"'{name}" if name.startswith(("=", "+", "-", "@")) else name


def read(path):
    """A submission's cells with their numbers, and what its metadata says; ValueError says in a line why not."""
    if path.is_symlink() or not path.is_file():
        raise ValueError(
            "there is no notebook in it" if path.is_dir() and not path.is_symlink() else "it is no plain file"
        )
    if path.suffix != ".ipynb":
        raise ValueError("it is no notebook; ask for the .ipynb file")
    if path.stat().st_size > LARGEST:
        raise ValueError(f"it has more than {LARGEST // 2**20} MB")
    try:
        notebook = json.loads(path.read_bytes())
        code = [(n, cell) for n, cell in enumerate(notebook["cells"], 1) if cell["cell_type"] == "code"]
        cells = [(n, "".join(cell["source"])) for n, cell in code]
        told = notebook["metadata"].get("posembed", {})
        return cells, str(told.get("assignment", "")), str(told.get("course", ""))
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("it is no notebook, or only a part of one") from None


def assignment_of(name, course):
    """What `make course` wrote of an assignment."""
    return json.loads((course / name / "assignment.json").read_text(encoding="utf-8"))


def grade(student, path, file, course, wanted, kind, seconds):
    """Grade one submission; whatever is wrong with it becomes the reason of its row."""
    given = Grade(printable(student), printable(file))
    try:
        cells, given.assignment, made_for = read(path)
        if given.assignment != wanted:
            of = f"of {given.assignment!r}" if given.assignment else "of none that it names"
            raise ValueError(f"it is {of}, not of {wanted!r}")
        if made_for != assignment_of(wanted, course)["course"]:
            raise ValueError("it was made for another course: its seed is not this one's")
        with house.House(kind, cells, seconds) as inside:
            _test(given, inside, course / wanted / "tests", seconds)
            more = f" (and {len(inside.errors) - 1} more)" if len(inside.errors) > 1 else ""
            given.reason = inside.why or "".join(inside.errors[:1])[:300] + more
    except house.GraderError:
        raise
    except TestsTooLongError:
        given.reason = f"its answers kept the tests busy for more than {2 * seconds} s"
    except Exception as error:
        given.reason = str(error)
    finally:
        signal.alarm(0)
    given.reason = printable(given.reason)
    return given


class TestsTooLongError(BaseException):
    """Otter takes every Exception for a test that fails, and would go on with the next."""


def _too_long(*_):
    raise TestsTooLongError


def _test(given, inside, tests, seconds):
    from otter.test_files.exception_test import ExceptionTestFile

    # For the tests themselves, which an answer may keep busy; the sandbox has its own watch.
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(2 * seconds)

    names = house.Names(inside, tests)
    for path in sorted(tests.glob("*.py")):
        test = ExceptionTestFile.from_file(str(path))
        test.run(names)
        given.points[path.stem] = round(test.score, 4)
        given.feedback[path.stem] = [
            (result.passed, result.test_case.points, _symptom(result)) for result in test.test_case_results
        ]


def _symptom(result):
    """What a check says, without the line of the test in which it says it."""
    return "" if result.passed else printable(result.message.strip().splitlines()[-1].split(": ", 1)[-1])


def table(grades, assignment):
    """The rows of grades.csv as text. Questions that a person grades have an empty column."""
    questions = assignment["questions"]
    names = [question["name"] for question in questions]
    of_machine = [question["name"] for question in questions if not question["manual"]]
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(
        ["student", "file", "score", "out of", *(f"{q['name']} ({q['points']:g})" for q in questions), "reason"]
    )
    most = sum(question["points"] for question in questions if not question["manual"])
    for given in grades:
        by_question = [f"{given.points.get(name, 0):g}" if name in of_machine else "" for name in names]
        total = f"{sum(given.points.values()):g}"
        rows.writerow([given.student, given.file, total, f"{most:g}", *by_question, given.reason])
    return out.getvalue()


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>body{{max-width:44rem;margin:2rem auto;padding:0 1rem;font:1rem/1.5 sans-serif}}
td{{padding:.2rem .8rem .2rem 0;vertical-align:top}}</style><h1>{title}</h1><p>{student}: {score:g} of {most:g} points
that a machine gives.</p>{reason}{questions}</html>
"""


def page(given, assignment):
    """A student's page of feedback."""
    parts = []
    for question in assignment["questions"]:
        name, points = question["name"], question["points"]
        if question["manual"]:
            parts.append(f"<h2>{name}: {points:g} points, given by a person</h2>")
            continue
        checks = given.feedback.get(name, [])
        parts.append(f"<h2>{name}: {given.points.get(name, 0):g} of {points:g}</h2><table>")
        for passed, worth, symptom in checks:
            said = html.escape(symptom) if symptom else "passed"
            parts.append(f"<tr><td>{'✓' if passed else '✗'}</td><td>{worth or 0:g}</td><td>{said}</td></tr>")
        parts.append("</table>" if checks else "</table><p>It could not be run.</p>")
    most = sum(question["points"] for question in assignment["questions"] if not question["manual"])
    reason = f"<p><strong>{html.escape(given.reason)}</strong></p>" if given.reason else ""
    words = {"title": html.escape(assignment["title"]), "student": html.escape(given.student)}
    return PAGE.format(**words, score=sum(given.points.values()), most=most, reason=reason, questions="".join(parts))


def save(path, text):
    """Write a file, whole; what stood there and says something else is kept beside it."""
    # A spreadsheet may have saved it in another encoding.
    if path.exists() and path.read_bytes() != text.encode():
        number = next(n for n in range(1, 10_000) if not path.with_suffix(f".{n}{path.suffix}").exists())
        path.rename(path.with_suffix(f".{number}{path.suffix}"))
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(text.encode())
    new.replace(path)


def main():
    """Read the command line, grade, write."""
    parser = argparse.ArgumentParser(description="Grade a folder of notebooks.")
    parser.add_argument("submissions", type=Path)
    parser.add_argument("--course", type=Path, default=ROOT / "_build" / "course" / "graders")
    parser.add_argument("--out", type=Path, default=ROOT / "_build" / "grades")
    parser.add_argument("--assignment", help="where the folder's notebooks are not all of one")
    parser.add_argument("--seconds", type=int, default=house.SECONDS, help="for one notebook (%(default)s)")
    parser.add_argument("--unsafe", action="store_true", help="run the notebooks without a sandbox")
    options = parser.parse_args()
    if not options.submissions.is_dir():
        sys.exit(f"grade: {options.submissions} is no folder; name the one that holds the notebooks")
    if not options.course.is_dir():
        sys.exit("grade: the assignments are not made yet; run `make course`, with the seed of this course")
    found = submissions(options.submissions)
    if not any(path.suffix == ".ipynb" for _, path in found):
        sys.exit(f"grade: there is no notebook in {options.submissions}")
    kind = house.kind_of_house(options.unsafe)
    wanted = options.assignment or _most_frequent(found)
    if not wanted or not (options.course / wanted / "assignment.json").exists():
        known = ", ".join(sorted(path.parent.name for path in options.course.glob("*/assignment.json")))
        sys.exit(f"grade: there is no assignment {wanted or 'that these notebooks name'!r}; there are {known}")
    try:
        # Before anything is graded: an hour's work shall not end at a folder that cannot be written.
        options.out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=options.out).close()
        grades = grade_all(found, options.submissions, options.course, wanted, kind, options.seconds)
        write_all(grades, assignment_of(wanted, options.course), options.out)
    except house.GraderError as error:
        sys.exit(f"grade: {error}")
    except OSError as error:
        sys.exit(f"grade: cannot write to {options.out} ({error.strerror}); name another folder: make grade OUT=folder")


def _most_frequent(found):
    named = Counter()
    for _, path in found:
        with contextlib.suppress(ValueError, OSError):
            named[read(path)[1]] += 1
    del named[""]
    return named.most_common(1)[0][0] if named else ""


def grade_all(found, folder, course, wanted, kind, seconds):
    """Grade several at a time; say how far it is."""
    students = Counter(student for student, _ in found)
    jobs = [(student, path, str(path.relative_to(folder)), course, wanted, kind, seconds) for student, path in found]
    grades = []
    with ProcessPoolExecutor(os.cpu_count(), initializer=limit_memory) as pool:
        graded = [pool.submit(grade, *job) for job in jobs]
        for job, future in zip(jobs, graded, strict=True):
            try:
                given = future.result()
            except BrokenProcessPool:
                given = grade_alone(job)
            if students[job[0]] > 1:
                two = f"one of {students[job[0]]} submissions of this student, each graded"
                given.reason = f"{two}; {given.reason}".rstrip("; ")
            grades.append(given)
            print(f"grade: {len(grades)}/{len(jobs)} {given.student} {sum(given.points.values()):g}", flush=True)
    return grades


def limit_memory():
    """What answers make the tests compute may not use up the machine's memory either."""
    resource.setrlimit(resource.RLIMIT_AS, (house.ADDRESSES, house.ADDRESSES))


def grade_alone(job):
    """Grade in a process of its own what went down with others."""
    try:
        with ProcessPoolExecutor(1, initializer=limit_memory) as pool:
            return pool.submit(grade, *job).result()
    except BrokenProcessPool:
        return Grade(printable(job[0]), printable(job[2]), reason="its answers brought the grader's own process down")


def write_all(grades, assignment, out):
    """Write the table and the pages."""
    save(out / "grades.csv", table(grades, assignment))
    for given in grades:
        key = hashlib.sha256(given.file.encode()).hexdigest()[:8]
        save(out / f"{re.sub(r'[^A-Za-z0-9-]+', '_', given.student)[:60]}-{key}.html", page(given, assignment))
    print(
        f"grade: {assignment['title']}: {len(grades)} rows in {out / 'grades.csv'}, a page of feedback each beside it"
    )


if __name__ == "__main__":
    main()
