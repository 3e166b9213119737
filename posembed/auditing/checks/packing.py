"""Two texts in one row, parted by a mask of queries by keys."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ..comparison import compare
from ..report import CheckResult
from ..subject import NotTakenError, Run, Subject


def packed_as_alone(subject: Subject, check: str) -> CheckResult:
    """A packed text, with positions that begin anew, gives what it gives alone."""
    if (refused := _refused(subject, check)) is not None:
        return refused
    if not subject.positions_matter:
        return CheckResult(check, "does not apply", "no positions can be given to it", part=subject.part)
    ids, second, mask, anew = _packed(subject)
    n = len(second)
    alone = Run(ids[:, second], torch.arange(n)[None], mask[:, second][:, :, second])
    explain = [("positions do not begin anew", Run(ids, torch.arange(ids.shape[1])[None], mask, keep=second))]
    packed = Run(ids, anew, mask, keep=second)
    return _by_design(subject, compare(subject, check, alone, packed, explain=explain, kind=LEAK))


def packed_unseen(subject: Subject, check: str) -> CheckResult:
    """Another first text changes nothing in the second, whatever their positions."""
    if (refused := _refused(subject, check)) is not None:
        return refused
    ids, second, mask, _ = _packed(subject)
    other = torch.cat([subject.text(len(ids[0]) - len(second), "another first"), ids[:, second]], 1)
    right, tried = Run(ids, mask=mask, keep=second), Run(other, mask=mask, keep=second)
    return _by_design(subject, compare(subject, check, right, tried, kind=LEAK))


def _by_design(subject: Subject, result: CheckResult) -> CheckResult:
    """Neighbours may be mixed by more than attention: then they are where each token attends to itself alone."""
    if result.verdict != "broken":
        return result
    ids, n = subject.text(), subject.length
    changed = torch.cat([subject.text(1, "another first"), ids[:, 1:]], 1)
    itself = torch.eye(n, dtype=torch.bool)[None]
    moved = (subject.logits(Run(changed, mask=itself)) - subject.logits(Run(ids, mask=itself))).abs().amax((0, 2))
    # Where the last token is moved as well, the mask is not looked at.
    if bool(moved[1:].max() > subject.tolerance) and not bool(moved[-1] > subject.tolerance):
        reason = "neighbours are mixed outside of attention, where no mask parts them"
        return CheckResult(result.check, "does not apply", reason, part=result.part)
    return result


def _packed(subject: Subject) -> tuple[Int[Tensor, "one seq"], list[int], Bool[Tensor, "one seq seq"], Tensor]:
    """The ids, the places of the second text, the mask, and positions that begin anew."""
    ids, n = subject.text(), subject.length
    split = n // 2
    text = (torch.arange(n) >= split).long()
    mask = (text[:, None] == text)[None] & subject.visible(n)
    at = torch.arange(n)
    return ids, [*range(split, n)], mask, (at - split * text)[None]


def _refused(subject: Subject, check: str) -> CheckResult | None:
    """Why no mask of queries by keys can be given, if so; a mask that hides nothing must change nothing."""
    if subject.keeps_state:
        return CheckResult(check, "does not apply", "it keeps a state from token to token", part=subject.part)
    ids, n = subject.text(), subject.length
    try:
        result = compare(subject, check, Run(ids), Run(ids, mask=subject.visible(n)))
    except NotTakenError:
        raise
    except Exception as error:
        reason = f"no mask of queries by keys: {type(error).__name__}"
        return CheckResult(check, "does not apply", reason, part=subject.part)
    if result.verdict != "holds":
        reason = "a mask of queries by keys means something else to it"
        return CheckResult(check, "does not apply", reason, part=subject.part)
    return None


LEAK = "packed texts see each other"
