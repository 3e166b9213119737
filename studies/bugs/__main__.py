"""Ask all bugs: ``python -m studies.bugs``."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import torch

from posembed import audit
from posembed.auditing.checks import CHECKS

from . import Bug, first, later
from .properties import NAMES, failing
from .reference import N_LAYERS, ROWS, VOCABULARY, Reference, settings

PATH = Path(__file__).parents[2] / "results" / "bugs.json"


def differs(bug: Bug) -> bool:
    """Whether the bug changes any logit: of a whole text, in pieces, padded, packed, or far out."""
    return max(_furthest(one, other) for one, other in zip(_logits(bug.model()), _logits(bug.right()), strict=True)) > 1e-3


def asked(bug: Bug, part: str) -> dict[str, Any]:
    """What finds one bug."""
    model = bug.model()
    broken = audit(model, **settings(model)).broken  # type: ignore[arg-type]
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
    parts = {"first": first.bug, "later": later.bug}
    return {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "torch": torch.__version__,
        "checks": [*CHECKS],
        "properties": NAMES,
        "bugs": [asked(bug, part) for part, bugs in parts.items() for bug in bugs],
    }


def _furthest(one: Any, other: Any) -> float:
    if one is None or other is None:
        return float("inf") * (one is not other) if one is not other else 0.0
    return float((one - other).abs().max())


def _logits(model: Reference) -> list[Any]:
    ids = torch.randint(VOCABULARY, (2, 40), generator=torch.Generator().manual_seed(1))
    mask = torch.ones(2, 40, dtype=torch.bool)
    mask[1, :7] = False
    text = torch.tensor([0, 1]).repeat_interleave(20)
    packed = (text[:, None] == text) & (torch.arange(40)[:, None] >= torch.arange(40))
    at = torch.arange(40).expand(2, -1)
    calls: list[dict[str, Any]] = [
        {},
        {"mask": mask},
        {"positions": (torch.arange(40) % 20).expand(2, -1), "mask": packed.expand(2, -1, -1)},
        {"positions": at.flip(1)},
        {"positions": at + (ROWS - 40 if model.scheme == "table" else 2000)},
        {"positions": at + ROWS},
    ]
    found: list[Any] = []
    with torch.no_grad():
        for call in calls:
            try:
                found.append(model(ids, **call)[0][1, 7:])
            except IndexError:
                found.append(None)
        cache, pieces = None, []
        for piece in ids.split([17, 1, 22], 1):
            logits, cache = model(piece, cache=cache)
            pieces.append(logits)
    assert cache is not None and len(cache) == N_LAYERS
    return [*found, torch.cat(pieces, 1)]


if __name__ == "__main__":
    PATH.write_text(json.dumps(matrix(), indent=1) + "\n", encoding="utf-8")
