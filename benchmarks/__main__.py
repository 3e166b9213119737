"""Time posembed beside its peers, print the tables and keep every number.

Usage: python -m benchmarks [--only WORK ...] [--quick]
       python -m benchmarks --page

A whole run writes results/benchmarks.json and the book's page; a quick one or one of a few works writes to _build/.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import time
from collections.abc import Sequence

import torch

from . import ROOT, attention, biases, page, rope, sinusoids
from .measure import measure

WORKS = {
    "sinusoidal": sinusoids.cases,
    "rope": rope.cases,
    "bias": biases.cases,
    "attention": attention.cases,
}
PARTS = ROOT / "_build" / "benchmarks.json"
FULL, QUICK = {"seconds": 5.0, "most_rounds": 51}, {"seconds": 0.1, "most_rounds": 3}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="posembed beside its peers")
    parser.add_argument("--only", nargs="+", choices=WORKS, default=list(WORKS), metavar="WORK", help=", ".join(WORKS))
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs; no real numbers")
    parser.add_argument("--page", action="store_true", help="measure nothing; write the book's page anew")
    asked = parser.parse_args(arguments)
    whole = set(asked.only) == set(WORKS) and not asked.quick
    if not asked.page:
        run(asked.only, quick=asked.quick, out=page.RESULTS if whole else PARTS)
    if asked.page or whole:
        page.PAGE.write_text(page.render(json.loads(page.RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")


def run(works, *, quick, out):
    """Measure all cases of these works, print each as soon as it is done, and write the results."""
    start, load = time.monotonic(), [round(each, 2) for each in os.getloadavg()]
    torch.set_num_threads(1)
    rows = []
    for case in (case for work in works for case in WORKS[work](quick)):
        gc.collect()
        rows += (found := measure(case, **(QUICK if quick else FULL)))
        print(page.case(case.name, [vars(row) for row in found]), flush=True)
    minutes = round((time.monotonic() - start) / 60, 1)
    page.write(out, rows, {"works": list(works), "quick": quick, "minutes": minutes, "load_before": load})
    print(f"benchmarks: {minutes} minutes; every number is in {out}")


if __name__ == "__main__":
    main()
