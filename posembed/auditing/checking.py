"""What a check asks, and the one place where it is decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..progress import one_line
from .report import CheckResult
from .subject import DoesNotApplyError, Run, Subject

# A difference below this share of what order does is neither rounding nor surely a fault.
SURELY = 1e-3
# Rounding must be this much smaller than what order does, for an absence of differences to say something.
AUDIBLE = 10.0
# What a check may need of a subject, and what is said where it is missing.
NEEDS = {
    "causal": "it is not causal",
    "exported": "say exported=True",
    "has_positions": "it is made without positions",
    "make": "say make=, a function that makes a model of this kind",
    "n_positions": "no table of positions is known of it; of a module of your own, say n_positions=",
    "positions_matter": "no positions can be given to it, or they change nothing",
    "stateless": "it keeps a state from token to token",
    "table": "it has no table of positions that is known",
    "window": "not every layer has one window, or none is known",
}


@dataclass(frozen=True)
class Same:
    """Two runs that must give the same logits.

    Attributes:
        right: what the logits should be.
        tried: what is checked.
        kind: of a fault, where nothing below fits.
        like: faults, and for each the run whose logits a model with this fault would give for `tried`.
        still: further faults, and for each a run that a model with this fault still gets right.
        excuse: why a difference of some kind is no fault; empty where it is one.
        again: a model made from the first one, to which `tried` is given, and the lines of a script that make it.
    """

    right: Run
    tried: Run
    kind: str
    like: Mapping[str, Run] = field(default_factory=dict)
    still: Mapping[str, Run] = field(default_factory=dict)
    excuse: Callable[[str], str] = lambda kind: ""
    again: tuple[Subject | None, tuple[str, ...]] = (None, ())


Ask = Callable[[Subject], Same | CheckResult | Sequence[Same | CheckResult]]
# By name, in the order of a report: what a check needs, and what it asks.
CHECKS: dict[str, tuple[tuple[str, ...], Ask]] = {}


def check(name: str, *needs: str) -> Callable[[Ask], None]:
    """Enter a function that says what must be the same, or what it found by itself."""

    def enter(ask: Ask) -> None:
        CHECKS[name] = needs, ask

    return enter


# The verdict of a check, whose name is entered later.
found = partial(CheckResult, "")


def checked(subject: Subject, name: str) -> CheckResult:
    """Ask one check: the first thing that does not hold decides, or else the last one."""
    try:
        for result in _verdicts(subject, name):
            if result.verdict != "holds":
                break
    except DoesNotApplyError as error:
        result = found("does not apply", str(error))
    except Exception as error:
        result = found("not decided", f"it raised {type(error).__name__}: {one_line(error):.120}")
    if result.verdict == "broken" and subject.narrow is not None:
        # Some models have no right mask in float64, which nobody uses: what is broken must be so in float32.
        again = checked(subject.narrow, name)
        if again.verdict in ("holds", "does not apply"):
            result = replace(again, reason=f"{again.reason}; in float32: in float64 it is broken".lstrip("; "))
    return replace(result, check=name, part=subject.part)


def _verdicts(subject: Subject, name: str) -> Iterator[CheckResult]:
    needs, ask = CHECKS[name]
    yield from (found("does not apply", NEEDS[each]) for each in needs if not getattr(subject, each))
    asked = ask(subject)
    for each in asked if isinstance(asked, Sequence) else [asked]:
        yield each if isinstance(each, CheckResult) else _compared(subject, each)


def _compared(subject: Subject, same: Same) -> CheckResult:
    moved = subject.moved(same.right, same.tried, same.again[0])
    error, signal, tolerance = float(moved.max()), subject.signal, subject.tolerance
    if error <= tolerance < signal / AUDIBLE:
        return found("holds", error=error / subject.scale)
    if error <= tolerance:
        return found("not decided", "order moves the logits no more than rounding does")
    kind = _kind(subject, same)
    if excuse := same.excuse(kind):
        return found("does not apply", excuse)
    if error < SURELY * signal:
        return found("not decided", f"rounding, or a small fault: {error / signal:.0e} of what order does")
    place = int((moved > max(tolerance, SURELY * signal)).nonzero()[0])
    place = place if same.right.keep is None else same.right.keep[place]
    shown = script(subject, same.right, same.tried, same.again[1])
    return found("broken", kind=kind, error=error / subject.scale, position=place, script=shown)


def _kind(subject: Subject, same: Same) -> str:
    """The fault that it looks like."""
    tries = [(kind, run, same.tried) for kind, run in same.like.items()]
    for kind, run, given in [*tries, *((kind, run, same.right) for kind, run in same.still.items())]:
        with suppress(Exception):  # what the model does not take explains nothing
            if subject.agree(run, given):
                return kind
    return same.kind


def script(subject: Subject, right: Run, tried: Run, made: tuple[str, ...] = ()) -> str:
    """A program of under twelve lines that compares two runs, the second of `again` if lines make that."""
    lines = ["import torch", *subject.code, "torch.set_grad_enabled(False)", *made]
    called = "again" if made else "model"
    lines += [*_calls(subject, right, "a", "model"), *_calls(subject, tried, "b", called)]
    return "\n".join([*lines, "print((a - b).abs().max())"])


def arguments(step: Mapping[str, Any]) -> str:
    """The arguments of a call, as they are written in a script."""
    return ", ".join(f"{name}={value if isinstance(value, bool) else _written(value)}" for name, value in step.items())


def _calls(subject: Subject, run: Run, name: str, called: str) -> list[str]:
    """Lines that run the model and keep the same tokens."""
    steps = [arguments(step) for step in subject.steps(run)]
    read = "[0]" if subject.of_transformers or "cache" in subject.names else ""
    texts = "-1:" if len(run.ids) > 1 else ":"
    tokens = f"{run.keep.start}:{run.keep.stop}" if isinstance(run.keep, range) else run.keep or ":"
    kept = "" if texts == tokens == ":" else f"[{texts}, {tokens}]"
    if not run.pieces:
        return [f"{name} = {called}({steps[0]}){read}{kept}"]
    cache = ".past_key_values" if subject.of_transformers else "[1]"
    caches = ["None", *(f"out{i}{cache}" for i in range(len(steps)))]
    lines = [f"out{i} = {called}({step}, {subject.names['cache']}={caches[i]})" for i, step in enumerate(steps)]
    return [*lines, f"{name} = torch.cat([{', '.join(f'out{i}{read}' for i in range(len(steps)))}], 1){kept}"]


def _written(value: Tensor) -> str:
    if value.is_floating_point():  # a mask of four axes
        return f"torch.tensor({(value == 0).int().tolist()}).double().log().clamp(min=-1e30)"
    return f"torch.tensor({value.int().tolist()})" + (".bool()" if value.dtype == torch.bool else "")
