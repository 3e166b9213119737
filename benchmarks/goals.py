"""The goals: each compares posembed's row with its peers' and says by how much it is met, or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .case import Row

Goal = Callable[[Sequence[Row]], tuple[str, str, bool]]
# A ratio of medians moves by a few hundredths from run to run.
NOISE = 1.05


def no_slower(rows: Sequence[Row]) -> tuple[str, str, bool]:
    """Posembed takes no more time than the fastest peer."""
    _, fastest = compared(rows)
    text = f"no slower than the fastest peer, however exact that is ({NOISE - 1:.0%} more count as noise)"
    times = 1 / fastest.ratio
    return text, f"{times:.2f} times the time of {fastest.candidate}", times <= NOISE


def no_more_memory(rows: Sequence[Row]) -> tuple[str, str, bool]:
    """Posembed takes no more memory than the fastest peer."""
    ours, fastest = compared(rows)
    text = f"no more memory than the fastest peer ({NOISE - 1:.0%} more count as noise)"
    if ours.memory is None or fastest.memory is None:
        return text, "memory was not measured", False
    times = ours.memory / max(fastest.memory, 1)
    return text, f"{times:.2f} times the memory of {fastest.candidate}", times <= NOISE


def error_below(bound: float) -> Goal:
    """Posembed's error is below this."""

    def judge(rows: Sequence[Row]) -> tuple[str, str, bool]:
        ours, _ = compared(rows)
        return f"error below {bound:g}", f"{ours.error:.1e}", ours.error < bound

    return judge


def compared(rows: Sequence[Row]) -> tuple[Row, Row]:
    """Posembed's first row, and that of the fastest peer."""
    ours = [row for row in rows if row.ours and row.failed is None]
    peers = [row for row in rows if not row.ours and row.ratio]
    if not ours or not peers:
        raise ValueError("no peer was measured" if ours else "posembed itself was not measured")
    return ours[0], min(peers, key=lambda row: row.ratio)
