"""Padding and other texts of a batch change nothing."""

from __future__ import annotations

from dataclasses import replace

import torch

from ..comparison import compare
from ..report import CheckResult
from ..subject import DoesNotApplyError, Run, Subject

PADS = 3
COUNTED = "positions count padding"
SEEN = "padding is seen"
SHARED = "all texts of a batch get the positions of one"
LEAK = "texts of a batch see each other: are batch and sequence, or batch and heads, exchanged?"


def right_padding(subject: Subject) -> CheckResult:
    """Padding behind a text."""
    ids, n = subject.text(), subject.length
    row = torch.cat([ids, torch.full((1, PADS), subject.pad_id)], 1)
    return compare(subject, Run(ids), Run(row, mask=torch.arange(n + PADS)[None] < n, keep=range(n)), SEEN)


def batch_mates(subject: Subject) -> CheckResult:
    """Another text before it in the batch, also one without padding before one with."""
    ids, (_, padded) = subject.text(), _in_front(subject)
    result = compare(subject, Run(ids), Run(torch.cat([subject.text(name="mates"), ids])), LEAK)
    if result.verdict == "broken" or "mask" not in subject.names:
        return result
    mate, mask = subject.text(padded.ids.shape[1], "mates"), torch.arange(padded.ids.shape[1])[None] >= PADS
    both = Run(torch.cat([mate, padded.ids]), mask=torch.cat([mask | True, mask]), keep=padded.keep)
    return compare(subject, padded, both, SHARED)


def left_padding_with_positions(subject: Subject) -> CheckResult:
    """Padding in front of a text whose positions are given."""
    subject.needs_positions()
    alone, padded = _in_front(subject)
    at = torch.arange(subject.length)[None]
    positions = torch.cat([torch.zeros(1, PADS, dtype=torch.long), at], 1)
    explain = [(COUNTED, replace(alone, positions=at + PADS))]
    return compare(subject, alone, replace(padded, positions=positions), SEEN, explain)


def left_padding(subject: Subject) -> CheckResult:
    """Padding in front of a text whose positions are left to the model."""
    alone, padded = _in_front(subject)
    other_pads = torch.cat([subject.text(PADS, "other pads"), alone.ids], 1)
    result = compare(subject, alone, padded, SEEN, [(COUNTED, replace(padded, ids=other_pads))])
    if result.verdict == "broken" and subject.positions_matter:
        raise DoesNotApplyError(f"it counts padding; give {subject.names['positions']}")
    if result.verdict == "broken" and not subject.pads_left:
        raise DoesNotApplyError("its positions are absolute and cannot be given; pad behind the text")
    return result


def _in_front(subject: Subject) -> tuple[Run, Run]:
    ids, n = subject.text(), subject.length + PADS
    row = torch.cat([torch.full((1, PADS), subject.pad_id), ids], 1)
    return Run(ids), Run(row, mask=torch.arange(n)[None] >= PADS, keep=range(PADS, n))
