"""Rosters of Canvas and Moodle: whose a file is, and what goes back."""

import csv
import io

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
Identifier,Full name,Email address,Status,Grade,Maximum grade
Participant 7,Jane Doe,jane@x.org,Submitted for grading - 2 hours late,,40.00
Participant 8,Kim van Ng,kim@x.org,Submitted for grading,,40.00
Participant 9,Ada O'Neil,ada@x.org,No submission,,40.00
"""


def filled(tmp_path, table, grades, less=0):
    path = tmp_path / "roster.csv"
    path.write_text(table)
    rows = [{"student": student, "score": score} for student, score in grades.items()]
    text, nobodys = roster.Roster(path).filled(rows, "1. Order and lookup", 40, less)
    return list(csv.DictReader(io.StringIO(text))), nobodys


def test_canvas_gets_its_table_back_with_points(tmp_path):
    grades = {"doejane_LATE_101_5001_order-and-lookup": "36", "doejane_101_5002_order-and-lookup-1": "20"}
    grades |= {"kim": "38.5", "somebody": "3"}
    rows, nobodys = filled(tmp_path, CANVAS, grades, less=10)
    # The best of several counts; a file that an instructor named is found by login.
    assert [row["1. Order and lookup (991)"] for row in rows] == ["40", "32.4", "38.5", ""]
    assert list(rows[0]) == CANVAS.splitlines()[0].split(",") and nobodys == ["somebody"]


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
