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

from . import ROOT, attention, biases, gpu, page, rope, sinusoids
from .measure import measure

WORKS = {
    "sinusoidal": sinusoids.cases,
    "rope": rope.cases,
    "bias": biases.cases,
    "attention": attention.cases,
}
# Asked for by name alone: it wants a GPU, and has results of its own.
ON_A_GPU = "gpu"
PARTS = ROOT / "_build" / "benchmarks.json"
FULL, QUICK = {"seconds": 5.0, "most_rounds": 51}, {"seconds": 0.1, "most_rounds": 3}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="posembed beside its peers")
    works = [*WORKS, ON_A_GPU]
    parser.add_argument("--only", nargs="+", choices=works, default=list(WORKS), metavar="WORK", help=", ".join(works))
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs; no real numbers")
    parser.add_argument("--page", action="store_true", help="measure nothing; write the book's page anew")
    asked = parser.parse_args(arguments)
    whole = set(asked.only) == set(WORKS) and not asked.quick
    if ON_A_GPU in asked.only and len(asked.only) > 1:
        parser.error("gpu is measured alone")
    if asked.only == [ON_A_GPU]:
        run_on_a_gpu(quick=asked.quick, out=PARTS if asked.quick else page.ON_A_GPU)
    elif not asked.page:
        run(asked.only, quick=asked.quick, out=page.RESULTS if whole else PARTS)
    if asked.page or whole:
        document = json.loads(page.RESULTS.read_text(encoding="utf-8"))
        page.PAGE.write_text(page.render(document), encoding="utf-8")
        page.PICTURE.write_text(page.draw(document), encoding="utf-8")


def run_on_a_gpu(*, quick, out):
    """Measure the layers on a GPU, beside nothing else."""
    start, rows, device = time.monotonic(), [], gpu.device()
    for case in gpu.cases(quick):
        gc.collect()
        torch.cuda.empty_cache()
        rows += (found := measure(case, **gpu.HOW, peak=gpu.peak))
        print(page.case(case.name, [vars(row) for row in found]), flush=True)
        minutes = round((time.monotonic() - start) / 60, 1)
        page.write(out, rows, {"works": [ON_A_GPU], "quick": quick, "minutes": minutes, "device": device})
    print(f"benchmarks: {minutes} minutes; every number is in {out}")


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
