"""From a case to its rows: answers checked, calls timed in turn, memory measured, goals judged.

Memory is measured in a process forked for it, which lets the candidate run once to the end and forgets it, and hands
free memory back to the system. Then the candidate is made anew and called once: what it keeps, what the call needs at
most and what it returns is its memory.
"""

from __future__ import annotations

import ctypes
import gc
import math
import multiprocessing
import random
import re
import statistics
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .case import Candidate, Case, Row, largest_error, said

# From a case and a candidate to its bytes.
Peak = Callable[[Case, Candidate], int | None]
# Calls shorter than this are repeated within a round, until they take as long.
SHORTEST = 0.005
# A first run that took longer than this was not slow for being the first.
LONG = 0.2
LEAST_ROUNDS = 3
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
# Allocations of 64 kB and more are the system's own pages, so that what is freed no longer counts: glibc's numbers of
# these settings, M_MMAP_THRESHOLD and M_TRIM_THRESHOLD.
PAGE_SETTINGS, LARGE = (-3, -1), 2**16


def measure(case: Case, *, seconds: float, most_rounds: int, peak: Peak | None = None) -> list[Row]:
    """Measure all candidates of a case.

    Args:
        case: what to measure.
        seconds: about how long all rounds may take together.
        most_rounds: rounds at most.
        peak: measures a candidate's memory; by default in a process forked for it.

    Returns:
        One row a candidate. A candidate that fails has its message there; so have all if the case itself fails.
    """
    rows = [Row(case.work, case.name, each.name, note=each.note) for each in case.candidates]
    try:
        _time(case, rows, seconds, most_rounds)
    except Exception as error:
        for row in rows:
            row.failed = f"the case failed: {said(error)}"
    for row, candidate in zip(rows, case.candidates, strict=True):
        if row.failed is None:
            row.memory = (peak or _peak_in_a_fork)(case, candidate)
    for goal in case.goals if all(row.failed is None for row in rows if row.ours) else ():
        text, figure, met = goal(rows)
        next(row for row in rows if row.ours).goals.append({"goal": text, "figure": figure, "met": bool(met)})
    return rows


def _time(case: Case, rows: list[Row], seconds: float, most_rounds: int) -> None:
    inputs, calls, first = case.inputs(), {}, {}
    reference = cache(lambda: case.reference(inputs))
    for row, candidate in zip(rows, case.candidates, strict=True):
        try:
            call = candidate.make(inputs)
            start = time.perf_counter()
            answer = call()
            first[row.candidate] = time.perf_counter() - start
            wanted = candidate.reference(inputs) if candidate.reference else reference()
            with torch.no_grad():
                row.error = largest_error(candidate.answer(answer), wanted)
        except Exception as failure:
            row.failed = said(failure)
            continue
        row.agrees = row.error <= (case.bound if candidate.bound is None else candidate.bound)
        row.seconds = [first[row.candidate]]
        if not candidate.once:
            calls[row.candidate] = call
    times = interleaved(calls, first, seconds, most_rounds)
    for row in rows:
        row.seconds = times.get(row.candidate, row.seconds)
        if row.seconds:
            row.median = statistics.median(row.seconds)
    _add_ratios(rows)


def interleaved(
    calls: Mapping[str, Callable[[], Any]], first: Mapping[str, float], seconds: float, most_rounds: int
) -> dict[str, list[float]]:
    """Time each call in turn, round after round, so that a busy moment of the machine meets all of them.

    Args:
        calls: what to time, by name; each has run before.
        first: the seconds of that run.
        seconds: about how long all rounds may take together.
        most_rounds: rounds at most.

    Returns:
        The seconds of a call in each round, by name.
    """
    again = {name: LONG if first[name] > LONG else _seconds(call, 1) for name, call in calls.items()}
    repeats = {name: math.ceil(SHORTEST / max(each, 1e-7)) for name, each in again.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    order, draw = list(calls), random.Random(0)
    gc.collect()
    start, n_rounds = time.perf_counter(), 0
    while n_rounds < LEAST_ROUNDS or (n_rounds < most_rounds and time.perf_counter() - start < seconds):
        draw.shuffle(order)
        for name in order:
            times[name].append(_seconds(calls[name], repeats[name]))
        n_rounds += 1
    return times


def _seconds(call: Callable[[], Any], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def _add_ratios(rows: list[Row]) -> None:
    """Compare within each round, where both met the same machine."""
    ours = next((row for row in rows if row.ours and row.seconds), None)
    for row in (row for row in rows if ours is not None and row.seconds):
        if len(row.seconds) == len(ours.seconds):
            row.ratio = statistics.median(np.divide(row.seconds, ours.seconds).tolist())
        else:
            row.ratio = row.median / ours.median


def _peak_in_a_fork(case: Case, candidate: Candidate) -> int | None:
    """The bytes of a candidate; None where this system cannot tell, or it failed."""
    if not RESET.exists():
        return None
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(_peak(case, candidate)))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        return None
    finally:
        process.join()


def _peak(case: Case, candidate: Candidate) -> int:
    gc.freeze()  # what was imported need not be searched, nor its pages copied
    inputs = case.inputs()
    if not candidate.once:
        candidate.make(inputs)()
    before = _start()
    call = candidate.make(inputs)
    _start()  # what it needed to be made and no longer keeps is not counted
    result = call()
    peak = _status("VmHWM")
    del result
    return max(peak - before, 0)


def _start() -> int:
    """Give free pages back and forget the peak so far; return the bytes in use."""
    gc.collect()
    library = ctypes.CDLL(None)
    for setting in PAGE_SETTINGS:
        library.mallopt(setting, LARGE)
    library.malloc_trim(0)
    RESET.write_text("5")
    return _status("VmRSS")


def _status(name: str) -> int:
    return int(re.search(rf"^{name}:\s+(\d+) kB", STATUS.read_text(), re.M)[1]) * 1024
