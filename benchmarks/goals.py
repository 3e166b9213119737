"""The goals: each compares posembed's row with its peers' and says by how much it is met, or not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .case import NOISE, Goal, Row


def no_slower() -> Goal:
    """Posembed takes no more time than the fastest peer."""

    def judge(rows: Sequence[Row]) -> tuple[str, bool]:
        ours, fastest = _ours(rows), _fastest(rows)
        times = 1 / fastest.ratio
        return f"{times:.2f} times the time of {fastest.candidate}", ours.median is not None and times <= NOISE

    return Goal(f"no slower than the fastest peer, whatever its error ({NOISE - 1:.0%} are noise)", judge)


def no_more_memory() -> Goal:
    """Posembed takes no more memory than the fastest peer."""

    def judge(rows: Sequence[Row]) -> tuple[str, bool]:
        ours, fastest = _ours(rows), _fastest(rows)
        if ours.memory is None or fastest.memory is None:
            return "memory was not measured", False
        times = ours.memory / max(fastest.memory, 1)
        return f"{times:.2f} times the memory of {fastest.candidate}", times <= NOISE

    return Goal(f"no more memory than the fastest peer ({NOISE - 1:.0%} are noise)", judge)


def faster_than(rival: str, factor: float) -> Goal:
    """Posembed is this many times faster than the peers whose names begin so."""

    def judge(rows: Sequence[Row]) -> tuple[str, bool]:
        fastest = _fastest(rows, rival)
        return f"{fastest.ratio:.1f} times faster than {fastest.candidate}", fastest.ratio >= factor

    return Goal(f"at least {factor:g} times faster than {rival}", judge)


def less_memory_than(rival: str, factor: float) -> Goal:
    """Posembed takes this many times less memory than the peers whose names begin so."""

    def judge(rows: Sequence[Row]) -> tuple[str, bool]:
        ours = _ours(rows)
        measured = [row for row in _peers(rows, rival) if row.memory is not None]
        if ours.memory is None or not measured:
            return "memory was not measured", False
        leanest = min(measured, key=lambda row: row.memory)
        times = leanest.memory / max(ours.memory, 1)
        return f"{times:.0f} times less than {leanest.candidate}", times >= factor

    return Goal(f"at least {factor:g} times less memory than {rival}", judge)


def error_below(bound: float) -> Goal:
    """Posembed's error is below this."""

    def judge(rows: Sequence[Row]) -> tuple[str, bool]:
        error = _ours(rows).error
        return f"{error:.1e}", error < bound

    return Goal(f"error below {bound:g}", judge)


def faster_at_no_larger_error(rival: str, factor: float) -> Goal:
    """One of posembed's rows is this many times faster than all peers whose names begin so, with no larger error."""

    def judge(rows: Sequence[Row]) -> tuple[str, bool]:
        fastest = _fastest(rows, rival)
        best = min(_peers(rows, rival), key=lambda row: row.error)
        figures, met = [], False
        for row in (row for row in rows if row.ours and row.ratio):
            times = fastest.ratio / row.ratio
            met = met or (times >= factor and row.error <= best.error)
            figures.append(f"{row.candidate} {times:.0f} times, error {row.error:.3g}")
        against = f"against {fastest.candidate}, and {best.error:.3g} of {best.candidate}"
        return f"{'; '.join(figures)}; {against}", met

    return Goal(f"at least {factor:g} times faster than any {rival}, at no larger error than any", judge)


def linear(largest: float = 1.1, tail: int = 4) -> Goal:
    """Time grows no faster than the length: the slope of its logarithm against that of the length."""

    def judge(rows: Sequence[Row]) -> tuple[str, bool]:
        measured = [row for row in rows if row.median is not None]
        whole, end = exponent(measured), exponent(measured[-tail:])
        lengths = [row.length for row in measured]
        figure = f"exponent {whole:.2f} from {lengths[0]} to {lengths[-1]}, {end:.2f} over the last {tail} lengths"
        return figure, whole <= largest

    return Goal(f"time grows linearly with the length (exponent at most {largest:g})", judge)


def exponent(rows: Sequence[Row]) -> float:
    """Fit log time = exponent * log length + constant."""
    if len(rows) < 2:
        raise ValueError("an exponent needs two lengths that were measured")
    return float(np.polyfit(np.log([row.length for row in rows]), np.log([row.median for row in rows]), 1)[0])


def _ours(rows: Sequence[Row]) -> Row:
    for row in rows:
        if row.ours and row.failed is None:
            return row
    raise ValueError("posembed itself was not measured")


def _peers(rows: Sequence[Row], rival: str = "") -> list[Row]:
    return [row for row in rows if not row.ours and row.counts and row.ratio and row.candidate.startswith(rival)]


def _fastest(rows: Sequence[Row], rival: str = "") -> Row:
    _ours(rows)
    peers = _peers(rows, rival)
    if not peers:
        raise ValueError("no peer was measured")
    return min(peers, key=lambda row: row.ratio)
