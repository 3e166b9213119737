"""Grade one submission: run it in a sandbox, and otter's tests outside of it on what it gives."""

import contextlib
import hashlib
import json
import signal
from dataclasses import dataclass, field

import house
from by_hand import written
from otter.test_files.exception_test import ExceptionTestFile
from roster import owner
from submission import printable, read


@dataclass
class Check:
    """What one check of a question said.

    Attributes:
        passed: whether it did.
        points: what it is worth.
        hidden: whether students have it not.
        said: what it saw, where it did not pass.
    """

    passed: bool
    points: float
    hidden: bool
    said: str


@dataclass
class Grade:
    """What one submission is given.

    Attributes:
        student: a name that can be printed.
        file: the notebook, within the folder.
        assignment: its name; "" where the notebook does not say.
        points: of each question that a machine grades.
        feedback: of each question, its checks.
        written: of each question that a person grades, kind, source and output of each cell of the student's.
        reasons: what went wrong or was skipped, in words.
    """

    student: str
    file: str
    assignment: str = ""
    points: dict = field(default_factory=dict)
    feedback: dict = field(default_factory=dict)
    written: dict = field(default_factory=dict)
    reasons: list = field(default_factory=list)

    @property
    def reason(self):
        """All reasons in one line."""
        return printable("; ".join(each[:300] for each in dict.fromkeys(self.reasons) if each)[:3000])


class TestsTooLongError(BaseException):
    """Otter takes every Exception for a test that fails, and would go on with the next."""


def assignment_of(name, course):
    """What `make course` wrote of an assignment."""
    return json.loads((course / name / "assignment.json").read_text(encoding="utf-8"))


def grade(student, path, file, course, wanted, imposed, kind, seconds):
    """Grade one submission; whatever is wrong with it becomes a reason of its row."""
    given, about = Grade(printable(student), printable(file)), assignment_of(wanted, course)
    try:
        submission = read(path)
        given.assignment = submission.assignment
        refuse_another(submission, wanted, about, imposed)
        data = numbers_of(submission, student, course / wanted, imposed)
        if data.name == "tests" and (course / "students.json").exists():
            given.reasons.append("note: no student's name and no numbers of their own: graded by the numbers of all")
        told = json.loads((data / "given.json").read_text())
        given.written = written(submission, about, told)
        judge(given, submission, course / wanted, data, kind, seconds)
    except house.GraderError:
        raise
    except TestsTooLongError:
        given.reasons.append(f"its answers kept the tests busy for more than {2 * seconds} s")
    except Exception as error:
        given.reasons.append(str(error))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return given


def refuse_another(submission, wanted, about, imposed):
    """Refuse what is of another assignment, or of another course unless the assignment was imposed."""
    if imposed and submission.assignment in ("", wanted):
        return
    if submission.assignment != wanted:
        of = f"of {submission.assignment!r}" if submission.assignment else "of none that it names"
        raise ValueError(f"it is {of}, not of {wanted!r}")
    if submission.course != about["course"]:
        raise ValueError(
            f"it was made for another course, or from other files; ASSIGNMENT={wanted} grades it all the same"
        )


def numbers_of(submission, student, folder, imposed):
    """The folder of what was drawn for a student; for all of them, where the course has no roster."""
    known = folder.parent / "students.json"
    if not known.exists():
        return folder / "tests"
    codes = json.loads(known.read_text(encoding="utf-8"))
    own = codes.get(owner(student).key, submission.student)
    if own != submission.student and not imposed:
        raise ValueError("it holds the numbers of another student; ASSIGNMENT=... grades it by this student's own")
    return folder / "by-student" / own if own in codes.values() else folder / "tests"


def judge(given, submission, folder, data, kind, seconds):
    """Run the cells, fetch the answers, then run the tests of all questions."""
    # The last question first: functions that a question hands to an answer would do for an answer to a later one.
    paths = sorted((folder / "tests").glob("*.py"), reverse=True)
    tests = [ExceptionTestFile.from_file(str(path)) for path in paths]
    wanted = sorted({name for test in tests for case in test.test_cases for name in case.body._get_func_params()})
    questions = {each["name"]: each for each in json.loads((folder / "assignment.json").read_text())["questions"]}
    with house.House(kind, submission.code, seconds) as inside, contextlib.ExitStack() as after:
        forbidden = {each: about.get("without", ()) for each, about in questions.items()}
        names = house.Names(inside, data, [name for name in wanted if name != "env"], forbidden)
        after.callback(names.close)
        names["__drawn__"] = drawn_for(submission, folder)
        # For the tests themselves, which an answer may keep busy; the sandbox has its own watch.
        signal.signal(signal.SIGPROF, _too_long)
        signal.setitimer(signal.ITIMER_PROF, 2 * seconds)
        given.reasons += inside.errors
        with contextlib.suppress(house.EndedError):
            for test in tests:
                names.question = test.name
                test.run(names)
                given.points[test.name] = round(test.score, 4)
                given.feedback[test.name] = [_check(result) for result in test.test_case_results]
        given.reasons += reversed(names.problems.values())
        given.reasons += [f"note: {note}" for note in inside.notes]
    return tests


def drawn_for(submission, folder):
    """What the inputs of hidden tests are drawn from: the course's secret and this very file."""
    secret = folder / "tests" / "secret.txt"
    told = secret.read_text(encoding="utf-8") if secret.exists() else ""
    return hashlib.sha256(f"{told} {submission.digest}".encode()).hexdigest()


def _too_long(*_):
    raise TestsTooLongError


def _check(result):
    case = result.test_case
    return Check(result.passed, case.points or 0, case.hidden, symptom(result))


def symptom(result):
    """What a check says, without the line of the test in which it says it."""
    return "" if result.passed else printable(result.message.strip().splitlines()[-1].split(": ", 1)[-1])
