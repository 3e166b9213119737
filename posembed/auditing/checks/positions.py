"""Positions that are given: as the default ones, shifted, out of order, past the last one."""

from __future__ import annotations

from dataclasses import replace

import torch

from ..comparison import compare, script
from ..report import CheckResult
from ..subject import Run, Subject

SHIFT = 17
# How far past the last position.
PAST = 5


def explicit_positions(subject: Subject, check: str) -> CheckResult:
    """Positions from 0 on, given, are those that the model takes by itself."""
    if not subject.positions_matter:
        return _not_given(subject, check)
    ids, at = subject.text(), torch.arange(subject.length)[None]
    explain = [(f"the first position is {first}", Run(ids, at + first)) for first in (-1, 1, 2)]
    result = compare(subject, check, Run(ids, at), Run(ids), explain=explain, kind="other positions than 0, 1, 2")
    return replace(result, reason=f"given for the first: {subject.first}") if subject.first else result


def shifted_positions(subject: Subject, check: str) -> CheckResult:
    """All positions moved by the same amount change nothing, in a relative scheme."""
    if not subject.positions_matter:
        return _not_given(subject, check)
    ids, at = subject.text(), torch.arange(subject.length)[None]
    room = SHIFT if subject.n_positions is None else min(SHIFT, subject.n_positions - subject.length)
    result = compare(subject, check, Run(ids, at), Run(ids, at + room), kind=NOT_RELATIVE)
    if result.verdict == "holds" or subject.relative:
        return result
    return CheckResult(check, "does not apply", "absolute: a shift changes the logits", part=subject.part)


def memory_in_another_order(subject: Subject, check: str) -> CheckResult:
    """Tokens that stand in another order in memory, with their positions and their mask, give the same logits."""
    if not subject.positions_matter or subject.keeps_state:
        reason = "it keeps a state from token to token" if subject.keeps_state else NOT_GIVEN
        return CheckResult(check, "does not apply", reason, part=subject.part)
    n = subject.length
    order = torch.randperm(n, generator=torch.Generator().manual_seed(subject.seed))
    back, same = order.argsort().tolist(), torch.zeros(1, n, dtype=torch.long)
    ids, at = subject.text(), torch.arange(n)[None]
    seen = subject.visible(n)
    turned = seen[:, order][:, :, order]
    # With equal positions nothing but the order in memory can make a difference.
    by_index = compare(subject, check, Run(ids, same, seen), Run(ids[:, order], same, turned, keep=back))
    if by_index.verdict != "holds":
        return CheckResult(check, "does not apply", "order comes from the memory too, by design", part=subject.part)
    tried = Run(ids[:, order], at[:, order], turned, keep=back)
    return compare(subject, check, Run(ids, at, seen), tried, kind="positions are taken for rising by one")


def past_the_last(subject: Subject, check: str) -> CheckResult:
    """A position past the table's end is an error, and not another position in silence."""
    last = subject.n_positions
    if last is None:
        return CheckResult(check, "does not apply", "it has no table of positions", part=subject.part)
    n = subject.length
    ids, at = subject.text(), torch.arange(n)[None]

    def ending(position: int) -> Run:
        return Run(ids, torch.cat([at[:, :-1], torch.tensor([[position]])], 1), keep=[n - 1])

    try:
        if not subject.positions_matter:
            subject.logits(Run(subject.text(last + PAST)))
            return _past_in_a_text(subject, check)
        subject.logits(ending(last + PAST))
    except Exception as error:
        return CheckResult(check, "holds", f"refused: {type(error).__name__}", part=subject.part)
    if compare(subject, check, ending(2), ending(PAST + 2)).verdict != "broken":
        return CheckResult(check, "not decided", "the last token's position changes nothing", part=subject.part)
    for kind, same in (("wraps: the first positions again", PAST), ("cut: the last position again", last - 1)):
        right, tried = ending(same), ending(last + PAST)
        if compare(subject, check, right, tried).verdict == "holds":
            reason, shown = f"position {last + PAST} is taken for position {same}", script(subject, right, tried)
            return CheckResult(check, "broken", reason, subject.part, f"table {kind}", None, n - 1, shown)
    return CheckResult(check, "holds", "it computes what its table has not", part=subject.part)


def _past_in_a_text(subject: Subject, check: str) -> CheckResult:
    """The same where positions cannot be given: two words that stand at one position can be exchanged."""
    last = subject.n_positions or 0
    n = last + PAST
    ids = subject.text(n)
    pairs = {
        "": (1, 2),  # which must not be exchangeable, for the others to say something
        "table wraps: the first positions again": (1, last + 1),
        "table cut: the last position again": (n - 2, n - 1),
    }
    # A causal mask keeps exchanged words apart.
    for kind, (one, other) in pairs.items() if not subject.causal else ():
        order = torch.arange(n)
        order[[one, other]] = order[[other, one]]
        keep = [place for place in range(n) if place not in (one, other)]
        result = compare(subject, check, Run(ids, keep=keep), Run(ids[:, order], keep=keep))
        if not kind and result.verdict != "broken":  # order within the table is not seen either
            break
        if kind and result.verdict == "holds":
            return CheckResult(check, "broken", "words at two places can be exchanged", subject.part, kind)
    return CheckResult(check, "not decided", "a longer text is no error, and positions cannot be given", subject.part)


def _not_given(subject: Subject, check: str) -> CheckResult:
    return CheckResult(check, "does not apply", NOT_GIVEN, part=subject.part)


NOT_GIVEN = "no positions can be given to it, or they change nothing"
NOT_RELATIVE = "angles are rounded, or do not fit the columns that they turn: bfloat16, or two layouts of RoPE"
