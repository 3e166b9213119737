"""Is the order of tokens seen, and the future not?"""

from __future__ import annotations

import torch

from ..comparison import AUDIBLE, broken, compare, holds
from ..report import CheckResult
from ..subject import DoesNotApplyError, Run, Subject

BLIND = "positions change nothing: are heads and sequence exchanged, are they ignored, or is the scheme left out?"


def order_is_seen(subject: Subject) -> CheckResult:
    """Tokens in another order give other logits than the same logits in another order."""
    if subject.positionless:
        raise DoesNotApplyError("it is made without positions")
    if subject.causal and subject.relative and not subject.positions_matter and "positions" in subject.names:
        return broken(BLIND, "other positions change nothing; only the causal mask tells order")
    if subject.positions_matter or subject.causal:
        return holds(error=subject.signal / subject.scale)
    ids = subject.text()
    moved = subject.logits(Run(ids.flip(1))) - subject.logits(Run(ids)).flip(1)
    effect = float(moved.abs().max())
    if effect > AUDIBLE * subject.tolerance:
        return holds(error=effect / subject.scale)
    same = "tokens in another order give the same logits in another order"
    return broken(BLIND, same, error=effect / subject.scale)


def future_is_unseen(subject: Subject) -> CheckResult:
    """Other last tokens change nothing before them, in a causal model."""
    if not subject.causal:
        raise DoesNotApplyError("it is not causal")
    ids, keep = subject.text(), range(subject.length - 2)
    changed = torch.cat([ids[:, :-2], subject.text(name="other text")[:, -2:]], 1)
    return compare(subject, Run(ids, keep=keep), Run(changed, keep=keep), "later tokens are seen")
