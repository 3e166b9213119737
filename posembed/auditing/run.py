"""The audit: every check on a copy of a model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ..equivariance import TOLERANCES
from ..errors import AuditError, PosembedError
from ..inference import eval_mode
from ..progress import one_line
from ..public import Count, Seed, public
from .checks import CHECKS
from .models import is_of_transformers, own_subject, subjects_of_transformers
from .report import AuditReport, CheckResult
from .subject import NotTakenError, Run, Subject

# Numbers of a model, which is copied in float64: 8 GiB.
LARGEST = 2**30
# Rounding differs from run to run; one comparison of two formats shows its size to within this factor.
MARGIN = 10.0
# The shortest table: a text of 11 tokens in pieces of 7, 1 and 3, with room behind it.
FEWEST_POSITIONS = 16


@public(AuditError)
def audit(
    model: Callable[..., Any],
    *,
    vocab_size: Count | None = None,
    causal: bool | None = None,
    n_positions: Count | None = None,
    window: Count | None = None,
    n_layers: Count = 1,
    relative: bool | None = None,
    pads_left: bool = True,
    seed: Seed = 0,
    progress: Callable[..., None] | None = None,
) -> AuditReport:
    """Check that a model handles its positions: padding, packing, a cache, shifts, windows, half precision.

    Each check is an identity on random ids, in float64 where the model computes in it: two ways to give the same text
    must give the same logits. Two runs count as equal when they differ by no more than ten times what float32 and
    float64 do, which is the rounding of this model with all that its layers make of it; and only where exchanging words
    moves the logits by ten times that again. What lies between is "not decided".

    Args:
        model: of transformers (causal, masked, or an encoder with a decoder); a `posembed.Transformer`; or a function
            or module of your own that takes ``ids``, "batch seq", and what it can of ``positions``, "batch seq",
            ``mask``, True where a key may be seen, "batch key" or "batch query key", and ``cache``. It returns logits
            or hidden states, "batch seq n"; one that takes ``cache`` returns them and its cache, and is first given
            None. Checks of what it does not take do not apply. A module is copied, a function is called as it is.
        vocab_size: of your own model: how many ids it knows. Id 0 is used for padding.
        causal: of your own: whether a token must not see later ones; by default it is measured and not checked.
        n_positions: of your own: the length of its table; None without one.
        window: of your own: how many keys a layer sees, the token's own among them; None for all.
        n_layers: of your own: the number of layers that have the window.
        relative: of your own: True where a shift of all positions must change nothing, as of RoPE.
        pads_left: of your own: False where padding only ever stands behind a text.
        seed: of the ids.
        progress: called with what is being done and how many steps are done.

    Returns:
        A verdict for each check; printed, it is a table. ``passed`` is true where nothing is broken.

    Raises:
        AuditError: a model that draws at random, that gives no numbers for each token, that is too large to copy, or
            that does not run on ids alone.

    Example:
        >>> import posembed
        >>> model = posembed.Transformer(posembed.TransformerConfig(50, n_layers=2, scheme="rope", weight_std=0.2))
        >>> report = posembed.audit(model)
        >>> report.passed, [each.verdict for each in report.checks if each.check == "shifted positions"]
        (True, ['holds'])
    """
    settings = {"vocab_size": vocab_size, "causal": causal, "n_positions": n_positions, "window": window}
    settings |= {"n_layers": n_layers, "relative": relative, "pads_left": pads_left}
    results: list[CheckResult] = []
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        subjects = prepared(model, settings, seed)
        steps = [(subject, name, check) for subject in subjects for name, check in CHECKS.items()]
        for done, (subject, name, check) in enumerate(steps, 1):
            if progress is not None:
                progress(f"{subject.part or 'the model'}: {name}", done)
            with eval_mode(subject.whole):
                results.append(_checked(subject, name, check))
    name = getattr(model, "__name__", type(model).__name__)
    return AuditReport(name, tuple(results))


def prepared(model: Any, settings: dict[str, Any], seed: int) -> list[Subject]:
    """The model, or its encoder and decoder, in the widest format, with its rounding and what order does to it."""
    if not isinstance(model, nn.Module):
        subject = own_subject(model, settings)
        subject.seed = seed
        _measure(subject, None)
        return [subject]
    narrow = _copy(model).float()
    make = subjects_of_transformers if is_of_transformers(model) else lambda each: [own_subject(each, settings)]
    subjects = _seeded(make(narrow), seed)
    with eval_mode(narrow):
        rounded = [_reference(each) for each in subjects]
        for subject in subjects:
            _measure(subject, None)
    try:
        wide = copy.deepcopy(narrow).double()
        widened = _seeded(make(wide), seed)
        with eval_mode(wide):
            for subject, before, logits in zip(widened, subjects, rounded, strict=True):
                _measure(subject, logits)
                subject.narrow = before
    except (RuntimeError, TypeError, ValueError):  # some kernels have no float64
        return subjects
    return widened


def _copy(model: nn.Module) -> nn.Module:
    held = [*model.parameters(), *model.buffers()]
    if any(each.is_meta for each in held):
        raise AuditError("the model is on the meta device, which holds no numbers; load its weights")
    if sum(each.numel() for each in held) > LARGEST:
        raise AuditError("the model is too large for a copy in float64; audit one of its class with fewer layers")
    try:
        return copy.deepcopy(model).cpu()
    except Exception as error:
        raise AuditError(f"the model cannot be copied: {one_line(error)}") from error


def _seeded(subjects: list[Subject], seed: int) -> list[Subject]:
    for subject in subjects:
        subject.seed = seed
    return subjects


def _reference(subject: Subject) -> Tensor:
    if subject.n_positions is not None and subject.n_positions < FEWEST_POSITIONS:
        raise AuditError(f"the model has {subject.n_positions} positions; give one of at least {FEWEST_POSITIONS}")
    try:
        return subject.logits(Run(subject.text()))
    except PosembedError:
        raise
    except Exception as error:
        raise AuditError(f"the model does not run on ids alone: {type(error).__name__}: {one_line(error)}") from error


def _measure(subject: Subject, rounded: Tensor | None) -> None:
    """Find the tolerance, what order does, and whether positions can be given."""
    with torch.no_grad():
        whole = _reference(subject)
        subject.scale = float(whole.abs().max()) or 1.0
        dtype = next((each.dtype for each in subject.whole.parameters()), torch.float32) if subject.whole else None
        least = TOLERANCES[dtype or torch.float32] * subject.scale
        subject.tolerance = max(least, 0.0 if rounded is None else MARGIN * float((rounded - whole).abs().max()))
        if not bool((_reference(subject) - whole).abs().max() <= subject.tolerance):
            raise AuditError("the same ids give two different outputs, or NaN: the model draws, or keeps a state")
        subject.signal = _signal(subject, whole)
        if subject.causal is None:
            subject.causal = not _sees_the_future(subject, whole)
        subject.first, subject.positions_matter = _positions(subject, whole)


def _signal(subject: Subject, whole: Tensor) -> float:
    """What exchanging earlier words does to the last token; where nothing, what other words do."""
    ids, other = subject.text(), subject.text(name="other text")
    turned = torch.cat([ids[:, :-1].flip(1), ids[:, -1:]], 1)
    moved = float((subject.logits(Run(turned)) - whole)[:, -1].abs().max())
    if moved > subject.tolerance:
        return moved
    return float((subject.logits(Run(torch.cat([other[:, :-1], ids[:, -1:]], 1))) - whole)[:, -1].abs().max())


def _sees_the_future(subject: Subject, whole: Tensor) -> bool:
    ids, other = subject.text(), subject.text(name="other text")
    changed = subject.logits(Run(torch.cat([ids[:, :-1], other[:, -1:]], 1)))
    return bool((changed - whole)[:, :-1].abs().max() > subject.tolerance)


def _positions(subject: Subject, whole: Tensor) -> tuple[int, bool]:
    """The position id of the first token, and whether positions that are given matter."""
    ids = subject.text()
    n = ids.shape[1]
    # Of transformers' models some count from the padding id on, and are given rows of a table for positions.
    offsets = [0, *_table_offset(subject), 1, 2, subject.pad_id + 1] if subject.of_transformers else [0]
    try:
        for subject.first in offsets:
            given = subject.logits(Run(ids, torch.arange(n)[None]))
            if float((given - whole).abs().max()) <= subject.tolerance:
                break
        else:
            subject.first = 0
        # Further apart, for relative schemes, and further on.
        apart = torch.arange(1, n + 1)[None].clone()
        apart[:, n // 2 :] += 3
        moved = subject.logits(Run(ids, apart)) - subject.logits(Run(ids, torch.arange(n)[None]))
    except Exception:  # positions of three axes, of another kind, or none: they cannot be given
        return 0, False
    return subject.first, bool(moved.abs().max() > subject.tolerance)


def _table_offset(subject: Subject) -> list[int]:
    from ..tables import find_position_rows

    try:
        return [find_position_rows(subject.whole, part=subject.part or None).offset]  # type: ignore[arg-type]
    except PosembedError:
        return []


def _checked(subject: Subject, name: str, check: Callable[..., CheckResult]) -> CheckResult:
    told: dict[str, Any] = {"check": name, "part": subject.part}
    try:
        result = check(subject, name)
    except NotTakenError as error:
        return CheckResult(verdict="does not apply", reason=str(error), **told)
    except Exception as error:
        reason = f"it raised {type(error).__name__}: {one_line(error):.120}"
        return CheckResult(verdict="not decided", reason=reason, **told)
    if result.verdict != "broken" or subject.narrow is None:
        return result
    # Some models have no right mask in float64, which nobody uses: what is broken must be so in float32.
    with eval_mode(subject.narrow.whole):
        again = _checked(subject.narrow, name, check)
    if again.verdict in ("holds", "does not apply"):
        return replace(again, reason="; ".join(filter(None, (again.reason, "in float32: in float64 it is broken"))))
    return result
