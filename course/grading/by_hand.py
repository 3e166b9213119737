"""Questions that a person grades: what students wrote, beside the rubric, and a table that keeps what was entered."""

import csv
import hashlib
import html
import io
import re

HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}: by hand</title><style>body{{max-width:76rem;margin:2rem auto;padding:0 1rem;font:1rem/1.5 sans-serif}}
pre{{white-space:pre-wrap;overflow-wrap:anywhere;margin:.5rem 0}}pre.code,pre.output{{font-size:.85rem}}
pre.code{{border-left:3px solid #888;padding-left:.6rem}}pre.output{{opacity:.75}}section{{display:grid;
grid-template-columns:minmax(0,2fr) minmax(0,1fr);gap:2rem}}aside{{position:sticky;top:1rem;align-self:start;
max-height:95vh;overflow:auto}}@media(max-width:50rem){{section{{display:block}}aside{{position:static}}}}</style>
<h1>{title}: what a person grades</h1><p>Put the points into by-hand.csv beside this page, and grade again, or add them
up alone: TOTALS=yes. What you entered stays.</p>
"""


def digest(source):
    """By which a cell that students were given is known again."""
    return hashlib.sha256(" ".join(source.split()).encode()).hexdigest()[:16]


def written(submission, about, given):
    """Of each question that a person grades, the student's own cells, which were not given: kind, source, output."""
    given, found = set(given), {}
    for question in about["questions"]:
        if question["manual"]:
            found[question["name"]] = _cells_of(submission, question.get("number"), given)
    return found


def _cells_of(submission, number, given):
    """The student's cells of a question; where its own cell is gone, all that they wrote in words."""
    inside, asked, found, words = False, False, [], []
    for _, kind, source, output in submission.cells:
        asks = re.match(r"(?:(?:#.*|<!--.*?-->)\s*)*\*\*Question (\d+)\*\*", source) if kind == "markdown" else None
        if asks:
            inside = asks[1] == str(number)
            asked = asked or inside
        if digest(source) in given or not source.strip():
            continue
        if inside:
            found.append((kind, source, output))
        if kind == "markdown":
            words.append((kind, source, output))
    return found if asked else words


def page(grades, about):
    """All written answers, question by question, each question's beside its rubric."""
    parts = [HEAD.format(title=html.escape(about["title"]))]
    for question in about["questions"]:
        if not question["manual"]:
            continue
        answers = "".join(_answer(given, question["name"]) for given in grades)
        rubric = f"<aside><h3>Rubric</h3><pre>{html.escape(question.get('rubric', ''))}</pre></aside>"
        title = f"{question['name']}: {question['points']:g} points"
        parts.append(f"<h2>{title}</h2><section><div>{answers}</div>{rubric}</section>")
    return "".join(parts) + "</html>\n"


def _answer(given, name):
    cells = given.written.get(name, [])
    said = "".join(
        f'<pre class="{"text" if kind == "markdown" else "code"}">{html.escape(source)}</pre>'
        + (f'<pre class="output">{html.escape(output[:4000])}</pre>' if output else "")
        for kind, source, output in cells
    )
    return f"<h3>{html.escape(given.student)}</h3>{said or '<p>No answer in the cells of this question.</p>'}"


def columns(about):
    """Of each question that a person grades, its column, and its most."""
    return {f"{q['name']} ({q['points']:g})": q["points"] for q in about["questions"] if q["manual"]}


def read(path, about):
    """What was entered so far: by student and file, a dictionary of columns. ValueError names what is no number."""
    if not path.exists():
        return {}
    content = path.read_bytes()
    # A spreadsheet may have saved it in another encoding, or with another separator.
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    found = {}
    for number, row in enumerate(csv.DictReader(io.StringIO(text, newline=""), delimiter=separator), 2):
        entered = {name: (row.get(name) or "").strip() for name in [*columns(about), "comment"]}
        for name, most in columns(about).items():
            entered[name] = _points(entered[name], name, most, number)
        found[row.get("student", ""), row.get("file", "")] = entered
    return found


def _points(text, name, most, number):
    try:
        if text and not 0 <= float(text.replace(",", ".")) <= most:
            raise ValueError
    except ValueError:
        raise ValueError(f"by-hand.csv, line {number}: {name} has {text!r}, not a number from 0 to {most:g}") from None
    return f"{float(text.replace(',', '.')):g}" if text else ""


def table(students, entered, about):
    """The table to fill: what was entered stays, also of those whose notebook is gone."""
    names = [*columns(about), "comment"]
    known = list(dict.fromkeys([*students, *entered]))
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["student", "file", *names])
    for key in known:
        rows.writerow([*key, *(entered.get(key, {}).get(name, "") for name in names)])
    return out.getvalue()
