"""The ten tasks run and agree, and their page shows the stored run. No test here depends on how long anything takes."""

import json
import re

import pytest

from benchmarks.alternatives import LIBRARIES, TASKS, page, sources
from benchmarks.alternatives import __main__ as command

SLOW = ("hidden_states", "small_study")


def stored():
    return json.loads(page.RESULTS.read_text(encoding="utf-8"))


@pytest.mark.usefixtures("encoder")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in TASKS], ids=list(TASKS)
)
def test_each_task_runs_and_the_answers_agree(name):
    ours, *others = command.measure(name, TASKS[name], quick=True)
    assert ours.library == "posembed" and ours.median > 0 and ours.shown and ours.failed is None
    for row in others:
        package = LIBRARIES[row.library][0]
        missing = package in page.OPTIONAL and not command.installed(package)
        assert row.failed == ("not installed where this was run" if missing else None)
        assert missing or (row.median > 0 and row.shown)


def test_an_answer_that_differs_stops_the_run():
    answers = {"posembed": (True, 1e-7), "plain": (False, 1.0)}
    with pytest.raises(AssertionError):
        TASKS["order"].agree(answers, None)


def test_lines_are_those_of_the_code_that_is_shown():
    def sample(x):
        """Said once."""
        import math

        y = math.sqrt(
            x,
        )
        return y

    assert sources.n_lines(sample) == 3
    helped = TASKS["hidden_states"].transformers
    assert "def _errors" in sources.code(helped) and sources.n_lines(helped) > 10
    for row in stored()["rows"]:
        assert row["lines"] == sources.n_lines(getattr(TASKS[row["task"]], row["library"]))


def test_the_page_of_the_book_shows_the_stored_run():
    document, text = stored(), page.PAGE.read_text(encoding="utf-8")
    assert text == page.render(document), "run python -m benchmarks.alternatives --page"
    assert page.PICTURE.read_text(encoding="utf-8") == page.draw(document), (
        "run python -m benchmarks.alternatives --page"
    )
    assert not document["settings"]["quick"] and "/home" not in text and "/tmp" not in text
    wanted = [(name, library) for name, task in TASKS.items() for library in LIBRARIES if hasattr(task, library)]
    assert [(row["task"], row["library"]) for row in document["rows"]] == wanted
    assert len(re.findall(r"^## \d+\. ", text, re.MULTILINE)) == 10


def test_each_library_does_a_task_or_says_why_not():
    for task in TASKS.values():
        assert {name for name in vars(task) if name in LIBRARIES}.isdisjoint(task.ABSENT)
        for library, (_, nothing) in LIBRARIES.items():
            assert hasattr(task, library) or task.ABSENT.get(library, nothing)
