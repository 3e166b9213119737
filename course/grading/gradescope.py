"""The zip for Gradescope: otter calls this there, and it grades as `make grade` does.

Nothing of a submission runs in otter's own kernel, which sees the tests. It runs in a sandbox, or, in a container that
allows none, as a user who may not read what lies beside it.
"""

import os
from pathlib import Path

import house
import nbformat
from judge import grade
from otter.plugins import AbstractOtterPlugin
from otter.test_files.abstract_test import TestCaseResult
from otter.test_files.exception_test import ExceptionTestFile

HERE = Path(__file__).resolve().parent


class Grader(AbstractOtterPlugin):
    """What otter calls, as `otter_config.json` says."""

    def before_execution(self, submission):
        """Hand otter an empty notebook to run."""
        return nbformat.v4.new_notebook()

    def after_grading(self, results):
        """Put the points of the submission in place of those of the empty notebook."""
        HERE.chmod(0o700)
        course = HERE / "graders"
        (name,) = (path.name for path in course.iterdir() if path.is_dir())
        file = Path(self.submission_path)
        given = grade(self.student() or file.stem, file, file.name, course, name, True, kind_of_house(), house.SECONDS)
        tests = [ExceptionTestFile.from_file(str(path)) for path in sorted((course / name / "tests").glob("*.py"))]
        results.results = {test.name: _with_results(test, given.feedback.get(test.name)) for test in tests}
        results.set_output(given.reason)

    def student(self):
        """The address of the one who handed it in, where Gradescope says it."""
        return next((user["email"] for user in (self.submission_metadata or {}).get("users", [])), "")


def kind_of_house():
    """A sandbox if there is one, or another user in a container whose root this is."""
    if os.getuid() == 0 and not house.has_bubblewrap():
        return "user"
    return house.kind_of_house()


def _with_results(test, checks):
    test.test_case_results = [
        TestCaseResult(case, check.said if check else "It could not be run.", bool(check and check.passed))
        for case, check in zip(test.test_cases, checks or [None] * len(test.test_cases), strict=True)
    ]
    return test
