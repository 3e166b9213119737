"""Far out in half precision, neighbouring positions are still two."""

from __future__ import annotations

import copy
from itertools import pairwise

import torch
from torch import Tensor

from ..comparison import broken, holds
from ..report import CheckResult
from ..subject import DoesNotApplyError, Run, Subject, UndecidedError

# From 256 on, bfloat16 has no odd numbers; at 1000 it has one in four.
FAR, NEIGHBOURS = 1000, 8
ENOUGH = 300
# Of bfloat16, near 1.
STEP = 2.0**-8


def neighbours_far_out(subject: Subject) -> CheckResult:
    """The last token, moved on by one, has other logits, far out as well as near."""
    subject.needs_positions()
    far = FAR if subject.n_positions is None else min(FAR, subject.n_positions - NEIGHBOURS - 5)
    if far < ENOUGH:
        raise DoesNotApplyError("too few positions for bfloat16 to confuse them")
    # As it is first: angles may be rounded whatever the format of the weights.
    near, out, where = _alike(subject, 0), _alike(subject, far), "in every format"
    if near == out == 0 and subject.whole is not None:
        if (
            min(float(one.sub(other).abs().max()) for one, other in pairwise(_ends(subject, far)))
            < STEP * subject.scale
        ):
            raise UndecidedError(f"from {far} on neighbours differ by less than bfloat16 tells apart")
        half = subject.of(copy.deepcopy(subject.whole).bfloat16())
        near, out, where = _alike(half, 0), _alike(half, far), "in bfloat16"
    reason = f"of {NEIGHBOURS} pairs of neighbours {near} are one position near, and {out} from {far} on, {where}"
    if out == 0:
        return holds(reason)
    if near == 0 and out >= NEIGHBOURS // 2:
        return broken("positions or angles in bfloat16", reason, error=out / NEIGHBOURS)
    raise UndecidedError(reason)


def _alike(subject: Subject, start: int) -> int:
    """For how many neighbours two positions of the last token give one output, bit by bit."""
    return sum(torch.equal(one, other) for one, other in pairwise(_ends(subject, start)))


def _ends(subject: Subject, start: int) -> list[Tensor]:
    """The logits of the last token, moved on by one and one more."""
    ids, first = subject.text(4), torch.arange(start, start + 3)
    ends = (torch.tensor([start + 3 + step]) for step in range(NEIGHBOURS + 1))
    return [subject.logits(Run(ids, torch.cat([first, end])[None], keep=[3])) for end in ends]
