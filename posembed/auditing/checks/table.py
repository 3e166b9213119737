"""A table of positions: which of its rows are read, and where the first token's is."""

from __future__ import annotations

import torch

from ...tables import PositionRows
from ..comparison import broken, holds
from ..report import CheckResult
from ..subject import DoesNotApplyError, Run, Subject, UndecidedError

LONGEST = 1024


def rows_with_gradient(subject: Subject) -> CheckResult:
    """A text as long as the table reaches all of its rows."""
    found = _table(subject)
    if len(found.rows) > LONGEST:
        raise UndecidedError(f"{len(found.rows)} rows are too many for one text")
    reached = _reached(subject, found, len(found.rows))
    missed = sorted({*range(len(found.rows))} - {row - found.offset for row in reached})
    reason = f"{len(missed)} of {len(found.rows)} rows of {found.name} get no gradient"
    if not missed:
        return holds(reason)
    return broken("rows that no position reads", f"{reason}, first {missed[0]}", position=missed[0])


def table_offset(subject: Subject) -> CheckResult:
    """The first token reads the row where positions begin."""
    found = _table(subject)
    reached = _reached(subject, found, 5)[:5]
    reason = f"the first token reads row {reached[0]} of {found.name}; positions begin at row {found.offset}"
    # A decoder that foretells several tokens reads further rows.
    if reached == [*range(found.offset, found.offset + 5)]:
        return holds(reason)
    ignored = reached[0] < found.offset
    return broken("the offset of the table is ignored" if ignored else "rows are skipped", reason, position=0)


def _table(subject: Subject) -> PositionRows:
    if (found := subject.table) is None:
        raise DoesNotApplyError("it has no table of positions that is known")
    return found


def _reached(subject: Subject, found: PositionRows, n_tokens: int) -> list[int]:
    """The rows of the table that a text's logits depend on."""
    table = found.parameter
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
    if gradient is None or not gradient.any():
        raise DoesNotApplyError(f"{found.name} is not read")
    axis = 0 if table.ndim == 2 or table.shape[0] != 1 else 1
    return gradient.movedim(axis, 0).flatten(1).abs().sum(1).nonzero()[:, 0].tolist()
