"""Rosters of Canvas and Moodle: whose a file is, and what goes back."""

import csv
import io
import json

import pytest
from tool import TOOLS, load

roster = load("roster", TOOLS.parent / "course" / "grading")
CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,1. Order and lookup (991)
    Points Possible,,,,,40
"Doe, Jane",101,s1,jane,A,
"Ng, Kim",102,s2,kim,A,
"O'Neil, Ada",103,s3,ada,A,
"""
MOODLE = """\
Identifier,Full name,Email address,Status,Grade,Maximum grade,Last modified (grade)
Participant 7,Jane Doe,jane@x.org,Submitted for grading - 2 hours late,,40.00,-
Participant 8,Kim van Ng,kim@x.org,Submitted for grading,,40.00,-
Participant 9,Ada O'Neil,ada@x.org,No submission,,40.00,-
"""


def filled(tmp_path, table, grades, less=0):
    path = tmp_path / "roster.csv"
    path.write_text(table)
    rows = [{"student": student, "score": score} for student, score in grades.items()]
    text, nobodys = roster.Roster(path).filled(rows, "1. Order and lookup", 40, less)
    return list(csv.DictReader(io.StringIO(text))), nobodys


def test_canvas_gets_its_table_back_with_points(tmp_path):
    grades = {"doejane_LATE_101_5001_order-and-lookup": "36", "doejane_101_5002_order-and-lookup-1": "20"}
    # What was on time is worth more than what was late and a little better.
    grades |= {"ngkim_102_1_a": "35", "ngkim_LATE_102_2_a": "38", "kim": "1", "ada": "20", "somebody": "3"}
    rows, nobodys = filled(tmp_path, CANVAS, grades, less=10)
    # The best of several counts; a file that an instructor named is found by login.
    assert [row["1. Order and lookup (991)"] for row in rows] == ["40", "32.4", "35", "20"]
    assert list(rows[0]) == CANVAS.splitlines()[0].split(",") and nobodys == ["somebody"]


@pytest.mark.parametrize(
    ("file", "key", "late"),
    [
        ("doejane_LATE_101_5001_x_102_assignsubmission_file", "101", True),
        ("doejane_101_5001_LATE_102_1_a", "101", False),
        ("Jane Doe_7_assignsubmission_file_8_assignsubmission_file", "7", False),
    ],
)
def test_what_a_student_names_a_file_makes_it_nobody_elses_and_no_less_late(file, key, late):
    assert roster.owner(file) == roster.Owner(key, late)


def test_a_gradebook_without_the_assignment_gets_a_column_for_it(tmp_path):
    table = CANVAS.replace(",1. Order and lookup (991)", "").replace(",40\n", "\n").replace(",A,\n", ",A\n")
    rows, _ = filled(tmp_path, table, {"ngkim_102_1_a": "36"})
    assert [row["1. Order and lookup"] for row in rows] == ["40", "", "36", ""]


def test_moodle_gets_its_worksheet_back_with_points(tmp_path):
    grades = {"Jane Doe_7_assignsubmission_file_": "40", "Kim van Ng_8_assignsubmission_file_a_1_2_b": "30"}
    rows, nobodys = filled(tmp_path, MOODLE, grades, less=25)
    assert [row["Grade"] for row in rows] == ["30", "30", ""] and nobodys == []


@pytest.mark.parametrize("name", ["ada_lovelace", "a_1_b", "2026_11_28", "x_12", ""])
def test_a_name_that_is_nobodys_export_is_itself(name):
    assert roster.owner(name) == roster.Owner(name)


def test_another_table_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no gradebook of Canvas, and no grading worksheet of Moodle"):
        filled(tmp_path, "a,b\n1,2\n", {})


def test_students_have_codes_by_every_name_and_folders_of_their_own(tmp_path):
    (tmp_path / "roster.csv").write_text(CANVAS)
    people = load("course").people_of(tmp_path / "roster.csv", "a seed", tmp_path / "out")
    codes = json.loads((tmp_path / "out" / "graders" / "students.json").read_text())
    assert [who for _, who in people] == ["jane", "kim", "ada"] and len({code for code, _ in people}) == 3
    assert codes["101"] == codes["jane"] == codes["Doe, Jane"] == people[0][0]
    other = load("course").people_of(tmp_path / "roster.csv", "another seed", tmp_path / "other")
    assert {code for code, _ in other}.isdisjoint(codes.values())


def test_the_numbers_of_another_student_are_refused(tmp_path):
    judge, submission = (load(name, TOOLS.parent / "course" / "grading") for name in ("judge", "submission"))
    (tmp_path / "students.json").write_text(json.dumps({"101": "1f2e", "kim": "9a8b"}))
    folder = tmp_path / "order"
    mine, kims, nobodys = (submission.Submission(student=code) for code in ("1f2e", "9a8b", ""))
    own = judge.numbers_of(mine, "doejane_101_5002_order", folder, False)
    assert own == folder / "by-student" / "1f2e" == judge.numbers_of(kims, "doejane_101_5002_order", folder, True)
    for other in (kims, nobodys):
        with pytest.raises(ValueError, match="it holds the numbers of another student"):
            judge.numbers_of(other, "doejane_101_5002_order", folder, False)
    # Of one whom the roster does not know, the notebook says whose numbers it holds.
    assert judge.numbers_of(kims, "a guest", folder, False) == folder / "by-student" / "9a8b"
    assert judge.numbers_of(nobodys, "a guest", folder, False) == folder / "tests"
