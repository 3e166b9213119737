"""Two runs that should give the same logits: do they, and what does it look like where they do not?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from .report import CheckResult
from .subject import Run, Subject

# A difference below this share of what order does is neither rounding nor surely a fault.
SURELY = 1e-3
# Rounding must be this much smaller than what order does, for an absence of differences to say something.
AUDIBLE = 10.0


def compare(
    subject: Subject,
    check: str,
    right: Run,
    tried: Run,
    *,
    kind: str = "",
    explain: Iterable[tuple[str, Run]] = (),
) -> CheckResult:
    """Compare two runs.

    Args:
        subject: the model.
        check: the name of the check.
        right: what the logits should be.
        tried: what is checked.
        kind: of a fault, where no explanation fits.
        explain: faults, and for each the run whose logits a model with this fault would give for `tried`.
    """
    expected, found = subject.logits(right), subject.logits(tried)
    result = judge(subject, check, expected, found, kept=right.keep)
    if result.verdict != "broken":
        return result
    kinds = [name for name, run in explain if _gives(subject, run, found)]
    return CheckResult(**vars(result) | {"kind": kinds[0] if kinds else kind, "script": script(subject, right, tried)})


def judge(
    subject: Subject,
    check: str,
    expected: Float[Tensor, "batch seq n"],
    found: Float[Tensor, "batch seq n"],
    *,
    kept: Sequence[int] | None = None,
) -> CheckResult:
    """Say whether two outputs are the same, by the rounding of this model and by what order does to it."""
    apart = (expected - found).abs().amax(-1).amax(0).nan_to_num(math.inf)
    error, tolerance, signal = float(apart.max()), subject.tolerance, subject.signal
    told: dict[str, Any] = {"check": check, "part": subject.part, "error": error / subject.scale}
    if error <= tolerance and signal > AUDIBLE * tolerance:
        return CheckResult(verdict="holds", **told)
    if error <= tolerance:
        return CheckResult(verdict="not decided", reason="order moves the logits no more than rounding does", **told)
    if error < SURELY * signal:
        share = f"{error / signal:.0e} of what order does"
        return CheckResult(verdict="not decided", reason=f"rounding, or a small fault: {share}", **told)
    place = int((apart > max(tolerance, SURELY * signal)).nonzero()[0])
    return CheckResult(verdict="broken", position=place if kept is None else kept[place], **told)


def _gives(subject: Subject, run: Run, found: Tensor) -> bool:
    """Whether a run gives these logits."""
    try:
        return bool((subject.logits(run) - found).abs().max() <= subject.tolerance)
    except Exception:  # what the model does not take explains nothing
        return False


def script(subject: Subject, right: Run, tried: Run, compared: str = "b") -> str:
    """Write a program of under twelve lines that makes the same comparison without this package."""
    lines = ["import torch", *subject.code, "torch.set_grad_enabled(False)"]
    lines += [*_calls(subject, right, "a"), *_calls(subject, tried, "b"), f"print((a - {compared}).abs().max())"]
    return "\n".join(lines)


def _calls(subject: Subject, run: Run, name: str) -> list[str]:
    """Lines that run the model and keep the same tokens."""
    attribute = ".logits" if subject.of_transformers and subject.part != "encoder" else ""
    attribute = ".last_hidden_state" if subject.part == "encoder" else attribute
    attribute = "[0]" if not subject.of_transformers and "cache" in subject.names else attribute
    keep = "" if run.keep is None else f"[:, {list(run.keep)}]"
    steps = subject.steps(run)
    fixed = [f"{key}={_written(value)}" for key, value in subject.fixed.items()]
    written = [", ".join([f"{key}={_written(value)}" for key, value in step.items()] + fixed) for step in steps]
    if not run.pieces:
        return [f"{name} = model({written[0]}){attribute}{keep}"]
    cache = subject.names["cache"]
    if not subject.of_transformers:
        lines = [f"out{i}, kept = model({w}, {cache}={'kept' if i else None})" for i, w in enumerate(written)]
        return [*lines, f"{name} = torch.cat([{', '.join(f'out{i}' for i in range(len(lines)))}], 1){keep}"]
    lines = [
        f"out{i} = model({w}, use_cache=True" + (f", {cache}=out{i - 1}.{cache})" if i else ")")
        for i, w in enumerate(written)
    ]
    parts = ", ".join(f"out{i}{attribute}" for i in range(len(lines)))
    return [*lines, f"{name} = torch.cat([{parts}], 1){keep}"]


def _written(value: Tensor) -> str:
    if value.is_floating_point():  # a mask of four axes
        return f"torch.tensor({(value == 0).int().tolist()}).double().log().clamp(min=-1e30)"
    if value.dtype == torch.bool:
        return f"torch.tensor({value.int().tolist()}).bool()"
    return f"torch.tensor({value.tolist()})"
