"""A text in pieces, with a cache."""

from __future__ import annotations

from dataclasses import replace

import torch

from ..comparison import compare
from ..report import CheckResult
from ..subject import Run, Subject


def pieces(subject: Subject, check: str) -> CheckResult:
    """Pieces of 7, 1 and 5 tokens with a cache give what the whole text gives."""
    if not subject.causal:
        return CheckResult(check, "does not apply", "it is not causal", part=subject.part)
    if "cache" not in subject.names:
        return CheckResult(check, "does not apply", "it takes no cache", part=subject.part)
    ids, n = subject.text(), subject.length
    parts = (7, 1, n - 8)
    result = compare(subject, check, Run(ids), Run(ids, pieces=parts), explain=_faults(subject, parts), kind=WRONG)
    if result.verdict != "broken":
        return result
    if result.kind != WRONG:
        return result
    for shorter, kind in (((7, *[1] * (n - 7)), LATER), ((1,) * n, ANY)):
        if compare(subject, check, Run(ids), Run(ids, pieces=shorter)).verdict != "holds":
            continue
        if subject.keeps_state:
            reason = "it keeps a state, and goes on token by token"
            return CheckResult(check, "does not apply", reason, part=subject.part)
        return replace(result, kind=kind)
    return result


def _faults(subject: Subject, parts: tuple[int, ...]) -> list[tuple[str, Run]]:
    """What else pieces may have been given, as runs of the whole text."""
    ids, at = subject.text(), torch.arange(subject.length)
    first = at < parts[0]
    causal = at[:, None] >= at
    anew = torch.cat([torch.arange(length) for length in parts])
    block = torch.repeat_interleave(torch.arange(len(parts)), torch.tensor(parts))
    seen = block[None, :, None] >= block[None, None, :]
    alone = block[None, :, None] == block[None, None, :]
    return [
        ("positions begin anew in each piece", Run(ids, anew[None])),
        ("positions are one too high behind a cache", Run(ids, (at + (~first).long())[None])),
        ("positions are one too low behind a cache", Run(ids, (at - (~first).long())[None])),
        ("a piece sees its own later tokens", Run(ids, mask=seen)),
        ("a piece behind a cache sees its own later tokens", Run(ids, mask=seen & (~first[:, None] | causal)[None])),
        ("a piece does not see the cache", Run(ids, anew[None], mask=alone & causal[None])),
    ]


WRONG = "a cache and the whole text disagree: do positions go on behind it, and does the mask end at the last key?"
LATER = "one token at a time behind a first piece is right, several are not: where does the mask of a piece begin?"
ANY = "one token at a time is right, several are not: has a piece a causal mask of its own?"
