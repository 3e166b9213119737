"""What is kept of a run, and the page of the book that shows it."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

from posembed.figures.looks import written

from . import ROOT, picture

RESULTS, PAGE = ROOT / "results" / "benchmarks.json", ROOT / "book" / "benchmarks.md"
PICTURE = ROOT / "book" / "assets" / "benchmarks.svg"
ON_A_GPU = ROOT / "results" / "benchmarks-gpu.json"
PACKAGES = ("posembed", "torch", "transformers", "x-transformers", "rotary-embedding-torch", "numpy")
OPENING = """\
% Made by `python -m benchmarks --page` from results/benchmarks.json.

# Benchmarks

{summary}

```{{image}} assets/benchmarks.svg
:alt: {alt}
```

*The time of each peer divided by posembed's, on a logarithmic axis: at 10 it took ten times as long.*

Time and memory beside other libraries, measured in one run on {date}: {where}, {versions}.
Candidates take turns within a round. A ratio is a candidate's time divided by posembed's in the same round, the median
over all rounds: 2.00 is twice as slow. distilbert's and roformer's tables, filled
entry by entry, are timed by one first call, and their ratio is to posembed's median. Memory is the peak of one call
beyond its inputs, with what the candidate keeps. The error is the largest difference from the same in float64, divided
by the largest number there. Times on a shared machine are noisy;
`make bench` repeats them on yours, and `results/benchmarks.json` has every round.
"""
TITLES = {
    "sinusoidal": "Sinusoidal tables",
    "rope": "Rotary positions",
    "bias": "Biases",
    "attention": "Attention",
}
NOTES = {
    "rope": "Queries and keys are turned. `half` and `interleaved` are the two ways to pair columns. The angles are "
    "computed in the call, as in a model's first layer; gptj gathers rows of a table that is at hand. "
    "`forward+backward` adds the gradients. Two texts of 2,048 tokens, eight heads of 64 "
    "columns.\n",
    "bias": "A bias of offsets is made in the form in which each library's attention takes it. posembed's takes one "
    "number for each offset and head, and never stores a matrix; the others take the matrix of all queries and keys, "
    "bloom with its causal mask added. Where posembed stands twice, the second row is its matrix. The number in a "
    "title is that of queries and of keys; there are eight heads.\n",
    "attention": "`layer` is a whole attention layer with its projections, `function` the attention of queries, keys "
    "and values alone; then come the scheme, causal or bidirectional, and whether gradients are computed. A bias is "
    "at hand where the row says so, with x-transformers' ALiBi, and with T5's in FlexAttention; elsewhere it is made "
    "in each call. Also at hand are LlamaAttention's sines and cosines, x-transformers' angles (not their sines), "
    "BloomAttention's mask and numbers, and FlexAttention's mask of blocks. One text of 2,048 tokens, eight heads of "
    "64 columns; Shaw's offsets end at 16.\n",
}
ALT = (
    "Dots on a logarithmic axis, a row for each case: the time of each peer divided by posembed's. Nearly all dots are "
    "at 1 or to the right of it, those of biases beyond 1,000."
)
# What cases call otherwise than the picture.
WORDS = {
    "half": "RoPE, paired halves",
    "interleaved": "RoPE, paired neighbours",
    "function": "attention",
    "bidirectional": "both ways",
}
# Closer times are level.
NOISE = 0.05
# A wide table: phones scroll it, and book/assets/theme.js lets a keyboard reach it.
COLUMNS = ("who", "time", "ratio", "memory", "error")


def write(path: Path, rows: Sequence[Any], settings: Mapping[str, Any], packages: Sequence[str] = PACKAGES) -> None:
    """Keep a run, whole or not at all: when, where, with what, how, and every row; six digits of each number."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.M) if info.exists() else None
    document = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "machine": {
            "cpu": found[1].strip() if found else platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "instructions": torch.backends.cpu.get_cpu_capability(),
            "platform": f"{platform.system()} {platform.machine()}",
            "threads": torch.get_num_threads(),
        },
        "versions": {"python": platform.python_version()} | {name: version(name) for name in packages},
        "settings": dict(settings),
        "rows": json.loads(
            json.dumps([asdict(row) for row in rows]), parse_float=lambda digits: float(f"{float(digits):.6g}")
        ),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".half")
    half.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    half.replace(path)


def render(document: Mapping[str, Any]) -> str:
    """The page, from the run as it is stored."""
    parts = [OPENING.format(**circumstances(document), summary=summary(document), alt=ALT)]
    for work, rows in groupby(document["rows"], key=lambda row: row["work"]):
        parts += [f"## {TITLES[work]}\n", *([NOTES[work]] if work in NOTES else [])]
        tables = [case(name, list(group)) for name, group in groupby(rows, key=lambda row: row["case"])]
        inside = re.sub(r"^### (.*)$", r"**\1**", "\n".join(tables), flags=re.MULTILINE)
        parts.append(f"::::{{admonition}} The tables\n:class: dropdown\n\n{inside}::::\n")
    return "\n".join(parts)


def peers(document: Mapping[str, Any]) -> dict[str, list[tuple[str, float]]]:
    """By case: the peers that were timed, and by how much longer than posembed each took."""
    found: dict[str, list[tuple[str, float]]] = {}
    for row in document["rows"]:
        timed = found.setdefault(row["case"].replace(" x ", " × "), [])
        if not row["candidate"].startswith("posembed") and row["ratio"] is not None:
            timed.append((row["candidate"], row["ratio"]))
    return found


def draw(document: Mapping[str, Any]) -> str:
    """The picture of the page, from the run as it is stored."""
    rows = [
        (in_words(name), [(picture.library_of(who), ratio) for who, ratio in timed])
        for name, timed in peers(document).items()
    ]
    return picture.ratios([("time divided by posembed's", rows)], "benchmarks")


def in_words(case: str) -> str:
    """A case as the picture names it: schemes as they are written, no words of code."""
    *parts, last = case.split(", ")
    gradients = {"forward": "", "forward+backward": " + gradients"}.get(last)
    parts += [] if gradients is not None else [f"{int(last):,} tokens" if last.isdigit() else last]
    return ", ".join(WORDS.get(part, written(part)) for part in parts) + (gradients or "")


def summary(document: Mapping[str, Any]) -> str:
    """Where a peer was faster by more than noise, and which goals were met."""
    cases = peers(document)
    ahead = [(ratio, who, name) for name, timed in cases.items() for who, ratio in timed if ratio < 1 / (1 + NOISE)]
    goals = [goal["met"] for row in document["rows"] for goal in row["goals"]]
    where = "; ".join(f"{who} in *{name}* ({ratio:.2f} of the time)" for ratio, who, name in sorted(ahead))
    slower = sum(min(ratio for _, ratio in timed) > 1 + NOISE for timed in cases.values())
    return (
        f"**In {slower} of {len(cases)} cases posembed was faster than every peer by more than {NOISE:.0%}.** "
        f"In {len(ahead)} a peer was faster by as much{': ' if ahead else ''}{where}. "
        f"Of {len(goals)} goals {sum(goals)} were met."
    )


def circumstances(document: Mapping[str, Any]) -> dict[str, str]:
    """When, where and with what a run was made, for a sentence."""
    machine = document["machine"]
    where = f"{machine['cpu']}, {machine['platform']}, {machine['threads']} thread"
    versions = ", ".join(f"{name} {number}" for name, number in document["versions"].items() if name != "posembed")
    return {"date": document["date"][:10], "where": where, "versions": versions}


def case(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """One table, with what it was to show."""
    head = f":::{{table}}\n:class: wide\n\n{cells(COLUMNS)}{cells(['---'] * len(COLUMNS))}"
    lines = (
        f"- {goal['goal']}: {goal['figure']}, **{'met' if goal['met'] else 'not met'}**.\n"
        for row in rows
        for goal in row["goals"]
    )
    return f"### {name.replace(' x ', ' × ')}\n\n{head}{''.join(map(line, rows))}:::\n\n{''.join(lines)}"


def line(row: Mapping[str, Any]) -> str:
    """One candidate, as a line of the table."""
    if row["failed"]:
        return cells([row["candidate"], row["failed"].replace("|", "/"), "", "", ""])
    ratio = "" if row["ratio"] is None else f"{row['ratio']:,.{0 if row['ratio'] >= 100 else 2}f}"
    digit, exponent = f"{row['error']:.0e}".split("e")
    error = f"{digit}×10<sup>{int(exponent)}</sup>".replace("-", "−") if row["error"] else "0"
    time = in_unit(row["median"], {"s": 1, "ms": 1e-3, "µs": 1e-6})
    memory = in_unit(row["memory"], {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10})
    return cells([row["candidate"], time, ratio, memory, error])


def cells(texts: Sequence[str]) -> str:
    """A line of a table."""
    return "|" + "|".join(f" {text} " if text else " " for text in texts) + "|\n"


def in_unit(number: float | None, units: Mapping[str, float]) -> str:
    """Three digits in the largest unit of which there is one; a number and its unit stay on one line."""
    if number is None:
        return ""
    unit = next((unit for unit, each in units.items() if number >= each), [*units][-1])
    return f"{float(f'{number / units[unit]:.3g}'):g}\u00a0{unit}"
