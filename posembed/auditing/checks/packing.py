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
    return compare(subject, check, alone, Run(ids, anew, mask, keep=second), explain=explain, kind=LEAK)


def packed_unseen(subject: Subject, check: str) -> CheckResult:
    """Another first text changes nothing in the second, whatever their positions."""
    if (refused := _refused(subject, check)) is not None:
        return refused
    ids, second, mask, _ = _packed(subject)
    other = torch.cat([subject.text(len(ids[0]) - len(second), "another first"), ids[:, second]], 1)
    return compare(subject, check, Run(ids, mask=mask, keep=second), Run(other, mask=mask, keep=second), kind=LEAK)


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
