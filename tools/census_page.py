"""The page of the census: what was audited, the verdicts by check, what is broken, and every type, to be filtered.

Usage: python tools/census_page.py
"""

import html
import json
import re
from collections import Counter

import census

PAGE = census.FOLDER.parents[1] / "book" / "evidence" / "census.md"
VERDICTS = ("holds", "broken", "not decided", "does not apply")
TEXT = """\
% Made by `make results`.

(census)=
# Evidence: a census of transformers

Do the models of [transformers](https://github.com/huggingface/transformers) handle their positions? Each type of model
that its version {transformers} has, and that can be made tiny with random weights, was audited with
{{func}}`posembed.audit <posembed.auditing.audit>`, on {date}, with torch {torch}: **{n_audited} of {n_types} types**.
The others take no ids of words alone, such as models of images and sound, or were not to be made small. **In {n_clean}
of the {n_audited} the audit finds nothing broken**; what it misses elsewhere: {{doc}}`bugs`. The weights are random,
so nothing here says how good a model is. Verdicts are of one seed; a large model can still lose what a tiny one keeps,
in half precision for one.

`python tools/census.py` makes the census again, one file a type in `results/census/`, each broken check with the script
that shows it. {{doc}}`../practice/audit-a-model` audits a model of yours.

## What is broken

Each was looked at by hand, as far as the right column says. *Theirs* is what we would report; nothing was reported.

{looked_at}

## Verdicts by check

An encoder with a decoder counts twice.

{by_check}

## Every type

{rows}
"""


def results():
    """The results, by type."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(census.FOLDER.glob("*.json"))]


def looked_at():
    """The table of results/census/README.md."""
    return re.search(r"^\| type .*\Z", (census.FOLDER / "README.md").read_text(encoding="utf-8"), re.M | re.S)[
        0
    ].strip()


def page():
    """The text of the page."""
    found = results()
    audited = [each for each in found if "checks" in each]
    verdicts = {}
    for check in (check for each in audited for check in each["checks"]):
        verdicts.setdefault(check["check"], Counter())[check["verdict"]] += 1
    by_check = [
        ["check", *VERDICTS],
        *([name, *(of[verdict] for verdict in VERDICTS)] for name, of in verdicts.items()),
    ]
    clean = [each for each in audited if all(check["verdict"] != "broken" for check in each["checks"])]
    return TEXT.format(
        n_types=len(found),
        n_audited=len(audited),
        n_clean=len(clean),
        looked_at=looked_at(),
        by_check=table(by_check),
        rows=rows(audited, [*verdicts]),
        date=max(each["date"] for each in audited),
        transformers=audited[0]["transformers"],
        torch=audited[0]["torch"].split("+")[0],
    )


def table(lines):
    """A table of markdown."""
    lines = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def rows(audited, names):
    """A table with a row a type, or its encoder and its decoder; book/assets/census.js filters it."""
    head = ["type", "holds", "broken", "not decided"]
    lines = ["```{raw} html", '<table class="census table" data-checks="' + "|".join(names) + '">']
    lines += ["<thead><tr>" + "".join(f"<th>{each}</th>" for each in head) + "</tr></thead><tbody>"]
    for each in audited:
        for part in dict.fromkeys(check["part"] for check in each["checks"]):
            of = {check["check"]: check for check in each["checks"] if check["part"] == part}
            by = {verdict: [name for name in of if of[name]["verdict"] == verdict] for verdict in VERDICTS}
            letters = "".join(
                of[name]["verdict"][0] if of[name]["verdict"] != "does not apply" else "-" for name in names
            )
            broken = "; ".join(f"{name}: {of[name]['kind'] or of[name]['reason']}" for name in by["broken"])
            cells = [f"{each['type']} {part}".strip(), len(by["holds"]), broken, ", ".join(by["not decided"])]
            cells = "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells)
            lines.append(f'<tr data-verdicts="{letters}">{cells}</tr>')
    return "\n".join([*lines, "</tbody></table>", '<script defer src="../_static/census.js"></script>', "```"])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
