"""The pages that show all of a study: its plan, its arms with the rates that were tried, and every planned contrast.

Usage: python tools/evidence.py
"""

import re
import sys
from pathlib import Path

import torch

from posembed import properties_of_matrix
from posembed.stored import load_plan, load_study, study_names

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from studies import causes
from studies.forms import FORMS, bias_of

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "book" / "evidence"
# By study: the chapters that rest on it.
CHAPTERS = {
    "encodings": ("encodings/sinusoidal-and-learned", "encodings/relative-positions"),
    "one-start": ("encodings/sinusoidal-and-learned", "encodings/relative-positions"),
    "own-rates": ("encodings/sinusoidal-and-learned", "encodings/relative-positions", "nopos/no-positions"),
    "past-length": ("longer/past-the-trained-length",),
    "starts": ("nopos/no-positions",),
    "nopos": (
        *("nopos/no-positions", "nopos/how-it-knows", "nopos/masked-models", "nopos/after-nopos"),
        "longer/past-the-trained-length",
    ),
    "nopos-large": ("nopos/no-positions",),
    "ladder": ("nopos/no-positions",),
    "trained-tables": ("probing/trained-tables",),
    "tasks": ("probing/which-positions",),
    "causes": ("probing/which-positions",),
    "beginning": ("nopos/how-it-knows",),
    "length": ("longer/longer-than-trained",),
    "far-questions": ("longer/longer-than-trained",),
    "depth": ("probing/once-enough", "probing/once-enough-images"),
}
# What a study could not answer after all, and why, or what was planned and is no contrast; stands behind its plan.
FAILED = {
    "length": """\
Of what was expected, p-RoPE with a quarter of its pairs was to lose a tenth of what RoPE does, and loses as much;
CoPE was to lose as little in a stack as those with positions, and loses there all that it loses; sharper logits were
to take a tenth of what a model without positions loses, and take nothing at four times the length; and a copy within
64 was to give each scheme 0.1 nats, and gives none 0.02. The law was to have an R2 above 0.5 in the asked arms and
above that of its draft, and "name" is better than both: by its own rule it did not hold. A gap at 256 was to cost
learned, both sinusoidal ones, T5, RoPE and xPos more than half of what the longer text costs; it cost RoPE and xPos
nothing and T5 a third. The whole was to be its two parts within 0.2 where less than 2 nats are lost; T5 and xPos lose
more than a nat beyond them. Sharper logits were to help no scheme with positions by more than 0.1, and helped CoPE by
0.4. The forgetting Transformer did what was expected of it.""",
    "far-questions": """\
Of what was expected, Shaw, ALiBi and forgetting gained at least half, and RoPE less than 0.2. FIRE was to lie between
and gains as much as Shaw; learned and T5 were to gain less than 0.2 and gain 0.4 and 0.9. A gap was to cost learned, T5
and RoPE more than 0.25: it costs T5 nothing, and of the others no difference is significant; it costs ALiBi 0.03 of
induction, where nothing was expected. Nor are all others as good as RoPE at 64: none never learns induction, and ALiBi,
the table and forgetting answer fewer of its questions. At 256 Shaw and forgetting still count right in three of five
texts, where nobody was to keep counting.

Those more than 120 back are not the whole: of all needles at 256 T5 finds 0.61 where it found all at 64, so of those
that stand nearer about a quarter. RoPE finds half of the nearer ones.""",
    "depth": """\
On images twice as long nothing was halved for RoPE by the running number, whose positions have one axis: what is called
interpolated of it is the same as it is, and the difference of the two RoPEs, interpolated, compares halved positions
with others that are not.""",
    "beginning": """\
Of what was expected, the mark lowered the loss by more, 0.044 and not less than 0.02, and texts of one character were
read to within ten positions, not four. Without its pair of heads a model with a table kept two thirds of what order
costs, more than the half that was expected, and as much as one without positions. With the mark the second layer looks
at the first token a little less than evenly, where more was expected.""",
    "causes": """\
No property has what the plan asks of a finding about one, two of its forms with a corrected p below 0.05 and one sign.
Three costs stand by themselves: the wave's on distance, and the near peak's on lookup and on majority. What was
expected did not come: a near peak cost distance nothing, both forms without symmetry gained order and lookup nothing
that is significant, and without a form order stands at 0.99, far above the mirror ceiling of 0.5. A near peak on one
side cost lookup 0.41, where less than half of what the one side gains was expected.""",
    "ladder": """\
The gap to a table did not close and its slope is negative, as was expected. The gap to RoPE was to stay above 0.1, and
falls below it on the last rung, where RoPE is hardly ahead of the table. The rule that carries rates up would have
foretold rates at width 48 from those at 32 of 0.013 for none and 0.027 for the two others; trials chose 0.01 for all
three. So the wider rungs have what follows from width 48, and for the two others not what would follow from 32.""",
    "one-start": """\
RoPE was expected to be best from both starts; T5 has the lowest loss from start A, and Shaw from start B.

Its rates were chosen in a third of the steps. With those that whole runs choose ({doc}`own-rates`) the table, the sines
and T5 lose less from start B, by 0.035 to 0.050, and the five others chose the same rate.""",
    "own-rates": """\
All rates are 0.01, as was expected. From start A the table and the sines are equal in the first five seeds, as was
expected from both starts, and in the eight later ones the sines are ahead by 0.034; from B the table is, by 0.020.
Trained frequencies were to lose no less than fixed ones, and lose 0.038 less from A and 0.010 more from B. ALiBi was
to be ahead of each absolute scheme by less than 0.02: it is 0.001 behind the table and 0.019 and 0.029 ahead of the
others. Both differences of differences were to lie within 0.02, and are -0.021 and 0.048, neither of them significant.
Past the trained length all came as was expected.""",
    "past-length": """\
Of what was expected, blocks took more than the rise from xPos and RoPE; RoPE with the last 63 was to be no worse than
ALiBi, and is ahead of it by 0.063, and of all others as they are; xPos in blocks is equal to it. None gains 0.89 nats
by the end alone, where a nat was expected. From 32 FIRE rises by 0.046 more than from 512: that its start makes no
difference, as was expected, is not shown and not refuted.

The models have the seeds of `length`, whose runs, whole before these, gave RoPE with the last 64 a lead of 0.065 on
ALiBi with all: the sign of that contrast was known. Not planned: in blocks FIRE loses as much as with all that stands
before, and none loses 0.65 more. Nobody gains from what stands more than 32 back, so a cut costs nothing here.""",
    "starts": """\
f. Over the four starts the order of the untrained errors is that of the losses of none, with a tie: B, D, C and A have
lowest errors of 8.7, 9.4, 9.6 and 18.6 in the mean, and losses of 1.432, 1.432, 1.529 and 1.786.""",
    "tasks": """\
The second part, of nine schemes, says nothing of the published ranking, in either direction: its preconditions failed.

- The models were not equally far when they began the tasks. The three absolute arms ended their pre-training at losses
  of 2.8 to 2.9, the six others at 1.7 to 2.1.
- SST-2 was hardly learned: all nine have between 0.58 and 0.62 of the answers right, where a constant guess has 0.50.
- Real spans were not learned: on XQuAD with moved questions the two arms have an F1 of 0.41 and 0.45, and to say that
  there is no answer has 0.47.

The planned correlations came out with both signs. Translation invariance of the attention goes with the score on SST-2
(+0.77) and against it on moved words (−0.87): it tells the schemes with relative vectors from those without, and
whatever else these differ in goes along. Symmetry on TREC (−0.88) is the only one of twelve left after a correction.

Of the first part: no dose violates monotonicity nearer than a distance of 16, and under the largest rise *order* stands
at the mirror ceiling, so a cost there may be of directions.""",
}
CAME = "What came of it"
HEADINGS = dict.fromkeys(
    ("beginning", "causes", "depth", "far-questions", "ladder", "length", "one-start", "own-rates", "past-length"), CAME
)
HEADINGS |= {"starts": "What is no contrast", "tasks": "What failed"}
INDEX = """\
% Made by `make results`.

# Evidence

A chapter shows what a reader needs to follow it. What it rests on stands here whole, a page a study: the plan as it was
written before the runs, every arm with the learning rates that were tried, and every contrast that was planned,
whichever way it came out. {{func}}`~posembed.stored.load_study` reads the same numbers, `make study NAME=...` runs a
study again (the code is in `studies/`), and a test computes each contrast anew from the stored runs.

{table}
An interval is Student's, over seeds, for differences between runs with one seed unless the plan says otherwise. *Holm*
is p after Holm's correction for all contrasts of its family: those below 0.05 are a set that in at least 95 of 100
studies holds none whose true mean is zero.

{{doc}}`A census of transformers <census>` is no study of training: it audits how the library's models handle positions.
{{doc}}`Sixty bugs <bugs>` asks what the audit finds of what people report.
"""
PAGE = """\
% Made by `make results`.

# Evidence: {name}

{chapters}

```python
from posembed import load_study

study = load_study("{name}")
study.runs, study.contrasts
```

`make study NAME={name}` runs what is not stored yet; in an empty `results/{name}` that is all of it.

## The plan

{plan}

{failed}{forms}## What was planned to be compared

{contrasts}

## Arms

{n_reported} reported runs, and {n_trials} that chose learning rates by their validation loss. A rate in bold is the
chosen one; where one stands alone it was given. Losses and shares of right answers are those of the test, the mean and
the lowest to the highest run.

{arms}"""


def made():
    """Every page by its path."""
    pages = {PAGES / "index.md": INDEX.format(table=_index())}
    return pages | {PAGES / f"{name}.md": _page(name) for name in study_names()}


def _index():
    rows = []
    for name in study_names():
        study = load_study(name)
        question = study.about.splitlines()[0]
        rows.append([f"{{doc}}`{name} <{name}>`", question, len(study.runs), len(study.trials), len(study.contrasts)])
    return _table(["study", "question", "runs", "trials", "contrasts"], rows)


def _page(name):
    study = load_study(name)
    chapters = ", ".join(f"{{doc}}`../{each}`" for each in CHAPTERS[name])
    return PAGE.format(
        name=name,
        chapters=f"Of {chapters}.",
        plan=_as_markdown(study.about),
        failed=f"## {HEADINGS[name]}\n\n{_as_markdown(FAILED[name])}\n\n" if name in FAILED else "",
        forms=_forms() if name == "causes" else "",
        contrasts="\n".join(_family(study, family) for family in study.planned),
        n_reported=len(study.runs),
        n_trials=len(study.trials),
        arms=_arms(study, load_plan(name)),
    )


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
        mean, low, high = (f"{row[each]:.{digits}f}".replace("-", "−") for each in ("mean", "low", "high"))
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
    """Write the pages, and take away those of studies that are no more."""
    PAGES.mkdir(exist_ok=True)
    pages = made()
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    for path in {*PAGES.glob("*.md")} - {*pages, PAGES / "census.md", PAGES / "bugs.md"}:
        path.unlink()
    print(f"evidence: {len(pages)} pages in {PAGES.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
