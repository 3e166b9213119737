"""Grade a folder of notebooks: grades.csv, a page of feedback for each, and what a person grades on one page.

Usage: python course/grading/grade.py SUBMISSIONS [--course FOLDER] [--out FOLDER] [--assignment NAME] [--unsafe]
                                      [--feedback symptoms|answers|DATE] [--totals] [--roster FILE] [--late PERCENT]

A submission is a notebook in the folder, or in a folder of its own there; the name of the file, or of that folder, is
its student's. Each runs in a sandbox. Otter's tests run here, outside: they ask the sandbox for values and compare.
"""

import argparse
import contextlib
import csv
import hashlib
import os
import re
import resource
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import by_hand
import house
import report
import roster
import torch
from judge import Grade, assignment_of, grade
from submission import printable, read, submissions

ROOT = Path(__file__).resolve().parents[2]


def save(path, text):
    """Write a file, whole; what stood there and says something else is kept beside it."""
    # A spreadsheet may have saved it in another encoding.
    if path.exists() and path.read_bytes() != text.encode():
        number = next(n for n in range(1, 10_000) if not path.with_suffix(f".{n}{path.suffix}").exists())
        path.rename(path.with_suffix(f".{number}{path.suffix}"))
    replace(path, text)


def replace(path, text):
    """Write a file, whole, in place of what stood there."""
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(text.encode())
    new.replace(path)


def read_command_line():
    """What was asked for."""
    parser = argparse.ArgumentParser(description="Grade a folder of notebooks.")
    parser.add_argument("submissions", type=Path)
    parser.add_argument("--course", type=Path, default=ROOT / "_build" / "course" / "graders")
    parser.add_argument("--out", type=Path, default=ROOT / "_build" / "grades")
    parser.add_argument("--assignment", help="where the notebooks are not all of one, or do not say of which they are")
    parser.add_argument("--seconds", type=int, default=house.SECONDS, help="for one notebook (%(default)s)")
    parser.add_argument("--unsafe", action="store_true", help="run the notebooks without a sandbox")
    parser.add_argument(
        "--feedback", default="symptoms", help="symptoms, answers, or the day (2026-12-24) from which it is answers"
    )
    parser.add_argument(
        "--roster", type=Path, help="the table that Canvas or Moodle exported, to be filled with points"
    )
    parser.add_argument("--late", type=float, default=0, help="percent that a late submission loses, in that table")
    parser.add_argument("--totals", action="store_true", help="add up what was entered by hand, and grade nothing")
    return parser.parse_args()


def main():
    """Read the command line, grade, write."""
    options = read_command_line()
    if not options.submissions.is_dir():
        sys.exit(f"grade: {options.submissions} is no folder; name the one that holds the notebooks")
    if not options.course.is_dir():
        sys.exit("grade: the assignments are not made yet; run `make course`, with the seed of this course")
    found = submissions(options.submissions)
    if not any(path.suffix == ".ipynb" for _, path in found):
        sys.exit(f"grade: there is no notebook in {options.submissions}")
    try:
        answers = report.answers_are_shown(options.feedback)
    except ValueError:
        sys.exit(f"grade: FEEDBACK is symptoms, answers, or a day such as 2026-12-24, not {options.feedback!r}")
    wanted = options.assignment or _most_frequent(found)
    if not wanted or not (options.course / wanted / "assignment.json").exists():
        known = ", ".join(sorted(path.parent.name for path in options.course.glob("*/assignment.json")))
        sys.exit(f"grade: there is no assignment {wanted or 'that these notebooks name'!r}; there are {known}")
    about = assignment_of(wanted, options.course)
    try:
        # Before anything is graded: an hour's work shall not end at a folder that cannot be written.
        options.out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=options.out).close()
        entered = by_hand.read(options.out / "by-hand.csv", about)
        people = roster.Roster(options.roster) if options.roster else None
        if options.totals:
            write_totals(entered, about, options.out)
            write_roster(people, about, options)
            return
        kind = house.kind_of_house(options.unsafe)
        imposed = options.assignment is not None
        grades = grade_all(found, options.submissions, options.course, wanted, imposed, kind, options.seconds)
        write_all(grades, entered, about, options.out, answers)
        write_roster(people, about, options)
    except (house.GraderError, ValueError) as error:
        sys.exit(f"grade: {error}")
    except OSError as error:
        sys.exit(f"grade: cannot write to {options.out} ({error.strerror}); name another folder: make grade OUT=folder")


def _most_frequent(found):
    named = Counter()
    for _, path in found:
        with contextlib.suppress(ValueError, OSError):
            named[read(path).assignment] += 1
    del named[""]
    return named.most_common(1)[0][0] if named else ""


def grade_all(found, folder, course, wanted, imposed, kind, seconds):
    """Grade several at a time; say how far it is."""
    students = Counter(roster.owner(student).key for student, _ in found)
    jobs = [(who, path, str(path.relative_to(folder)), course, wanted, imposed, kind, seconds) for who, path in found]
    grades = []
    with ProcessPoolExecutor(os.cpu_count(), initializer=share_the_machine) as pool:
        graded = [pool.submit(grade, *job) for job in jobs]
        for job, future in zip(jobs, graded, strict=True):
            try:
                given = future.result()
            except BrokenProcessPool:
                given = grade_alone(job)
            if (several := students[roster.owner(job[0]).key]) > 1:
                given.reasons.insert(0, f"one of {several} submissions of this student, each graded")
            grades.append(given)
            print(f"grade: {len(grades)}/{len(jobs)} {given.student} {sum(given.points.values()):g}", flush=True)
    return grades


def share_the_machine():
    """What answers make the tests compute may not use up the machine's memory, nor more than one processor."""
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (house.ADDRESSES, house.ADDRESSES))


def grade_alone(job):
    """Grade in a process of its own what went down with others."""
    try:
        with ProcessPoolExecutor(1, initializer=share_the_machine) as pool:
            return pool.submit(grade, *job).result()
    except BrokenProcessPool:
        return Grade(
            printable(job[0]), printable(job[2]), reasons=["its answers brought the grader's own process down"]
        )


def write_all(grades, entered, about, out, answers):
    """Write the tables and the pages."""
    rows = report.rows_of(grades, about)
    save(out / "grades.csv", report.table(rows, entered, about))
    for given in grades:
        key = hashlib.sha256(given.file.encode()).hexdigest()[:8]
        name = re.sub(r"[^A-Za-z0-9-]+", "_", given.student)[:60]
        save(out / f"{name}-{key}.html", report.page(given, about, answers))
    if by_hand.columns(about):
        students = [(given.student, given.file) for given in grades]
        replace(out / "by-hand.csv", by_hand.table(students, entered, about))
        replace(out / "by-hand.html", by_hand.page(grades, about))
    print(f"grade: {about['title']}: {len(grades)} rows in {out / 'grades.csv'}, a page of feedback each beside it")
    if by_hand.columns(about):
        print(f"grade: written answers in {out / 'by-hand.html'}; enter points into {out / 'by-hand.csv'}")


def write_totals(entered, about, out):
    """Add what was entered by hand to the grades that are there."""
    replace(out / "grades.csv", report.table(rows_there(out), entered, about))
    print(f"grade: points given by hand are in {out / 'grades.csv'}")


def rows_there(out):
    """The rows of the table of grades; ValueError while there is none."""
    path = out / "grades.csv"
    if not path.exists():
        raise ValueError(f"there are no grades in {out} yet; grade once without TOTALS")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_roster(people, about, options):
    """Write the table that Canvas or Moodle takes back, and say whose points are not in it."""
    if people is None:
        return
    rows = rows_there(options.out)
    most = sum(question["points"] for question in about["questions"])
    text, nobodys = people.filled(rows, about["title"], most, options.late)
    path = options.out / f"{'canvas' if people.canvas else 'moodle'}.csv"
    replace(path, text)
    still = sum(float(row["open"]) > 0 for row in rows)
    print(f"grade: the table to import is {path}" + (f"; {still} rows wait for points given by hand" if still else ""))
    for student in nobodys:
        print(f"grade: {student!r} is nobody's in {options.roster}")


if __name__ == "__main__":
    main()
