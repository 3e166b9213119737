"""The edge of a sliding window."""

from __future__ import annotations

import torch

from ..comparison import broken, holds
from ..report import CheckResult
from ..subject import DoesNotApplyError, Run, Subject, UndecidedError

LONGEST = 512
# An effect that is so many tolerances large does not end because of rounding.
LARGE = 1e3


def window_edge(subject: Subject) -> CheckResult:
    """The first token reaches as far as the windows of all layers do, and no further."""
    if subject.window is None:
        raise DoesNotApplyError("not every layer has one window, or none is known")
    reach = subject.n_layers * (subject.window - 1)
    n = reach + subject.n_layers + 2
    if n > min(LONGEST, subject.n_positions or LONGEST):
        raise UndecidedError(f"windows reach {reach} tokens, too far to look")
    ids = subject.text(n)
    effect = subject.moved(Run(ids), Run(torch.cat([subject.text(1, "another first"), ids[:, 1:]], 1)))
    edge = int((effect > subject.tolerance).nonzero().max())
    reason = f"the first token reaches {edge} tokens on; {subject.n_layers} layers of {subject.window} keys: {reach}"
    if edge == reach:
        return holds(reason)
    # A reach that fades out early may do so by rounding.
    if edge < reach and effect[edge] < LARGE * subject.tolerance:
        raise UndecidedError(f"{reason}, and the effect fades")
    off = abs(edge - reach)
    kind = "window off by one" if off == subject.n_layers else "another window than its own"
    kind = "no window" if edge == n - 1 and off > subject.n_layers else kind
    return broken(kind, reason, position=edge, error=float(off))
