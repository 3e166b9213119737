"""The page of the sixty bugs: what finds each, what nothing finds, and the fewest checks that find nearly all.

Usage: python tools/bugs_page.py
"""

import functools
import itertools
import json
import operator
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from studies.bugs import SINCE

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "results" / "bugs.json"
PAGE = ROOT / "book" / "evidence" / "bugs.md"
FORMULA = "the formula"
# Of what is found by anything.
NEARLY_ALL = 0.95
TEXT = """\
% Made by `make results`.

(sixty-bugs)=
# Evidence: sixty bugs

Would {{func}}`posembed.audit <posembed.auditing.audit>` have found the bugs that people report? Here are {n} of them,
each put into one small model that is right without it; each changes the logits. **The audit finds {n_audit} of the
{n}.** Of the {n_first} that were written with its checks in view it finds {first_audit}; **of the {n_later} that were
written after the checks were frozen, {later_audit},** and {n_since} more since a check was widened to find it.

The difference is one of kind. Most checks of the audit compare two ways to give one text, so they find what does not
agree with itself. A base of 10,000 where the config says 500,000 agrees with itself everywhere, and such wrong numbers
fill the later list. For them one needs the formula or the original model: {n_formula} more bugs are found by comparing
a scheme with its formula, {n_identity} more by an identity that the scheme alone must keep. So after the audit compare
with the original once, on one long text.

Nothing here finds these {n_none}. Where positions can be given the audit leaves it to the caller to give them with
padding in front; and sharpness is in no scheme's formula.

{none}

## The fewest that find nearly all

Of the {n_found} bugs that anything finds, {n_set} checks find {n_covered}: {chosen}.

## All of them

`python -m studies.bugs` asks them again; made on {date}, with torch {torch}. A report is cited for what went wrong
there; the code here is ours. In *when*, 1 is written with the checks in view, 2 after they were frozen, 3 the same and
found only since a check was widened for it. A report of an unlike framework stands for the same fault in ours.

:::{{table}}
:class: wide

{rows}
:::
"""


def finders(bug):
    """All that finds a bug."""
    return {*bug["broken"], *bug["failing"]}


def fewest(bugs):
    """The smallest set of checks and properties that finds nearly all of what is found; of two, the first by name."""
    found = [finders(bug) for bug in bugs if finders(bug)]
    # Of each name the bugs that it finds, a bit each.
    finds = {
        name: sum(1 << at for at, each in enumerate(found) if name in each) for name in sorted(set().union(*found))
    }
    for size in range(1, len(finds) + 1):
        best = max(itertools.combinations(finds, size), key=lambda chosen: _union(finds, chosen).bit_count())
        if _union(finds, best).bit_count() >= NEARLY_ALL * len(found):
            return best
    raise AssertionError("all names together find all")


def _union(finds, chosen):
    return functools.reduce(operator.or_, (finds[name] for name in chosen))


def covered(found, chosen):
    """How many are found by one of those that were chosen."""
    return sum(bool(each & {*chosen}) for each in found)


def page():
    """The text of the page."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    bugs = stored["bugs"]
    parts = {part: [bug for bug in bugs if bug["part"] == part] for part in ("first", "later")}
    by_audit = {part: sum(bool(bug["broken"]) for bug in its) for part, its in parts.items()}
    since = sum(bool(bug["broken"]) for bug in bugs if bug["report"] in SINCE)
    missed = [bug for bug in bugs if not bug["broken"]]
    identity = [bug for bug in missed if {*bug["failing"]} - {FORMULA}]
    formula = [bug for bug in missed if bug["failing"] == [FORMULA]]
    nothing = [bug for bug in missed if not bug["failing"]]
    chosen, found = fewest(bugs), [finders(bug) for bug in bugs if finders(bug)]
    return TEXT.format(
        n=len(bugs),
        n_audit=sum(by_audit.values()),
        n_first=len(parts["first"]),
        n_later=len(parts["later"]),
        first_audit=by_audit["first"],
        later_audit=by_audit["later"] - since,
        n_since=since,
        n_formula=len(formula),
        n_identity=len(identity),
        n_none=len(nothing),
        none="\n".join(f"- {bug['wrong']} ({bug['report']})" for bug in nothing),
        n_found=len(found),
        n_set=len(chosen),
        n_covered=covered(found, chosen),
        chosen=", ".join(f"*{name}*" for name in chosen),
        date=stored["date"],
        torch=stored["torch"].split("+")[0],
        rows=rows(bugs),
    )


def rows(bugs):
    """A row a bug."""
    lines = ["| report | what is wrong | scheme | when | the audit | the scheme's own properties |"]
    lines += ["| --- | --- | --- | --- | --- | --- |"]
    for bug in bugs:
        repository, number = bug["report"].split("#")
        link = f"[{bug['report']}](https://github.com/{repository}/issues/{number})"
        cells = [link, bug["wrong"], bug["scheme"], 3 if bug["report"] in SINCE else 1 if bug["part"] == "first" else 2]
        lines.append(f"| {' | '.join(map(str, cells))} | {', '.join(bug['broken'])} | {', '.join(bug['failing'])} |")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
