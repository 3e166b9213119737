"""What a benchmark is made of: a case of a work, and the candidates that do it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Candidate:
    """One way to do the work of a case.

    Attributes:
        name: what the table calls it; those of this project begin with "posembed".
        make: from the case's inputs to the call that is timed. What it builds is not timed, but counted as memory.
        note: what a reader must know to compare it fairly.
        answer: brings what the call returns into the form of the reference; not timed.
        reference: its own reference, where its layout or its frequencies are others.
        bound: the largest error with which it still does the same work; by default the case's.
        once: timed by its first call alone, because it takes seconds.
    """

    name: str
    make: Callable[[Any], Callable[[], Any]]
    note: str = ""
    answer: Callable[[Any], Any] = lambda given: given
    reference: Callable[[Any], Any] | None = None
    bound: float | None = None
    once: bool = False


@dataclass(frozen=True)
class Case:
    """One work of one size, for several candidates.

    Attributes:
        work: the name that `--only` takes.
        name: of the case.
        inputs: makes what all candidates are given, always the same.
        candidates: who does the work.
        reference: from the inputs to the answer in float64.
        bound: the largest error with which a candidate still does the same work.
        goals: what the case is to show: each from its rows to the goal, a figure and whether it is met.
    """

    work: str
    name: str
    inputs: Callable[[], Any]
    candidates: Sequence[Candidate]
    reference: Callable[[Any], Any]
    bound: float
    goals: Sequence[Callable[[Sequence[Row]], tuple[str, str, bool]]] = ()


@dataclass
class Row:
    """What was measured of a candidate. Nothing measured is left out: `seconds` has every round.

    Attributes:
        work: as in the case.
        case: its name.
        candidate: as in the candidate.
        median: seconds of a call, over the rounds.
        seconds: of a call, in each round.
        ratio: the median over the rounds of its time by posembed's.
        memory: bytes at the peak of one call, with what the candidate keeps, above a process that has its inputs.
        error: the largest difference from float64, by the largest number there.
        agrees: whether the error is within the bound.
        goals: each with its figure and whether it is met; on posembed's row.
        note: as in the candidate.
        failed: why there is nothing measured, or None.
    """

    work: str
    case: str
    candidate: str
    median: float | None = None
    seconds: list[float] = field(default_factory=list)
    ratio: float | None = None
    memory: int | None = None
    error: float | None = None
    agrees: bool | None = None
    goals: list[dict[str, Any]] = field(default_factory=list)
    note: str = ""
    failed: str | None = None

    @property
    def ours(self) -> bool:
        """Whether it is this project's."""
        return self.candidate.startswith("posembed")


def largest_error(answer: Any, reference: Any) -> float:
    """Return the largest difference from a reference, by the largest number in it; of several tensors the worst."""
    if isinstance(answer, Tensor):
        answer, reference = [answer], [reference]
    return max(_error(a, r) for a, r in zip(answer, reference, strict=True))


def _error(answer: Tensor, reference: Tensor) -> float:
    if answer.shape != reference.shape:
        raise ValueError(f"the answer has shape {tuple(answer.shape)}, the reference {tuple(reference.shape)}")
    difference = answer.detach().double() - reference
    return float(difference.abs_().max() / reference.abs().max())


def said(error: BaseException) -> str:
    """Say in one line what an error said, without the paths of this machine."""
    lines = str(error).strip().splitlines() or [""]
    without_paths = re.sub(r"(?:~|[A-Za-z]:)?(?:[/\\][\w.@+-]+)*[/\\](?=[\w.@+-]+)", "", lines[0])
    return f"{type(error).__name__}: {without_paths}"[:300]


def without_gradient(call: Callable[[], Any]) -> Callable[[], Any]:
    """Run a call as inference does."""
    return torch.no_grad()(call)


def with_gradient(call: Callable[[], Any], wanted: Sequence[Tensor], upstream: Any) -> Callable[[], tuple[Tensor, ...]]:
    """Run a call and its backward pass: the outputs, then the gradients of what is wanted."""

    def run():
        out = call()
        gradients = torch.autograd.grad(out, wanted, upstream, allow_unused=True)
        outs = (out,) if isinstance(out, Tensor) else tuple(out)
        return *(each.detach() for each in outs), *gradients

    return run
