"""The edge of a sliding window."""

from __future__ import annotations

from typing import Any

import torch

from ..report import CheckResult
from ..subject import Run, Subject

LONGEST = 512
# An effect that is so many tolerances large does not end because of rounding.
LARGE = 1e3


def window_edge(subject: Subject, check: str) -> CheckResult:
    """The first token reaches as far as the windows of all layers do, and no further."""
    told: dict[str, Any] = {"check": check, "part": subject.part}
    if subject.window is None:
        return CheckResult(verdict="does not apply", reason="not every layer has one window, or none is known", **told)
    reach = subject.n_layers * (subject.window - 1)
    n = reach + subject.n_layers + 2
    if n > min(LONGEST, subject.n_positions or LONGEST):
        return CheckResult(verdict="not decided", reason=f"windows reach {reach} tokens, too far to look", **told)
    ids, other = subject.text(n), subject.text(n, "other text")
    changed = torch.cat([other[:, :1], ids[:, 1:]], 1)
    effect = (subject.logits(Run(ids)) - subject.logits(Run(changed))).abs().amax((0, 2))
    edge = int((effect > subject.tolerance).nonzero().max())
    reason = f"the first token reaches {edge} tokens on; {subject.n_layers} layers of {subject.window} keys: {reach}"
    if edge == reach:
        return CheckResult(verdict="holds", reason=reason, **told)
    # A reach that fades out early may do so by rounding.
    if edge < reach and effect[edge] < LARGE * subject.tolerance:
        return CheckResult(verdict="not decided", reason=f"{reason}, and the effect fades", **told)
    off = abs(edge - reach)
    kind = "window off by one" if off == subject.n_layers else "another window than its own"
    kind = "no window" if edge == n - 1 and off > subject.n_layers else kind
    return CheckResult(verdict="broken", reason=reason, kind=kind, position=edge, error=float(off), **told)
