"""Write the book's page of benchmarks from results/benchmarks.json, which `make bench` leaves."""

import json
import shutil
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "benchmarks.json"
PAGE = ROOT / "book" / "benchmarks.md"
FIGURE = ROOT / "book" / "assets" / "benchmarks-growth.svg"
OPENING = """\
% Made by tools/benchmarks_page.py from results/benchmarks.json.

# Benchmarks

Time and memory beside other libraries, measured in one run on {run}. A part that was measured by itself says so.
Candidates take turns within a round. A ratio is a candidate's time divided by posembed's in the same round, the median
over all rounds: 2.00 is twice as slow. Memory is the peak of one call beyond its inputs. The error is the largest
difference from the same in float64, divided by the largest number there. Times on a shared machine are noisy;
`make bench` repeats them on yours, and `results/benchmarks.json` has every round.
"""
TITLES = {
    "sinusoidal": "Sinusoidal tables",
    "rope": "Rotary positions",
    "bias": "Biases",
    "attention": "Attention",
    "growth": "Growth with the length",
    "properties": "Three properties of a table",
    "probes": "Probes of a table",
    "training": "Training steps of a language model",
}
CLOCKS = {"wall": "", "processor": ", in time of the processor, as other programs ran too"}
NOTES = {
    "rope": "Queries and keys are turned. `half` and `interleaved` are the two ways to pair columns. With new "
    "positions the angles are computed in the call, as in a model's first layer; with angles at hand an earlier layer "
    "has computed them. `forward+backward` adds the gradients.\n",
    "bias": "A bias is one number for each offset and head, laid out as the matrix that is added to the logits; the "
    "number in a title is that of queries and of keys.\n",
    "attention": "`layer` is a whole attention layer with its projections, `function` the attention of queries, keys "
    "and values alone; then come the scheme, causal or bidirectional, and whether gradients are computed. A bias is "
    "made in each call, or at hand from an earlier one.\n",
    "probes": "The error is here the mean absolute error on rows left out, in positions. Each gradient descent takes "
    "the step size with the smallest training loss; the search for it is not timed. GPT-2's table is measured where "
    "`POSEMBED_CHECKPOINTS` has it.\n",
    "training": "A call is a few whole steps: pieces drawn from a random text, forward and backward pass, the gradient "
    "cut to a largest norm, AdamW. All candidates begin with the same weights, read the same pieces and have learned "
    "positions, no dropout and logits by the matrix of word vectors; the error is that of the losses of the first call "
    "and of the number of parameters. Speed is in tokens that are guessed a second.\n",
}
# A wide table: phones scroll it, and book/_ext/page_repairs.py lets a keyboard reach it.
COLUMNS = ("who", "time", "ratio", "memory", "error")
SPEED = "tokens a second"


def render(document):
    """The page, from the run as it is stored."""
    parts = [OPENING.format(run=told(document))]
    for work, rows in groupby(document["rows"], key=lambda row: row["work"]):
        parts.append(f"## {TITLES[work]}\n")
        parts += [NOTES[work]] if work in NOTES else []
        if work in document.get("refreshed", {}):
            parts.append(f"Measured by itself on {told(document['refreshed'][work])}.\n")
        if work == "growth":
            parts += [figure(document["figures"]), goals(rows)]
        else:
            parts += [case(name, list(group)) for name, group in groupby(rows, key=lambda row: row["case"])]
    return "\n".join(parts)


def told(run):
    """When, where, by which clock and with what it was measured."""
    machine, clock = run["machine"], run["settings"].get("clock", "wall")
    where = ", ".join(filter(None, [machine["cpu"], machine.get("gpu"), machine["platform"]]))
    threads = f"{machine['threads']} thread" + ("s" if machine["threads"] > 1 else "")
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items() if name != "posembed")
    return f"{run['date'][:10]}: {where}, {threads}, {versions}{CLOCKS[clock]}"


def case(name, rows):
    """One table, with what it was to show."""
    columns = (*COLUMNS, SPEED) if rows[0].get("tokens") else COLUMNS
    head = f":::{{table}}\n:class: wide\n\n{table_row(columns)}{table_row(['---'] * len(columns))}"
    return f"### {name}\n\n{head}{''.join(row(each, len(columns)) for each in rows)}:::\n\n{goals(rows)}"


def row(each, n_columns):
    if each["failed"]:
        return table_row([each["candidate"], each["failed"].replace("|", "/"), *[""] * (n_columns - 2)])
    cells = [each["candidate"], duration(each["median"]), ratio(each), size(each["memory"]), error(each)]
    return table_row([*cells, speed(each)] if each.get("tokens") else cells)


def table_row(cells):
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|\n"


def goals(rows):
    found = [(each, goal) for each in rows for goal in each["goals"]]
    line = "- {}{}: {}, **{}**.\n"
    return "".join(
        line.format(
            f"{each['case']}, " if each["work"] == "growth" else "",
            goal["goal"],
            goal["figure"],
            "met" if goal["met"] else "not met",
        )
        for each, goal in found
    )


def figure(figures):
    (one,) = figures
    return f"```{{image}} assets/{FIGURE.name}\n:alt: {one['alt']}\n```\n"


def ratio(each):
    return f"{each['ratio']:,.0f}" if each["ratio"] >= 100 else f"{each['ratio']:.2f}"


def error(each):
    if each["work"] == "probes":
        return f"{each['error']:.3g}"
    digit, exponent = f"{each['error']:.0e}".split("e")
    return f"{digit}×10<sup>{int(exponent)}</sup>".replace("-", "−") if each["error"] else "0"


def speed(each):
    return f"{each['tokens'] / each['median']:,.0f}"


def duration(seconds):
    return in_unit(seconds, {"s": 1, "ms": 1e-3, "µs": 1e-6})


def size(n_bytes):
    return in_unit(n_bytes, {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10})


def in_unit(number, units):
    """Three digits in the largest unit of which there is one; a number and its unit stay on one line."""
    unit = next((unit for unit, each in units.items() if number >= each), [*units][-1])
    return f"{float(f'{number / units[unit]:.3g}'):g}\u00a0{unit}"


def main():
    document = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(render(document), encoding="utf-8")
    shutil.copy(RESULTS.with_name(document["figures"][0]["file"]), FIGURE)
    print(f"benchmarks: {PAGE.relative_to(ROOT)} shows the run of {document['date'][:10]}")


if __name__ == "__main__":
    main()
