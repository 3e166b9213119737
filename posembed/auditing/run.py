"""The audit: every check on a copy of a model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from ..equivariance import TOLERANCES
from ..errors import AuditError, shown
from ..progress import one_line
from ..public import Count, Seed, public
from . import identities, limits  # noqa: F401  (they enter the checks, in this order)
from .checking import CHECKS, checked
from .models import subjects_of
from .report import AuditReport
from .subject import Run, Subject

# Numbers of a model, which is copied in float64: 8 GiB.
LARGEST = 2**30
# Rounding differs from run to run; one comparison of two formats shows its size to within this factor.
MARGIN = 10.0
# The shortest table: a text of 11 tokens in pieces of 7, 1 and 3, with room behind it.
FEWEST_POSITIONS = 16


@public(AuditError)
def audit(
    model: Any,
    *,
    vocab_size: Count | None = None,
    causal: bool | None = None,
    n_positions: Count | None = None,
    window: Count | None = None,
    n_layers: Count = 1,
    relative: bool | None = None,
    pads_left: bool = True,
    make: Callable[[], nn.Module] | None = None,
    exported: bool = False,
    seed: Seed = 0,
    progress: Callable[[str, int], object] = lambda doing, done: None,
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
        vocab_size: of your own model, as what follows: how many ids it knows. Id 0 is used for padding.
        causal: of your own: whether a token must not see later ones; by default it is measured and not checked.
        n_positions: of your own: the length of its table; None without one.
        window: of your own: how many keys a layer sees, the token's own among them; None for all.
        n_layers: of your own: the number of layers that have the window.
        relative: of your own: True where a shift of all positions must change nothing, as of RoPE.
        pads_left: of your own: False where padding only ever stands behind a text.
        make: a function that makes another model of the same kind. What it makes on the meta device is given the
            weights, as large models are loaded: what is computed when a model is made, and not saved, is then lost.
        exported: export the model as well, by ``torch.export``, and run it at another length, which is slow.
        seed: of the ids.
        progress: called with what is being done and how many steps are done.

    Returns:
        A verdict for each check; printed, it is a table. ``passed``: something holds and nothing is broken.

    Raises:
        AuditError: a model that draws at random, that gives no numbers for each token, that is the same for all ids,
            that is too large to copy, or that does not run on ids alone.

    Example:
        >>> import posembed
        >>> model = posembed.Transformer(posembed.TransformerConfig(50, n_layers=2, scheme="rope", weight_std=0.2))
        >>> report = posembed.audit(model)
        >>> report.passed, [each.verdict for each in report.checks if each.check == "shifted positions"]
        (True, ['holds'])
    """
    if not callable(model):
        raise AuditError(
            f"model is {shown(model)}; give the model itself, as AutoModelForCausalLM.from_pretrained loads it, or on "
            "the command line its name: posembed audit gpt2"
        )
    known: dict[str, Any] = {
        "vocab_size": vocab_size,
        "causal": causal,
        "n_positions": n_positions,
        "window": window,
        "n_layers": n_layers,
        "relative": relative,
        "pads_left": pads_left,
    }
    asked: dict[str, Any] = {"make": make, "exported": exported}
    names = [name for name, (needs, _) in CHECKS.items() if all(asked.get(need, True) for need in needs)]
    results = []
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        for done, (subject, name) in enumerate(product(_prepared(model, known, asked, seed), names), 1):
            progress(f"{subject.part or 'the model'}: {name}", done)
            results.append(checked(subject, name))
    return AuditReport(getattr(model, "__name__", type(model).__name__), tuple(results))


def _prepared(model: Any, known: dict[str, Any], asked: dict[str, Any], seed: int) -> list[Subject]:
    """The model, or its encoder and decoder, in the widest format, with its rounding and what order does to it."""
    numbers = [*model.parameters(), *model.buffers()] if isinstance(model, nn.Module) else []
    if sum(each.numel() for each in numbers) > LARGEST:
        raise AuditError("the model is too large for a copy in float64; audit one of its class with fewer layers")
    if any(each.is_meta for each in numbers):
        raise AuditError("the model is on the meta device, which holds no numbers; load its weights")
    held = copy.deepcopy(model).cpu().float().eval() if isinstance(model, nn.Module) else model
    narrow = [replace(each, **asked) for each in subjects_of(held, known, seed)]
    rounded = [_measure(each) for each in narrow]
    with suppress(RuntimeError, TypeError, ValueError):  # some kernels have no float64
        if numbers:
            whole = copy.deepcopy(narrow[0].whole).double()
            wide = [replace(each, whole=whole, dtype=torch.float64, narrow=each) for each in narrow]
            for each, logits in zip(wide, rounded, strict=True):
                _measure(each, logits)
            return wide
    return narrow


def _measure(s: Subject, rounded: Tensor | None = None) -> Tensor:
    """Find the tolerance, what order does, and whether positions can be given; return the logits of a text."""
    if s.n_positions is not None and s.n_positions < FEWEST_POSITIONS:
        raise AuditError(f"the model has {s.n_positions} positions; give one of at least {FEWEST_POSITIONS}")
    ids, whole, other = s.text(), Run(s.text()), s.text(name="other text", unlike=s.text())
    try:
        logits = s.logits(whole)
    except Exception as error:
        raise AuditError(f"the model does not run on ids alone: {type(error).__name__}: {one_line(error)}") from error
    s.scale = float(logits.abs().max()) or 1.0
    rounding = 0.0 if rounded is None else MARGIN * float((rounded - logits).abs().max())
    s.tolerance = max(TOLERANCES[s.dtype] * s.scale, rounding)
    if not s.agree(whole, whole):
        raise AuditError("the same ids give two different outputs, or NaN: the model draws, or keeps a state")
    changed = s.logits(Run(other))  # of some speech models the length goes by the words
    if changed.shape == logits.shape and float((changed - logits).abs().max()) <= s.tolerance:
        raise AuditError("other ids give the same output: the model does not read them, or its last layer is zero")
    # What exchanging earlier words does to the last token; where nothing, what other words do.
    earlier = (ids[:, :-1].flip(1), other[:, :-1])
    moved = (float(s.moved(whole, Run(torch.cat([each, ids[:, -1:]], 1)))[-1]) for each in earlier)
    s.signal = next((each for each in moved if each > s.tolerance), 0.0)
    if s.causal is None:
        ending = torch.cat([ids[:, :-1], other[:, -1:]], 1)
        s.causal = bool(s.moved(whole, Run(ending))[:-1].max() <= s.tolerance)
    # Some of transformers count from the padding id on, and are given rows of a table for positions.
    offsets = [0, s.table.offset if s.table else 0, 1, 2, s.pad_id + 1] if s.of_transformers else [0]
    # Further apart, for relative schemes, and further on.
    at, later = Run(ids, s.at()), Run(ids, s.at() + 1 + 3 * (s.at() >= s.length // 2))
    with suppress(Exception):  # positions of three axes, of another kind, or none: they cannot be given
        s.first = next((first for first in offsets if replace(s, first=first).agree(at, whole)), 0)
        s.positions_matter = not s.agree(later, at)
    return logits
