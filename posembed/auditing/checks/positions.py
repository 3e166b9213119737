"""Positions that are given: as the default ones, shifted, out of order, past the last one."""

from __future__ import annotations

from dataclasses import replace

import torch

from ..comparison import broken, compare, holds
from ..report import CheckResult
from ..script import script
from ..subject import DoesNotApplyError, Run, Subject, UndecidedError

SHIFT = 17
# So far positions are given that should be the default ones.
LONG = 48
# How far past the last position.
PAST = 5
NOT_RELATIVE = "angles are rounded, or do not fit the columns that they turn: bfloat16, or two layouts of RoPE"


def explicit_positions(subject: Subject) -> CheckResult:
    """Positions from 0 on, given, are those that the model takes by itself."""
    subject.needs_positions()
    n = min(subject.n_positions or LONG, LONG)
    ids, at = subject.text(n), torch.arange(n)[None]
    explain = [(f"the first position is {first}", Run(ids, at + first)) for first in (-1, 1, 2)]
    result = compare(subject, Run(ids, at), Run(ids), "other positions than 0, 1, 2", explain)
    return replace(result, reason=f"given for the first: {subject.first}") if subject.first else result


def shifted_positions(subject: Subject) -> CheckResult:
    """All positions moved by the same amount change nothing, in a relative scheme."""
    subject.needs_positions()
    n = LONG if subject.n_positions is None else subject.length
    ids, at = subject.text(n), torch.arange(n)[None]
    room = SHIFT if subject.n_positions is None else min(SHIFT, subject.n_positions - n)
    if not subject.relative and not subject.agree(Run(ids, at), Run(ids, at + room)):
        raise DoesNotApplyError("absolute: a shift changes the logits")
    return compare(subject, Run(ids, at), Run(ids, at + room), NOT_RELATIVE)


def memory_in_another_order(subject: Subject) -> CheckResult:
    """Tokens that stand in another order in memory, with their positions and their mask, give the same logits."""
    subject.needs_positions()
    if subject.keeps_state:
        raise DoesNotApplyError("it keeps a state from token to token")
    order = torch.randperm(subject.length, generator=torch.Generator().manual_seed(subject.seed))
    ids, at, seen = subject.text(), torch.arange(subject.length)[None], subject.visible(subject.length)
    right = Run(ids, at, seen)
    tried = Run(ids[:, order], at[:, order], seen[:, order][:, :, order], keep=order.argsort().tolist())
    # With equal positions nothing but the order in memory can make a difference.
    same = torch.zeros_like(at)
    if not subject.agree(replace(right, positions=same), replace(tried, positions=same)):
        raise DoesNotApplyError("order comes from the memory too, by design")
    return compare(subject, right, tried, "positions are taken for rising by one")


def past_the_last(subject: Subject) -> CheckResult:
    """A position past the table's end is an error, and not another position in silence."""
    last = subject.n_positions
    if last is None:
        raise DoesNotApplyError("it has no table of positions")
    ids, at = subject.text(), torch.arange(subject.length)[None]

    def ending(position: int) -> Run:
        return Run(ids, torch.cat([at[:, :-1], torch.tensor([[position]])], 1), keep=[subject.length - 1])

    past = ending(last + PAST) if subject.positions_matter else Run(subject.text(last + PAST))
    try:
        subject.logits(past)
    except Exception as error:
        return holds(f"refused: {type(error).__name__}")
    if not subject.positions_matter:
        return _past_in_a_text(subject, last)
    if subject.agree(ending(2), ending(PAST + 2)):
        raise UndecidedError("the last token's position changes nothing")
    for kind, same in (("wraps: the first positions again", PAST), ("cut: the last position again", last - 1)):
        if subject.agree(ending(same), past):
            reason, shown = f"position {last + PAST} is taken for position {same}", script(subject, ending(same), past)
            return broken(f"table {kind}", reason, position=subject.length - 1, script=shown)
    return holds("it computes what its table has not")


def _past_in_a_text(subject: Subject, last: int) -> CheckResult:
    """The same where positions cannot be given: two words at one position can be exchanged, if no mask parts them."""
    ids = subject.text(last + PAST)

    def exchangeable(one: int, other: int) -> bool:
        order = torch.arange(last + PAST)
        order[[one, other]] = order[[other, one]]
        keep = [place for place in range(last + PAST) if place not in (one, other)]
        return subject.agree(Run(ids, keep=keep), Run(ids[:, order], keep=keep))

    if not subject.causal and not exchangeable(1, 2):
        for kind, other in (("wraps: the first positions again", 1), ("cut: the last position again", last)):
            if exchangeable(last + 1, other):
                return broken(f"table {kind}", "words at two places can be exchanged")
    raise UndecidedError("a longer text is no error, and positions cannot be given")
