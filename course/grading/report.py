"""What is written of grades: the table, and a page of feedback for each student."""

import csv
import datetime
import html
import io

import by_hand

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>body{{max-width:44rem;margin:2rem auto;padding:0 1rem;font:1rem/1.5 sans-serif}}
td{{padding:.2rem .8rem .2rem 0;vertical-align:top}}</style><h1>{title}</h1><p>{student}: {score:g} of {most:g} points
that a machine gives.</p>{reason}{questions}</html>
"""


def answers_are_shown(feedback, today=None):
    """Whether pages say what the hidden checks said: "symptoms", "answers", or the day from which they do."""
    if feedback in ("symptoms", "answers"):
        return feedback == "answers"
    return (today or datetime.date.today()) >= datetime.date.fromisoformat(feedback)


def rows_of(grades, about):
    """The rows of grades.csv as dictionaries; what a person grades is empty."""
    rows = []
    for given in grades:
        row = {"student": given.student, "file": given.file}
        for question in about["questions"]:
            points = "" if question["manual"] else f"{given.points.get(question['name'], 0):g}"
            row[_column(question)] = points
        rows.append(row | {"reason": given.reason})
    return rows


def _column(question):
    return f"{question['name']} ({question['points']:g})"


def table(rows, entered, about):
    """The text of grades.csv: what a person entered is added, and what is open is said."""
    questions = [_column(question) for question in about["questions"]]
    most = {_column(question): question["points"] for question in about["questions"]}
    out = io.StringIO()
    names = ["student", "file", "score", "out of", "open", *questions, "reason"]
    writer = csv.DictWriter(out, names, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        told = entered.get((row["student"], row["file"]), {})
        row = row | {name: told.get(name, "") for name in by_hand.columns(about)}
        score = sum(float(row[name]) for name in questions if row[name])
        still = sum(most[name] for name in questions if not row[name])
        writer.writerow(
            row | {"score": f"{round(score, 4):g}", "out of": f"{sum(most.values()):g}", "open": f"{still:g}"}
        )
    return out.getvalue()


def page(given, about, answers):
    """A student's page of feedback.

    Args:
        given: the grade.
        about: the assignment.
        answers: whether it says what the hidden checks said; else of these it says the points alone, of all together,
            since their number and their names tell what is looked for.
    """
    parts = []
    for question in about["questions"]:
        name, points = question["name"], question["points"]
        if question["manual"]:
            parts.append(f"<h2>{name}: {points:g} points, given by a person</h2>")
            continue
        checks = given.feedback.get(name, [])
        parts.append(f"<h2>{name}: {given.points.get(name, 0):g} of {points:g}</h2><table>")
        parts += [_row(check) for check in checks if answers or not check.hidden]
        if not answers and checks:
            parts.append(_together([check for check in checks if check.hidden]))
        parts.append("</table>" if checks else "</table><p>It could not be run.</p>")
    most = sum(question["points"] for question in about["questions"] if not question["manual"])
    reason = f"<p><strong>{html.escape(given.reason)}</strong></p>" if given.reason else ""
    words = {"title": html.escape(about["title"]), "student": html.escape(given.student)}
    return PAGE.format(**words, score=sum(given.points.values()), most=most, reason=reason, questions="".join(parts))


def _row(check):
    said = html.escape(check.said) if check.said else "passed"
    # Of answers on paper the notebook's checks see the form alone, and give no points.
    points = f"{check.points * check.passed:g} of {check.points:g}" if check.points else ""
    return f"<tr><td>{'✓' if check.passed else '✗'}</td><td>{points}</td><td>{said}</td></tr>"


def _together(hidden):
    most = sum(check.points for check in hidden)
    if not most:
        return ""
    given = sum(check.points for check in hidden if check.passed)
    return f"<tr><td></td><td>{given:g} of {most:g}</td><td>with checks that the notebook has not</td></tr>"
