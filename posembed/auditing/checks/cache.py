"""A text in pieces, with a cache."""

from __future__ import annotations

from dataclasses import replace

import torch

from ..comparison import compare
from ..report import CheckResult
from ..subject import DoesNotApplyError, Run, Subject

WRONG = "a cache and the whole text disagree: do positions go on behind it, and does the mask end at the last key?"
LATER = "one token at a time behind a first piece is right, several are not: where does the mask of a piece begin?"
ANY = "one token at a time is right, several are not: has a piece a causal mask of its own?"


def pieces(subject: Subject) -> CheckResult:
    """Pieces of 7, 1 and 5 tokens with a cache give what the whole text gives."""
    if not subject.causal:
        raise DoesNotApplyError("it is not causal")
    subject.name_of("cache")
    ids, n = subject.text(), subject.length
    parts = (7, 1, n - 8)
    result = compare(subject, Run(ids), Run(ids, pieces=parts), WRONG, _faults(subject, parts))
    if result.kind != WRONG:
        return result
    for shorter, kind in (((7, *[1] * (n - 7)), LATER), ((1,) * n, ANY)):
        if subject.agree(Run(ids), Run(ids, pieces=shorter)):
            if subject.keeps_state:
                raise DoesNotApplyError("it keeps a state, and goes on token by token")
            return replace(result, kind=kind)
    return result


def _faults(subject: Subject, parts: tuple[int, ...]) -> list[tuple[str, Run]]:
    """What else pieces may have been given, as runs of the whole text."""
    ids, at = subject.text(), torch.arange(subject.length)
    behind = (at >= parts[0]).long()
    causal = at[:, None] >= at
    anew = torch.cat([torch.arange(length) for length in parts])
    block = torch.repeat_interleave(torch.arange(len(parts)), torch.tensor(parts))
    later = block[:, None] >= block
    alone = block[:, None] == block
    return [
        ("positions begin anew in each piece", Run(ids, anew[None])),
        ("positions are one too high behind a cache", Run(ids, (at + behind)[None])),
        ("positions are one too low behind a cache", Run(ids, (at - behind)[None])),
        ("a piece sees its own later tokens", Run(ids, mask=later[None])),
        (
            "a piece behind a cache sees its own later tokens",
            Run(ids, mask=(later & (behind[:, None].bool() | causal))[None]),
        ),
        ("a piece does not see the cache", Run(ids, anew[None], (alone & causal)[None])),
    ]
