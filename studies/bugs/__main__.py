"""Ask all bugs: ``python -m studies.bugs``."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from posembed import audit

from . import Bug, first, later
from .properties import NAMES, failing
from .reference import ROWS, VOCABULARY, Reference, settings

# Of logits; float32 differs by less than a tenth of it.
DIFFERS = 1e-4
LENGTH, PADS = 40, 7
PATH = Path(__file__).parents[2] / "results" / "bugs.json"


def differs(bug: Bug) -> bool:
    """Whether the bug changes any logit: of a whole text, in pieces, padded, packed, or far out."""
    pairs = zip(_logits(bug.model()), _logits(bug.right()), strict=True)
    return max(_furthest(one, other) for one, other in pairs) > DIFFERS


def asked(bug: Bug, part: str) -> dict[str, Any]:
    """What finds one bug."""
    model = bug.model()
    broken = audit(model, **settings(model)).broken
    return {
        "report": bug.report,
        "wrong": bug.wrong,
        "scheme": model.scheme,
        "part": part,
        "broken": [each.check for each in broken],
        "kinds": [each.kind for each in broken],
        "failing": failing(bug.model(), bug.right()),
    }


def matrix() -> dict[str, Any]:
    """All bugs with all that finds them."""
    right = Reference()
    parts = {"first": first.bug, "later": later.bug}
    return {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "torch": torch.__version__,
        "checks": [each.check for each in audit(right, **settings(right)).checks],
        "properties": NAMES,
        "bugs": [asked(bug, part) for part, bugs in parts.items() for bug in bugs],
    }


def _furthest(one: Tensor | None, other: Tensor | None) -> float:
    if one is None or other is None:  # it was refused
        return 0.0 if one is other else float("inf")
    return float((one - other).abs().max())


def _logits(model: Reference) -> list[Tensor | None]:
    """The logits of a text behind padding, of one that is packed, far out, and in pieces; None of what is refused."""
    ids = torch.randint(VOCABULARY, (2, LENGTH), generator=torch.Generator().manual_seed(1))
    mask = torch.ones(2, LENGTH, dtype=torch.bool)
    mask[1, :PADS] = False
    at, text = torch.arange(LENGTH).expand(2, -1), torch.arange(LENGTH) // 20
    packed = ((text[:, None] == text) & (at[0][:, None] >= at[0])).expand(2, -1, -1)
    far = ROWS - LENGTH if model.scheme == "table" else 2000
    calls: list[tuple[list[int], dict[str, Tensor]]] = [
        ([LENGTH], {}),
        ([LENGTH], {"mask": mask}),
        ([LENGTH], {"positions": at % 20, "mask": packed}),
        ([LENGTH], {"positions": at.flip(1)}),
        ([LENGTH], {"positions": at + far}),
        ([LENGTH], {"positions": at + ROWS}),
        ([17, 1, 22], {}),
        ([17, 1, 22], {"mask": mask}),
    ]
    return [_given(model, ids, pieces, **call) for pieces, call in calls]


def _given(model: Reference, ids: Tensor, pieces: list[int], **given: Tensor) -> Tensor | None:
    cache, logits, stop = None, [], 0
    with torch.no_grad():
        for piece in ids.split(pieces, 1):
            stop += piece.shape[1]
            call = {name: each[:, :stop] if len(pieces) > 1 else each for name, each in given.items()}
            try:
                made, cache = model(piece, cache=cache, **call)
            except (IndexError, RuntimeError):
                return None
            logits.append(made)
    return torch.cat(logits, 1)[1, PADS:]


if __name__ == "__main__":
    PATH.write_text(json.dumps(matrix(), indent=1) + "\n", encoding="utf-8")
