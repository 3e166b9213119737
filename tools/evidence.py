"""The pages that show all of a study: what came of it, every planned contrast, its arms with their rates, and its plan.

Usage: python tools/evidence.py

What is said of a study stands in `tools/evidence_words.py`.
"""

import re
import sys
from pathlib import Path

import torch
from evidence_words import STUDIES

from posembed import properties_of_matrix
from posembed.figures import forest_plot
from posembed.figures.drawing import svg_of
from posembed.figures.looks import WRITTEN, signed
from posembed.figures.scores import LEVEL
from posembed.figures.style import styled
from posembed.stored import load_plan, load_study

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from studies import causes
from studies.forms import FORMS, bias_of

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "book" / "evidence"
# In inches: the width of a picture, a row, what stands below the rows, and a letter of their names.
WIDTH, ROW, BELOW, LETTER = 5.6, 0.3, 0.8, 0.09
INDEX = """\
% Made by `make results`.

# Evidence

A chapter shows what a reader needs to follow it. What it rests on stands here whole, a page a study: what came of it,
every contrast that was planned, whichever way it came out, every arm with the learning rates that were tried, and the
plan as it was written before the runs.

{studies}

{{func}}`~posembed.stored.load_study` reads the same numbers, `make study NAME=...` runs a study again (the code is in
`studies/`), and a test computes each contrast anew from the stored runs. An interval is Student's, over seeds, for
differences between runs with one seed unless the plan says otherwise. *Holm* is p after Holm's correction for all
contrasts of its family: those below 0.05 are a set that in at least 95 of 100 studies holds none whose true mean is
zero.

{{doc}}`A census of transformers <census>` is no study of training: it audits how the library's models handle positions.
{{doc}}`Sixty bugs <bugs>` asks what the audit finds of what people report.
"""
PAGE = """\
% Made by `make results`.

# Evidence: {title}

:::{{admonition}} What came of it
:class: tip
{said}
:::

This is the study `{name}` of {chapters}: {n_reported} runs in {n_arms} arms.

Drawn are {drawn} planned contrasts, all of a kind in one picture, with 95 % intervals. A full mark is a significant
difference, an open one may be luck: {{doc}}`../how-we-measure`.

{charts}
{failed}{forms}## What was planned to be compared

{contrasts}

## Arms

{n_reported} reported runs, and {n_trials} that chose learning rates by their validation loss. A rate in bold is the
chosen one; where one stands alone it was given. Losses and shares of right answers are those of the test, the mean and
the lowest to the highest run.

{arms}
## The plan

{plan}

## Load it, run it again

```python
from posembed import load_study

study = load_study("{name}")
study.runs, study.contrasts
```

`make study NAME={name}` runs what is not stored yet; in an empty `results/{name}` that is all of it.
"""


def made():
    """Every page and picture by its path."""
    studies = [load_study(name) for name in STUDIES]
    files = {PAGES / "index.md": INDEX.format(studies="\n".join(map(_entry, studies)))}
    for study in studies:
        files[PAGES / f"{study.name}.md"] = _page(study)
        files |= {PAGES / picture: _drawing(study, chart, picture) for picture, chart in _pictures(study.name)}
    return files


def _entry(study):
    """A line of the index: the first sentence of what came of it."""
    name, page = study.name, STUDIES[study.name]
    title = page.title[0].upper() + page.title[1:]
    first = re.split(r"(?<=\.) ", filled(page.said, study.contrasts))[0]
    return f"- {{doc}}`{title} <{name}>`{'' if title.endswith('?') else '.'} {first} (`{name}`, {len(study.runs)} runs)"


def _page(study):
    name, page = study.name, STUDIES[study.name]
    n, shown = len(study.contrasts), sum(len(drawn(study, chart)) for chart in page.charts)
    return PAGE.format(
        name=name,
        title=page.title,
        said=filled(page.said, study.contrasts),
        chapters=", ".join(f"{{doc}}`../{each}`" for each in page.chapters),
        n_arms=len(study.by_arm),
        drawn=f"all {n}" if shown == n else f"{shown} of the {n}",
        charts="\n".join(_chart(study, chart, picture) for picture, chart in _pictures(name)),
        failed=f"## {page.heading}\n\n{_as_markdown(page.failed)}\n\n" if page.failed else "",
        forms=_forms() if name == "causes" else "",
        contrasts="\n".join(_family(study, family) for family in study.planned),
        n_reported=len(study.runs),
        n_trials=len(study.trials),
        arms=_arms(study, load_plan(name)),
        plan=_as_markdown(study.about),
    )


def filled(said, contrasts):
    """What came of a study, with its numbers; stops where the words are not true of a contrast they name."""
    one_line = " ".join(said.split())
    return re.sub(r"\{(\+|-|above |below |open )([^{}]+)\}", lambda place: _held(contrasts, *place.groups()), one_line)


def _held(contrasts, kind, names):
    found = contrasts[[match is not None for match in _matches(contrasts, names)]]
    significant, side = found["holm"] < LEVEL, -1 if kind in ("-", "below ") else 1
    if found.empty or not (~significant if kind == "open " else significant & (side * found["mean"] > 0)).all():
        raise ValueError(f"not true of the contrasts: {{{kind}{names}}}")
    ends = found["mean"].abs().agg(["min", "max"])
    return " to ".join(dict.fromkeys(map(_short, ends))) if kind in "+-" else ""


def _short(number):
    """In two digits."""
    return signed(f"{number:#.2g}".rstrip("."))


def _matches(contrasts, names):
    """Of each contrast how an expression matches its name, or its family and name."""
    for name, family in zip(contrasts.index, contrasts["family"], strict=True):
        yield re.fullmatch(names, name) or re.fullmatch(names, f"{family}/{name}")


def _written(study, match):
    """What a row is called: what stands in the groups, with the names of schemes as they are written."""
    row = "".join(filter(None, match.groups()))
    row = STUDIES[study.name].rows.get(row, row)
    return re.sub(r"[\w-]+", lambda word: WRITTEN.get(word[0], word[0]).replace("_", " "), row)


def _pictures(name):
    return [(f"{name}-{number}.svg", chart) for number, chart in enumerate(STUDIES[name].charts, 1)]


def drawn(study, chart):
    """The contrasts of a picture, a row each, under their names there."""
    matches = list(_matches(study.contrasts, chart.rows))
    found = study.contrasts[[match is not None for match in matches]]
    return found.set_axis([_written(study, match) for match in matches if match])


def _chart(study, chart, picture):
    return f"**{chart.caption}**\n\n```{{image}} {picture}\n:alt: {_alt(drawn(study, chart))}\n```\n"


def _alt(found):
    """The rows in words: those whose mark is full, then those whose is open."""
    full, parts = found["holm"] < LEVEL, []
    for mark, rows in (("Full", found[full]), ("Open", found[~full])):
        means = "; ".join(f"{row} {_short(mean)}" for row, mean in rows["mean"].items())
        parts += [f"{mark}: {means}."] if means else []
    return " ".join(parts)


@styled
def _drawing(study, chart, picture):
    """The picture, with the scale of all pictures of its unit, and names that have as much room as in the others."""
    found = drawn(study, chart)
    charts = STUDIES[study.name].charts
    alike = [drawn(study, each) for each in charts if each.unit == chart.unit]
    low, high = min(0, *(each["low"].min() for each in alike)), max(0, *(each["high"].max() for each in alike))
    letters = max(len(row) for each in charts for row in drawn(study, each).index)
    height = ROW * len(found) + BELOW
    figure = forest_plot(found, alt="", xlabel=chart.unit, size=(WIDTH, height))
    figure.set_layout_engine(None)
    figure.subplots_adjust(left=(LETTER * letters + 0.1) / WIDTH, right=0.98, bottom=(BELOW - 0.05) / height, top=0.99)
    space = 0.04 * (high - low)
    figure.axes[0].set_xlim(low - space, high + space)
    return svg_of(figure, picture) + "\n"


def _as_markdown(about):
    """The words of a plan; its lettered lists are lists."""
    return re.sub(r"^([a-z]{1,2})\. ", r"- **\1.** ", about, flags=re.MULTILINE)


def _forms():
    """What the three properties measure of each form of *causes*, and where it turns."""
    rows = []
    for form in (None, *FORMS):
        bias = torch.from_numpy(bias_of(form, causes.DEGREES if form else 0.0, 0.0, causes.LENGTH))
        whole, near = properties_of_matrix(bias), properties_of_matrix(bias, max_offset=8)
        measured = (whole.monotonicity, near.monotonicity, whole.translation_invariance, whole.symmetry)
        rises = (bias[-1].flip(0).diff() > 1e-9).nonzero()
        rows.append(
            [form or "undosed", *(f"{each:.2f}" for each in measured), int(rises[0]) if len(rises) else "never"]
        )
    columns = [
        "form",
        "monotonicity",
        "up to 8",
        "translation invariance",
        "symmetry",
        "rises first from a distance of",
    ]
    return f"## What the forms measure\n\n{_table(columns, rows)}\n"


def _family(study, family):
    found = study.contrasts[study.contrasts["family"] == family]
    rows = []
    for name, row in found.iterrows():
        digits = 3 if max(abs(row["low"]), abs(row["high"])) < 5 else 1
        mean, low, high = (signed(f"{row[each]:.{digits}f}") for each in ("mean", "low", "high"))
        rows.append([name, mean, f"{low} to {high}", row["n"], _p(row["p"]), _p(row["holm"])])
    head = "" if len(study.planned) == 1 else f"### {family.capitalize()}\n\n"
    return head + _table(["contrast", "mean", "95 % interval", "n", "p", "Holm"], rows)


def _p(p):
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _arms(study, plan):
    done = {run.config.key for run in study.trials}
    measured = [name for name in ("loss", "accuracy") if name in study.runs]
    rows = []
    for arm in plan.arms:
        runs = study.by_arm[arm.name]
        chosen = runs[0].config.learning_rate
        tried = sorted({trial.learning_rate for trial in arm.trials if trial.key in done} | {chosen})
        rates = ", ".join(f"**{rate:g}**" if rate == chosen and len(tried) > 1 else f"{rate:g}" for rate in tried)
        rows.append([arm.name, len(runs), rates, *(_spread(runs, name) for name in measured)])
    return _table(["arm", "runs", "learning rates", *measured], rows)


def _spread(runs, name):
    """The mean of a metric, with the lowest and the highest."""
    values = [run.metrics[name] for run in runs if name in run.metrics]
    if not values:
        return ""
    mean = f"{sum(values) / len(values):.3f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.3f} to {max(values):.3f})"


def _table(columns, rows):
    lines = [columns, ["---"] * len(columns), *rows]
    body = "\n".join("| " + " | ".join(str(each).replace("|", "/") for each in line) + " |" for line in lines)
    return f":::{{table}}\n:class: wide\n\n{body}\n:::\n"


def main():
    """Write pages and pictures, and take away those of studies that are no more."""
    files = made()
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    for path in {*PAGES.iterdir()} - {*files, PAGES / "census.md", PAGES / "bugs.md"}:
        path.unlink()
    print(f"evidence: {len(STUDIES)} studies in {PAGES.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
