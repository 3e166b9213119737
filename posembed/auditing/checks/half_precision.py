"""Far out in half precision, neighbouring positions are still two."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import torch

from ..report import CheckResult
from ..subject import Run, Subject

# From 256 on, bfloat16 has no odd numbers; at 1000 it has one in four.
FAR, NEIGHBOURS = 1000, 8
ENOUGH = 300


def neighbours_far_out(subject: Subject, check: str) -> CheckResult:
    """The last token, moved on by one, has other logits, far out as well as near."""
    told: dict[str, Any] = {"check": check, "part": subject.part}
    if not subject.positions_matter:
        return CheckResult(verdict="does not apply", reason="no positions can be given to it", **told)
    far = FAR if subject.n_positions is None else min(FAR, subject.n_positions - NEIGHBOURS - 5)
    if far < ENOUGH:
        return CheckResult(verdict="does not apply", reason="too few positions for bfloat16 to confuse them", **told)
    # As it is first: angles may be rounded whatever the format of the weights.
    same = [_alike(subject, 0), _alike(subject, far)]
    where = "in every format"
    if same == [0, 0] and subject.again is not None and subject.whole is not None:
        half = subject.again(copy.deepcopy(subject.whole).bfloat16())
        half.first, half.seed = subject.first, subject.seed
        same, where = [_alike(half, 0), _alike(half, far)], "in bfloat16"
    near, out = same
    reason = f"of {NEIGHBOURS} pairs of neighbours {near} are one position near, and {out} from {far} on, {where}"
    if out == 0:
        return CheckResult(verdict="holds", reason=reason, **told)
    if near == 0 and out >= NEIGHBOURS // 2:
        kind = "positions or angles in bfloat16"
        return CheckResult(verdict="broken", reason=reason, kind=kind, error=out / NEIGHBOURS, **told)
    return CheckResult(verdict="not decided", reason=reason, **told)


def _alike(subject: Subject, start: int) -> int:
    """For how many neighbours two positions of the last token give one output, bit by bit."""
    ids, outputs = subject.text(4), []
    for step in range(NEIGHBOURS + 1):
        at = torch.tensor([[start, start + 1, start + 2, start + 3 + step]])
        outputs.append(subject.logits(Run(ids, at, keep=[3])))
    return sum(torch.equal(one, other) for one, other in pairwise(outputs))
