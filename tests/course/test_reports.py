"""What is written of grades: two levels of feedback, and the page and table of what a person grades."""

import csv
import datetime
import json
import sys

import pytest
from refusals import refused
from tool import TOOLS

GRADING = TOOLS.parent / "course" / "grading"
ABOUT = {
    "title": "1. Order",
    "questions": [
        {"name": "q1", "points": 3, "manual": False, "number": 1},
        {"name": "q2", "points": 4, "manual": True, "number": 2, "rubric": "1 point for <each>"},
    ],
}


@pytest.fixture
def graders(monkeypatch):
    """The modules of the graders, which import each other by their names."""
    monkeypatch.syspath_prepend(str(GRADING))
    names = ("by_hand", "report", "judge", "submission")
    found = {name: __import__(name) for name in names}
    yield found
    for name in [name for name, module in sys.modules.items() if str(GRADING) in str(getattr(module, "__file__", ""))]:
        sys.modules.pop(name)


def graded(graders):
    """One who is wrong where a hidden check looks."""
    judge = graders["judge"]
    checks = [judge.Check(True, 1, False, ""), judge.Check(False, 2, True, "the answer is 42")]
    return judge.Grade("ada", "ada.ipynb", "order", {"q1": 1.0}, {"q1": checks})


def test_half_of_a_character_in_a_notebook_harms_neither_its_answers_nor_the_page_of_all(graders, tmp_path):
    cells = [{"cell_type": "code", "source": "x = 1  # \ud83d", "outputs": [{"text": "\ud83d"}]}]
    cells.insert(0, {"cell_type": "markdown", "source": "**Question 2**"})
    (tmp_path / "ada.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}}))
    submission = graders["submission"].read(tmp_path / "ada.ipynb")
    given = graders["judge"].Grade("ada", "ada.ipynb", written=graders["by_hand"].written(submission, ABOUT, []))
    assert submission.code == [(2, "x = 1  # ?")]
    assert b'<pre class="output">?</pre>' in graders["by_hand"].page([given], ABOUT).encode()


def test_answers_are_shown_from_their_day_on_and_symptoms_always(graders):
    report, given = graders["report"], graded(graders)
    before, after = (report.page(given, ABOUT, answers) for answers in (False, True))
    assert (
        "42" not in before
        and "0 of 2</td><td>with checks" in before
        and "<td>1 of 1</td>" in before
        and "the answer is 42" in after
    )
    day = datetime.date(2026, 12, 24)
    assert report.answers_are_shown("2026-12-24", day) and not report.answers_are_shown("2026-12-25", day)
    assert report.answers_are_shown("answers") and not report.answers_are_shown("symptoms")


def test_what_was_written_stands_beside_the_rubric_without_its_html(graders):
    cells = [
        (1, "markdown", "**Question 1** (3 points). First.", ""),
        (2, "code", "x = 1", ""),
        # As Otter writes the first cell of a question that a person grades.
        (3, "markdown", "<!-- BEGIN QUESTION -->\n\n## In words\n\n**Question 2** (4 points). Second.", ""),
        (4, "markdown", "Mine: <script>alert(1)</script>", ""),
        (5, "code", "print(2)", "2"),
    ]
    about, told = ABOUT, [graders["by_hand"].digest(cells[2][2])]
    given = graded(graders)
    given.written = graders["by_hand"].written(graders["submission"].Submission(cells), about, told)
    assert [source for _, source, _ in given.written["q2"]] == [cells[3][2], cells[4][2]]
    # Who took the question's cell away has answered all the same.
    gone = graders["submission"].Submission([cells[0], cells[3], cells[4]])
    assert graders["by_hand"].written(gone, about, told)["q2"] == [cells[0][1:], cells[3][1:]]
    page = graders["by_hand"].page([given], about)
    assert "&lt;script&gt;" in page and "<script>" not in page and "1 point for &lt;each&gt;" in page


def test_what_was_entered_survives_and_is_added(graders, tmp_path):
    by_hand, report, given = graders["by_hand"], graders["report"], graded(graders)
    path = tmp_path / "by-hand.csv"
    path.write_text(by_hand.table([("ada", "ada.ipynb")], {}, ABOUT).replace("ada.ipynb,,", 'ada.ipynb,"2,5",fine'))
    entered = by_hand.read(path, ABOUT)
    assert by_hand.table([("ada", "ada.ipynb")], entered, ABOUT).splitlines()[1] == "ada,ada.ipynb,2.5,fine"
    (row,) = csv.DictReader(report.table(report.rows_of([given], ABOUT), entered, ABOUT).splitlines())
    assert (row["score"], row["open"], row["out of"], row["q2 (4)"]) == ("3.5", "0", "7", "2.5")


@pytest.mark.parametrize("entered", ["5", "-1", "all", "nan"])
def test_points_that_a_question_has_not_are_refused(graders, tmp_path, entered):
    path = tmp_path / "by-hand.csv"
    path.write_text(f"student,file,q2 (4),comment\nada,ada.ipynb,{entered},\n")
    message = f"by-hand.csv, line 2: q2 (4) has {entered!r}, not a number from 0 to 4"
    assert refused(ValueError, graders["by_hand"].read, path, ABOUT) == message


def test_a_cell_that_is_none_costs_no_other_its_answer(graders, tmp_path):
    cells = [None, {"cell_type": "code"}, {"cell_type": "code", "source": ["x = ", "1"]}]
    (tmp_path / "a.ipynb").write_text("\ufeff" + json.dumps({"cells": cells}), encoding="utf-8")
    assert graders["submission"].read(tmp_path / "a.ipynb").code == [(2, ""), (3, "x = 1")]
