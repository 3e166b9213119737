"""Two texts in one row, parted by a mask of queries by keys."""

from __future__ import annotations

from dataclasses import replace

import torch

from ..comparison import compare
from ..report import CheckResult
from ..subject import DoesNotApplyError, Run, Subject

LEAK = "packed texts see each other"


def packed_as_alone(subject: Subject) -> CheckResult:
    """A packed text, with positions that begin anew, gives what it gives alone."""
    row = _packed(subject)
    subject.needs_positions()
    second, n = list(row.keep or ()), subject.length
    anew = torch.cat([torch.arange(n - len(second)), torch.arange(len(second))])[None]
    alone = Run(row.ids[:, second], anew[:, second], row.mask[:, second][:, :, second])  # type: ignore[index]
    explain = [("positions do not begin anew", replace(row, positions=torch.arange(n)[None]))]
    return _of_attention(subject, compare(subject, alone, replace(row, positions=anew), LEAK, explain))


def packed_unseen(subject: Subject) -> CheckResult:
    """Another first text changes nothing in the second, whatever their positions."""
    row = _packed(subject)
    second = row.ids[:, list(row.keep or ())]
    other = torch.cat([subject.text(subject.length - second.shape[1], "another first"), second], 1)
    return _of_attention(subject, compare(subject, row, replace(row, ids=other), LEAK))


def _of_attention(subject: Subject, result: CheckResult) -> CheckResult:
    """Neighbours may be mixed by more than attention: then they are where each token attends to itself alone."""
    ids, itself = subject.text(), torch.eye(subject.length, dtype=torch.bool)[None]
    changed = torch.cat([subject.text(1, "another first"), ids[:, 1:]], 1)
    moved = subject.moved(Run(changed, mask=itself), Run(ids, mask=itself)) > subject.tolerance
    # Where the last token is moved as well, the mask is not looked at.
    if result.verdict == "broken" and moved[1:].any() and not moved[-1]:
        raise DoesNotApplyError("neighbours are mixed outside of attention, where no mask parts them")
    return result


def _packed(subject: Subject) -> Run:
    """The row, of which the second text is looked at. A mask that hides nothing must change nothing."""
    if subject.keeps_state:
        raise DoesNotApplyError("it keeps a state from token to token")
    ids, seen = subject.text(), subject.visible(subject.length)
    text = torch.arange(subject.length) >= subject.length // 2
    try:
        understood = subject.agree(Run(ids), Run(ids, mask=seen))
    except DoesNotApplyError:
        raise
    except Exception as error:
        raise DoesNotApplyError(f"no mask of queries by keys: {type(error).__name__}") from error
    if not understood:
        raise DoesNotApplyError("a mask of queries by keys means something else to it")
    mask = (text[:, None] == text)[None] & seen
    return Run(ids, mask=mask, keep=range(subject.length // 2, subject.length))
