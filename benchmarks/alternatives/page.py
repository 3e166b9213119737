"""The page of the book that shows a run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from types import ModuleType
from typing import Any

from .. import ROOT, picture
from ..page import cells, circumstances, in_unit
from . import LIBRARIES, TASKS, sources

RESULTS, PAGE = (
    ROOT / "results" / "alternatives.json",
    ROOT / "book" / "alternatives.md",
)
PICTURE = ROOT / "book" / "assets" / "alternatives.svg"
PACKAGES = (
    "posembed",
    "torch",
    "transformers",
    "x-transformers",
    "rotary-embedding-torch",
    "scikit-learn",
    "numpy",
)
OPTIONAL = ("transformer-lens", "nnsight")
OPENING = """\
% Made by `python -m benchmarks.alternatives --page` from results/alternatives.json.

# Beside the alternatives

{verdict}

```{{image}} assets/alternatives.svg
:alt: Dots on two logarithmic axes, a row for each of ten tasks: lines and time of each library, divided by posembed's.
```

*What each library takes beside posembed, which stands at 1, on logarithmic axes: lines of code, and time.*

**When not to use this package.** To train models that are to be good, take
[transformers](https://huggingface.co/docs/transformers) or
[x-transformers](https://github.com/lucidrains/x-transformers): what trains here are small models for questions (task
10), and a scheme of ours goes into models of transformers too (task 7). To change anything anywhere in a model, take
[nnsight](https://nnsight.net) or [TransformerLens](https://transformerlensorg.github.io/TransformerLens): posembed
changes the positions of a model and the states between its layers, and reads these and its attention to one repeated
word (tasks 7 and 9). To rotate queries and keys, or to add one known bias, take what the library of your model has
(tasks 5 and 6). For a probe of your own, take scikit-learn (task 3).

Below are ten tasks as a user of each library would do them. *Lines* are logical lines of Python, imports included, as
ruff formats them at 80 columns, counted by a program. *Time* is that of one call after a warm-up, on one thread: the
median of at least three rounds in which the libraries take turns; a call of more than a second is timed once.
Where several libraries give the same thing, the run compares their answers and stops if they differ. Weights are those
of all-MiniLM-L6-v2, or random: GPT-2 is a small one that has learned nothing.

All was measured in one run on {date}: {where}, {versions}. {absent}When it began, the load of the machine was {load} on
{cores} cores; on a busy machine times are noisy, and differences below a factor of two mean nothing.
`python -m benchmarks.alternatives` repeats the run on yours.
"""


def render(document: Mapping[str, Any]) -> str:
    """The page, from the run as it is stored."""
    tasks = {
        name: list(rows)
        for name, rows in groupby(document["rows"], key=lambda row: row["task"])
    }
    missing = [name for name in OPTIONAL if name not in document["versions"]]
    about = {
        "absent": f"{' and '.join(missing)} were not installed. "
        if missing
        else "",
        "load": document["settings"]["load_before"][0],
        "cores": document["machine"]["cores"],
        "verdict": verdict(tasks),
    }
    parts = [OPENING.format(**circumstances(document), **about), summary(tasks)]
    for number, (name, rows) in enumerate(tasks.items(), 1):
        title, text = inspect.getdoc(TASKS[name]).split("\n\n", 1)
        parts.append(
            f"## {number}. {title.rstrip('.')}\n\n{text}\n\n{table(rows, TASKS[name])}\n{listings(TASKS[name])}"
        )
    return "\n".join(parts)


# By how much times must differ to be told apart on a busy machine.
NOISE = 2


def verdict(tasks: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """In which tasks something else was shorter, in which faster, and by how much at most."""
    fewer, faster, worst = [], [], (0.0, 0)
    for number, rows in enumerate(tasks.values(), 1):
        ours, *others = [row for row in rows if row["failed"] is None]
        ratio = ours["median"] / min(row["median"] for row in others)
        worst = max(worst, (ratio, number))
        if min(row["lines"] for row in others) < ours["lines"]:
            fewer.append(number)
        if ratio > NOISE:
            faster.append(number)
    return (
        "In this run a library, or code without one, took fewer lines than posembed "
        f"in {listed(fewer)} of the ten, and less than half the time in "
        f"{listed(faster)}; most of all in task {worst[1]}, where posembed took "
        f"about {worst[0]:.0f} times as long."
    )


def listed(numbers: Sequence[int]) -> str:
    """Tasks by their numbers, in words."""
    *first, last = numbers or ["none"]
    return (
        f"tasks {', '.join(map(str, first))} and {last}"
        if first
        else f"task {last}"
    )


def summary(tasks: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Lines and time of each task in each library."""
    heads = ["task", *(package for package, _ in LIBRARIES.values())]
    lines = [cells(heads), cells(["---"] * len(heads))]
    for number, (name, rows) in enumerate(tasks.items(), 1):
        by_library = {row["library"]: row for row in rows}
        # Behind a colon stands what its own section says too.
        title = re.split("[.:]", inspect.getdoc(TASKS[name]))[0]
        lines.append(
            cells(
                [
                    f"{number}. {title}",
                    *(_short(by_library.get(library)) for library in LIBRARIES),
                ]
            )
        )
    said = "Lines, and the time of one call; a dash where nothing was run, and the tables below say why."
    return _folded(
        "All in one table",
        f"{said}\n\n:::{{table}}\n:class: wide\n\n{''.join(lines)}:::\n",
    )


def _folded(title: str, text: str) -> str:
    return f"::::{{admonition}} {title}\n:class: dropdown\n\n{text}::::\n"


def draw(document: Mapping[str, Any]) -> str:
    """The picture of the page, from the run as it is stored."""
    panels = []
    for title, key in (("lines of code", "lines"), ("time", "median")):
        rows = []
        for number, (name, group) in enumerate(
            groupby(document["rows"], key=lambda row: row["task"]), 1
        ):
            ours, *others = [row for row in group if row["failed"] is None]
            short = re.split("[.:,]", inspect.getdoc(TASKS[name]))[0]
            peers = [
                (
                    picture.library_of(LIBRARIES[each["library"]][0]),
                    each[key] / ours[key],
                )
                for each in others
            ]
            rows.append((f"{number}. {short}", peers))
        panels.append((title, rows))
    return picture.ratios(panels, "alternatives")


def _short(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "–"
    return f"{row['lines']}, {_time(row) or 'not run'}"


def _time(row: Mapping[str, Any]) -> str:
    return in_unit(row["median"], {"s": 1, "ms": 1e-3, "µs": 1e-6})


def table(rows: Sequence[Mapping[str, Any]], task: ModuleType) -> str:
    """What each library gives for a task, and why others give nothing."""
    lines = [
        cells(["by", "lines", "time", "what one gets", "in this run"]),
        cells(["---"] * 5),
    ]
    for row in rows:
        gets = inspect.getdoc(getattr(task, row["library"]))
        came = (row["failed"] or row["shown"]).replace("|", "/")
        lines.append(
            cells(
                [
                    LIBRARIES[row["library"]][0],
                    str(row["lines"]),
                    _time(row),
                    gets,
                    came,
                ]
            )
        )
    for library, (package, nothing) in LIBRARIES.items():
        if not hasattr(task, library):
            lines.append(
                cells([package, "–", "", task.ABSENT.get(library, nothing), ""])
            )
    return _folded(
        "The table", f":::{{table}}\n:class: wide\n\n{''.join(lines)}:::\n"
    )


def listings(task: ModuleType) -> str:
    """The code that was run, folded."""
    blocks = [
        f"{package}:\n\n```python\n{sources.code(getattr(task, library))}```\n"
        for library, (package, _) in LIBRARIES.items()
        if hasattr(task, library)
    ]
    return (
        "::::{admonition} The code\n:class: dropdown of-code\n\n"
        + "\n".join(blocks)
        + "::::\n"
    )
