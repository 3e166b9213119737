"""The audit: every check on a copy of a model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from ..equivariance import TOLERANCES
from ..errors import AuditError, PosembedError
from ..inference import eval_mode
from ..progress import one_line
from ..public import Count, Seed, public
from .checks import CHECKS
from .models import subjects_of
from .report import AuditReport, CheckResult
from .subject import DoesNotApplyError, Run, Subject, UndecidedError

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
    known: dict[str, Any] = {"vocab_size": vocab_size, "causal": causal, "n_positions": n_positions, "window": window}
    known |= {"n_layers": n_layers, "relative": relative, "pads_left": pads_left}
    results: list[CheckResult] = []
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        subjects = prepared(model, known, seed)
        for done, (subject, name) in enumerate(product(subjects, CHECKS), 1):
            if progress is not None:
                progress(f"{subject.part or 'the model'}: {name}", done)
            results.append(_checked(subject, name))
    return AuditReport(getattr(model, "__name__", type(model).__name__), tuple(results))


def prepared(model: Any, known: dict[str, Any], seed: int) -> list[Subject]:
    """The model, or its encoder and decoder, in the widest format, with its rounding and what order does to it."""
    held = _copy(model) if isinstance(model, nn.Module) else model
    subjects = subjects_of(held, known, seed)
    rounded = [_measure(each) for each in subjects]
    if not isinstance(model, nn.Module):
        return subjects
    try:
        wide: Any = copy.deepcopy(subjects[0].whole).double()  # type: ignore[union-attr]
        widened = [replace(each.of(wide), narrow=each) for each in subjects]
        for each, before in zip(widened, rounded, strict=True):
            _measure(each, before)
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
        return copy.deepcopy(model).cpu().float()
    except Exception as error:
        raise AuditError(f"the model cannot be copied: {one_line(error)}") from error


def _measure(subject: Subject, rounded: Tensor | None = None) -> Tensor:
    """Find the tolerance, what order does, and whether positions can be given; return the logits of a text."""
    if subject.n_positions is not None and subject.n_positions < FEWEST_POSITIONS:
        raise AuditError(f"the model has {subject.n_positions} positions; give one of at least {FEWEST_POSITIONS}")
    ids, other = subject.text(), subject.text(name="other text")
    with eval_mode(subject.whole), torch.no_grad():
        try:
            logits = subject.logits(Run(ids))
        except PosembedError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {one_line(error)}"
            raise AuditError(f"the model does not run on ids alone: {reason}") from error
        subject.scale = float(logits.abs().max()) or 1.0
        numbers = [each.dtype for each in subject.whole.parameters()] if subject.whole is not None else []
        least = TOLERANCES[numbers[0] if numbers else torch.float32] * subject.scale
        subject.tolerance = max(least, 0.0 if rounded is None else MARGIN * float((rounded - logits).abs().max()))
        if not subject.agree(Run(ids), Run(ids)):
            raise AuditError("the same ids give two different outputs, or NaN: the model draws, or keeps a state")
        # What exchanging earlier words does to the last token; where nothing, what other words do.
        turned, replaced = (torch.cat([each, ids[:, -1:]], 1) for each in (ids[:, :-1].flip(1), other[:, :-1]))
        moved = (float(subject.moved(Run(ids), Run(each))[-1]) for each in (turned, replaced))
        subject.signal = next((each for each in moved if each > subject.tolerance), 0.0)
        if subject.causal is None:
            ending = torch.cat([ids[:, :-1], other[:, -1:]], 1)
            subject.causal = bool(subject.moved(Run(ids), Run(ending))[:-1].max() <= subject.tolerance)
        subject.first, subject.positions_matter = _positions(subject, ids)
    return logits


def _positions(subject: Subject, ids: Tensor) -> tuple[int, bool]:
    """The position id of the first token, and whether positions that are given matter."""
    at = torch.arange(ids.shape[1])[None]
    offsets = [0]
    if subject.of_transformers:  # some count from the padding id on, and are given rows of a table for positions
        offsets += [subject.table.offset if subject.table is not None else 0, 1, 2, subject.pad_id + 1]
    # Further apart, for relative schemes, and further on.
    apart = at + 1 + 3 * (at >= ids.shape[1] // 2)
    try:
        for subject.first in [*offsets, 0]:
            if subject.agree(Run(ids, at), Run(ids)):
                break
        return subject.first, not subject.agree(Run(ids, apart), Run(ids, at))
    except Exception:  # positions of three axes, of another kind, or none: they cannot be given
        return 0, False


def _checked(subject: Subject, name: str) -> CheckResult:
    with eval_mode(subject.whole), torch.no_grad():
        try:
            result = CHECKS[name](subject)
        except DoesNotApplyError as error:
            result = CheckResult(name, "does not apply", str(error))
        except UndecidedError as error:
            result = CheckResult(name, "not decided", str(error))
        except Exception as error:
            result = CheckResult(name, "not decided", f"it raised {type(error).__name__}: {one_line(error):.120}")
    if result.verdict == "broken" and subject.narrow is not None:
        # Some models have no right mask in float64, which nobody uses: what is broken must be so in float32.
        again = _checked(subject.narrow, name)
        if again.verdict in ("holds", "does not apply"):
            reason = "; ".join(filter(None, (again.reason, "in float32: in float64 it is broken")))
            result = replace(again, reason=reason)
    return replace(result, check=name, part=subject.part)
