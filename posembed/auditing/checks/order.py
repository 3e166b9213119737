"""Is the order of tokens seen, and the future not?"""

from __future__ import annotations

from typing import Any

import torch

from ..comparison import AUDIBLE, compare
from ..report import CheckResult
from ..subject import Run, Subject


def order_is_seen(subject: Subject, check: str) -> CheckResult:
    """Tokens in another order give other logits than the same logits in another order."""
    told: dict[str, Any] = {"check": check, "part": subject.part}
    if subject.positionless:
        return CheckResult(verdict="does not apply", reason="it is made without positions", **told)
    if subject.causal and subject.relative and not subject.positions_matter and "positions" in subject.names:
        reason = "other positions change nothing; only the causal mask tells order"
        return CheckResult(verdict="broken", kind=BLIND, reason=reason, **told)
    if subject.positions_matter or subject.causal:
        return CheckResult(verdict="holds", error=subject.signal / subject.scale, **told)
    ids = subject.text()
    order = torch.arange(ids.shape[1]).flip(0)
    moved = subject.logits(Run(ids[:, order])) - subject.logits(Run(ids))[:, order]
    effect = float(moved.abs().max())
    if effect > AUDIBLE * subject.tolerance:
        return CheckResult(verdict="holds", error=effect / subject.scale, **told)
    reason = "tokens in another order give the same logits in another order"
    return CheckResult(verdict="broken", kind=BLIND, reason=reason, error=effect / subject.scale, **told)


def future_is_unseen(subject: Subject, check: str) -> CheckResult:
    """Another last token changes nothing before it, in a causal model."""
    if not subject.causal:
        return CheckResult(check, "does not apply", "it is not causal", part=subject.part)
    ids, other = subject.text(), subject.text(name="other text")
    changed, n = torch.cat([ids[:, :-2], other[:, -2:]], 1), ids.shape[1]
    return compare(
        subject, check, Run(ids, keep=range(n - 2)), Run(changed, keep=range(n - 2)), kind="later tokens are seen"
    )


BLIND = "positions change nothing: are heads and sequence exchanged, are they ignored, or is the scheme left out?"
