"""Two runs that should give the same logits: do they, and what does it look like where they do not?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jaxtyping import Float
from torch import Tensor

from .report import CheckResult
from .script import script
from .subject import Run, Subject, UndecidedError

# A difference below this share of what order does is neither rounding nor surely a fault.
SURELY = 1e-3
# Rounding must be this much smaller than what order does, for an absence of differences to say something.
AUDIBLE = 10.0


def holds(reason: str = "", error: float | None = None) -> CheckResult:
    """The verdict of a check that its caller names."""
    return CheckResult("", "holds", reason, error=error)


def broken(kind: str, reason: str = "", **told: Any) -> CheckResult:
    """The same of one that is broken: the fault it looks like, and what else is told of it."""
    return CheckResult("", "broken", reason, kind=kind, **told)


def compare(
    subject: Subject, right: Run, tried: Run, kind: str = "", explain: Iterable[tuple[str, Run]] = ()
) -> CheckResult:
    """Compare two runs.

    Args:
        subject: the model.
        right: what the logits should be.
        tried: what is checked.
        kind: of a fault, where no explanation fits.
        explain: faults, and for each the run whose logits a model with this fault would give for `tried`.

    Raises:
        UndecidedError: the two differ by more than rounding and less than a fault would, or nothing could be seen.
    """
    error, place = judge(subject, subject.moved(right, tried))
    if place is None:
        return holds(error=error)
    kinds = (name for name, run in explain if _gives(subject, run, tried))
    place = place if right.keep is None else right.keep[place]
    return broken(next(kinds, kind), error=error, position=place, script=script(subject, right, tried))


def judge(subject: Subject, apart: Float[Tensor, " seq"]) -> tuple[float, int | None]:
    """The largest difference in units of the largest logit, and the first token that is wrong, if one is."""
    error, tolerance, signal = float(apart.max()), subject.tolerance, subject.signal
    if error <= tolerance and signal <= AUDIBLE * tolerance:
        raise UndecidedError("order moves the logits no more than rounding does")
    if tolerance < error < SURELY * signal:
        raise UndecidedError(f"rounding, or a small fault: {error / signal:.0e} of what order does")
    wrong = apart > max(tolerance, SURELY * signal)
    return error / subject.scale, int(wrong.nonzero()[0]) if error > tolerance else None


def _gives(subject: Subject, run: Run, tried: Run) -> bool:
    try:
        return subject.agree(run, tried)
    except Exception:  # what the model does not take explains nothing
        return False
