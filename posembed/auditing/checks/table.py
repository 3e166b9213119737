"""A table of positions: which of its rows are read, and where the first token's is."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...errors import PositionTableError
from ...tables import PositionRows, find_position_rows
from ..report import CheckResult
from ..subject import Run, Subject

LONGEST = 1024


def rows_with_gradient(subject: Subject, check: str) -> CheckResult:
    """A text as long as the table reaches all of its rows."""
    found = _table(subject)
    told: dict[str, Any] = {"check": check, "part": subject.part}
    if found is None:
        return CheckResult(verdict="does not apply", reason="it has no table of positions that is known", **told)
    n = len(found.rows)
    if n > LONGEST:
        return CheckResult(verdict="not decided", reason=f"{n} rows are too many for one text", **told)
    reached = _reached(subject, found, n)
    if not reached:
        return CheckResult(verdict="does not apply", reason=f"{found.name} is not read", **told)
    missed = [row - found.offset for row in range(found.offset, found.offset + n) if row not in reached]
    reason = f"{len(missed)} of {n} rows of {found.name} get no gradient" + (f", first {missed[0]}" if missed else "")
    if not missed:
        return CheckResult(verdict="holds", reason=reason, **told)
    kind = "rows that no position reads"
    return CheckResult(verdict="broken", reason=reason, kind=kind, position=missed[0], **told)


def table_offset(subject: Subject, check: str) -> CheckResult:
    """The first token reads the row where positions begin."""
    found = _table(subject)
    told: dict[str, Any] = {"check": check, "part": subject.part}
    reached = _reached(subject, found, 5) if found is not None else []
    if found is None or not reached:
        return CheckResult(verdict="does not apply", reason="no table of positions is known, or none is read", **told)
    reason = f"the first token reads row {reached[0]} of {found.name}; positions begin at row {found.offset}"
    # A decoder that foretells several tokens reads further rows.
    if reached[:5] == [*range(found.offset, found.offset + 5)]:
        return CheckResult(verdict="holds", reason=reason, **told)
    kind = "the offset of the table is ignored" if reached[0] < found.offset else "rows are skipped"
    return CheckResult(verdict="broken", reason=reason, kind=kind, position=0, **told)


def _table(subject: Subject) -> PositionRows | None:
    if subject.whole is None:
        return None
    try:
        return find_position_rows(subject.whole, part=subject.part or None)
    except PositionTableError:
        return None


def _reached(subject: Subject, found: PositionRows, n_tokens: int) -> list[int]:
    """The rows of the table that a text's logits depend on."""
    table: Tensor = found.parameter
    before = table.requires_grad
    table.requires_grad_()
    try:
        with torch.enable_grad():
            logits = subject.logits(Run(subject.text(n_tokens)))
            # A sum would be constant behind a LayerNorm.
            weights = torch.randn(logits.shape, generator=torch.Generator().manual_seed(subject.seed)).double()
            (gradient,) = torch.autograd.grad((logits * weights).sum(), table, allow_unused=True)
    finally:
        table.requires_grad_(before)
    if gradient is None:
        return []
    axis = 0 if table.ndim == 2 or table.shape[0] != 1 else 1
    return gradient.movedim(axis, 0).flatten(1).abs().sum(1).nonzero()[:, 0].tolist()
