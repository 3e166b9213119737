"""Padding and other texts of a batch change nothing."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..comparison import compare, judge, script
from ..report import CheckResult
from ..subject import Run, Subject

PADS = 3
COUNTED = "positions count padding"
SEEN = "padding is seen"


def right_padding(subject: Subject, check: str) -> CheckResult:
    """Padding behind a text."""
    ids, n = subject.text(), subject.length
    mask = torch.arange(n + PADS)[None] < n
    padded = Run(torch.cat([ids, _pads(subject)], 1), mask=mask, keep=range(n))
    return compare(subject, check, Run(ids), padded, kind=SEEN)


def batch_mates(subject: Subject, check: str) -> CheckResult:
    """Other texts in the batch."""
    ids, mates = subject.text(), subject.text(name="mates")
    alone, batch = Run(ids), Run(torch.cat([ids, mates], 0))
    expected, found = subject.logits(alone), subject.logits(batch)[:1]
    result = judge(subject, check, expected, found)
    return (
        replace(result, kind=LEAK, script=script(subject, alone, batch, "b[:1]"))
        if result.verdict == "broken"
        else result
    )


def left_padding_with_positions(subject: Subject, check: str) -> CheckResult:
    """Padding in front of a text whose positions are given."""
    if not subject.positions_matter:
        return CheckResult(check, "does not apply", "no positions can be given to it", part=subject.part)
    alone, padded = _in_front(subject)
    counted = (padded.mask.long().cumsum(1) - 1).clamp(min=0)  # type: ignore[union-attr]
    explain = [(COUNTED, replace(alone, positions=torch.arange(subject.length)[None] + PADS, keep=None))]
    return compare(subject, check, alone, replace(padded, positions=counted), kind=SEEN, explain=explain)


def left_padding(subject: Subject, check: str) -> CheckResult:
    """Padding in front of a text whose positions are left to the model."""
    alone, padded = _in_front(subject)
    other_pads = padded.ids.clone()
    other_pads[:, :PADS] = subject.text(PADS, "other pads")
    explain = [(COUNTED, replace(padded, ids=other_pads))]
    result = compare(subject, check, alone, padded, kind=SEEN, explain=explain)
    if result.verdict != "broken":
        return result
    if subject.positions_matter:
        return _by_design(result, f"it counts padding; give {subject.names['positions']}")
    if not subject.pads_left:
        return _by_design(result, "its positions are absolute and cannot be given; pad behind the text")
    return result


def _by_design(result: CheckResult, reason: str) -> CheckResult:
    return CheckResult(result.check, "does not apply", reason, part=result.part)


def _in_front(subject: Subject) -> tuple[Run, Run]:
    ids, n = subject.text(), subject.length
    mask = torch.arange(n + PADS)[None] >= PADS
    return Run(ids), Run(torch.cat([_pads(subject), ids], 1), mask=mask, keep=range(PADS, n + PADS))


def _pads(subject: Subject) -> Tensor:
    return torch.full((1, PADS), subject.pad_id)


LEAK = "texts of a batch see each other: are batch and sequence, or batch and heads, exchanged?"
