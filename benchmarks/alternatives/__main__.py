"""Do ten tasks in posembed and in other libraries, and write what came out on a page.

Usage: python -m benchmarks.alternatives [--only TASK ...] [--quick]
       python -m benchmarks.alternatives --page

A whole run writes results/alternatives.json and the book's page; a quick one or one of a few tasks writes to _build/.
TransformerLens and nnsight are no part of the project's environment; where one is missing its cells say so. To have
them: pip install --no-deps transformer-lens nnsight, and what of theirs is not there.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.metadata
import io
import json
import os
import statistics
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from types import ModuleType
from typing import Any

import torch
import transformers
from threadpoolctl import threadpool_limits

from .. import ROOT
from ..case import said
from ..measure import interleaved
from ..page import write
from . import LIBRARIES, TASKS, page, sources

PARTS = ROOT / "_build" / "alternatives.json"
# Seconds that the rounds of one task may take; three rounds are always made.
SECONDS = 3.0
# A call that takes longer than this is timed once.
LONG = 1.0


@dataclass
class Row:
    """What one library makes of one task.

    Attributes:
        task: its name.
        library: likewise.
        lines: logical lines of its function; None where there is none.
        median: seconds of a call, over the rounds.
        seconds: of a call, in each round.
        shown: what came out, for the page.
        failed: why there is nothing, or None.
    """

    task: str
    library: str
    lines: int | None = None
    median: float | None = None
    seconds: list[float] = field(default_factory=list)
    shown: str = ""
    failed: str | None = None


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.alternatives",
        description="ten tasks, seven ways",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=TASKS,
        default=list(TASKS),
        metavar="TASK",
        help=", ".join(TASKS),
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="tiny sizes, to see that everything runs; no real numbers",
    )
    parser.add_argument(
        "--page",
        action="store_true",
        help="measure nothing; write the book's page anew",
    )
    asked = parser.parse_args(arguments)
    whole = set(asked.only) == set(TASKS) and not asked.quick
    if not asked.page:
        run(asked.only, quick=asked.quick, out=page.RESULTS if whole else PARTS)
    if asked.page or whole:
        document = json.loads(page.RESULTS.read_text(encoding="utf-8"))
        page.PAGE.write_text(page.render(document), encoding="utf-8")
        page.PICTURE.write_text(page.draw(document), encoding="utf-8")


def run(names, *, quick, out):
    """Do these tasks, print each as soon as it is done, and write the results."""
    start, load = time.monotonic(), [round(each, 2) for each in os.getloadavg()]
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    packages = [
        package
        for package in (*page.PACKAGES, *page.OPTIONAL)
        if installed(package)
    ]
    settings = {"tasks": list(names), "quick": quick, "load_before": load}
    rows = []
    with threadpool_limits(1):
        for name in names:
            gc.collect()
            rows += (found := measure(name, TASKS[name], quick=quick))
            print(
                page.table([asdict(row) for row in found], TASKS[name]),
                flush=True,
            )
            # What was done is there, should a later task fail.
            write(PARTS, rows, settings, packages)
    minutes = round((time.monotonic() - start) / 60, 1)
    write(out, rows, settings | {"minutes": minutes}, packages)
    print(f"alternatives: {minutes} minutes; every number is in {out}")


def measure(name: str, task: ModuleType, *, quick: bool) -> list[Row]:
    """Do a task by each library that has something for it; assert what the answers have in common."""
    rows = [
        Row(name, library) for library in LIBRARIES if hasattr(task, library)
    ]
    calls, answers, first, inputs = {}, {}, {}, task.given(quick)
    for row in rows:
        function, package = (
            getattr(task, row.library),
            LIBRARIES[row.library][0],
        )
        row.lines = sources.n_lines(function)
        if package in page.OPTIONAL and not installed(package):
            row.failed = "not installed where this was run"
            continue
        try:
            # Imports, and whatever else the first call alone needs.
            _call(function, task.given(True))
            calls[row.library] = _bound(function, task.given(quick))
            begun = time.perf_counter()
            answers[row.library] = calls[row.library]()
            first[row.library] = time.perf_counter() - begun
            row.shown = task.shown(answers[row.library], inputs)
        except Exception as error:
            if row.library == "posembed":
                raise
            row.failed = said(error)
    task.agree(answers, inputs)
    times = {each: [first[each]] for each in first}
    if not quick:
        short = {each: calls[each] for each in first if first[each] <= LONG}
        times |= interleaved(short, first, SECONDS, 51)
    for row in rows:
        if row.failed is None:
            row.seconds = times[row.library]
            row.median = statistics.median(row.seconds)
    return rows


def _bound(function, inputs):
    # Every function has inputs of its own: some change the model that they are given.
    return lambda: _call(function, inputs)


def _call(function, inputs) -> Any:
    """Without what libraries say on the way."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return function(*inputs)


def installed(package: str) -> bool:
    """Whether a package is there."""
    try:
        return bool(importlib.metadata.version(package))
    except importlib.metadata.PackageNotFoundError:
        return False


if __name__ == "__main__":
    main()
