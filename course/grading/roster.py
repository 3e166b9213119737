"""Students as Canvas and Moodle name them: whose a file is, whether it was late, and the table that takes grades back.

Canvas: the table is what its gradebook exports, and the files are what *Download submissions* gives. Moodle: the table
is an assignment's grading worksheet, and the files are what *Download all submissions* gives, with folders or without.
"""

import csv
import io
import re
from dataclasses import dataclass

CANVAS = re.compile(r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<id>\d+)_\d+_")
MOODLE = re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_file")
# By what a file or folder may be named that an instructor has named.
NAMES = ("Student", "SIS User ID", "SIS Login ID", "Full name", "ID number", "Email address", "Username")


@dataclass(frozen=True)
class Owner:
    """Whose a submission is.

    Attributes:
        key: their number in Canvas or Moodle, or the name of the file where it has none.
        late: whether Canvas says so in the file's name.
    """

    key: str
    late: bool = False


def owner(student):
    """Whose a submission is, by the name of its file or folder."""
    # What comes behind Canvas's part, or behind Moodle's first, is what the student named the file.
    found = CANVAS.match(student) or MOODLE.match(student)
    if not found:
        return Owner(student)
    return Owner(found["id"], bool(found.groupdict().get("late")))


def worth(row, less_if_late):
    """The points of a row of grades, less some percent where its file was late."""
    return float(row["score"]) * (1 - less_if_late / 100 * owner(row["student"]).late)


class Roster:
    """The table that Canvas or Moodle exported. ValueError where it is neither's.

    Args:
        path: a file in CSV.
    """

    def __init__(self, path):
        try:
            rows = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline=""))
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} cannot be read: {error}") from None
        self.columns, self.rows = list(rows.fieldnames or ()), list(rows)
        self.canvas = {"Student", "ID"} <= set(self.columns)
        # Moodle imports a worksheet by these three, in the language of whoever uploads it.
        if not self.canvas and not {"Identifier", "Grade", "Last modified (grade)"} <= set(self.columns):
            raise ValueError(f"{path.name} is no gradebook of Canvas, and no grading worksheet of Moodle in English")

    def filled(self, grades, title, most, less_if_late):
        """The table with the points of an assignment in it, and the grades that are nobody's in it.

        Args:
            grades: rows of grades.csv.
            title: of the assignment, by which Canvas's column is found.
            most: its points.
            less_if_late: how many percent a late submission loses.
        """
        # Of several of one student the one with most points counts, and comes last.
        given = {owner(row["student"]).key: row for row in sorted(grades, key=lambda row: worth(row, less_if_late))}
        column = self._column(title)
        columns = self.columns if column in self.columns else [*self.columns, column]
        out = io.StringIO()
        writer = csv.DictWriter(out, columns, lineterminator="\n", restval="", extrasaction="ignore")
        writer.writeheader()
        for row in self.rows:
            row = dict(row)
            if found := [given.pop(key) for key in dict.fromkeys(self._keys(row)) if key in given]:
                grade = max(found, key=lambda each: worth(each, less_if_late))
                late = owner(grade["student"]).late or "late" in (row.get("Status") or "").casefold()
                row[column] = f"{round(float(grade['score']) * (1 - less_if_late / 100 * late), 2):g}"
            elif self.canvas and (row["Student"] or "").strip() == "Points Possible":
                row[column] = f"{most:g}"
            writer.writerow(row)
        return out.getvalue(), [row["student"] for row in given.values()]

    def people(self):
        """Of each student every name by which a file may be theirs: the number first, the most readable one last."""
        found = [self._keys(row) for row in self.rows if "Points Possible" not in (row.get("Student") or "")]
        return [names for names in found if names]

    def _column(self, title):
        if not self.canvas:
            return "Grade"
        # Canvas puts the assignment's number behind its name.
        return next((name for name in self.columns if re.fullmatch(rf"{re.escape(title)}( \(\d+\))?", name)), title)

    def _keys(self, row):
        number = row["ID"] if self.canvas else re.sub(r"\D", "", row["Identifier"] or "")
        return [each for each in (number, *(row.get(name) for name in NAMES)) if each]
