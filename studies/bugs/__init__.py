"""Sixty reported bugs of positions, against every check of the audit and every property of a scheme: who finds whom.

Each bug is a small model with one or two methods changed, after a public report; none is code of that report. Each
differs from the right model. Forty were written with the checks in view; twenty after the checks were frozen, and
their rate is told apart, without what a check was widened to find since.

``python -m studies.bugs`` asks all, and writes ``results/bugs.json``; ``make results`` makes the page of evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .reference import Reference

# Found only since a check was widened for it: the frozen ones missed it.
SINCE = frozenset({"explosion/curated-transformers#150"})


@dataclass(frozen=True)
class Bug:
    """One bug.

    Attributes:
        report: where it was reported, as "owner/repository#number".
        wrong: what the model does, in words.
        model: the class that has it.
        right: the class that has it not.
    """

    report: str
    wrong: str
    model: type[Reference]
    right: type[Reference]


SETTINGS = ("scheme", "causal", "window", "offset", "base", "scale", "rotary", "heads")


class Register(list[Bug]):
    """Bugs in the order in which they are written down."""

    def __call__(self, report: str, wrong: str, **right: object) -> Callable[[type[Reference]], type[Reference]]:
        """Add a class; `right` are the settings that a right model would have in place of its own."""

        def add(model: type[Reference]) -> type[Reference]:
            settings = {name: getattr(model, name) for name in SETTINGS} | right
            others = {name: right[name] for name in right if name not in SETTINGS}
            base = next(each for each in model.__mro__[1:] if each.__dict__.get("is_right", each is Reference))
            self.append(Bug(report, wrong, model, type(f"Right{model.__name__}", (base,), settings | others)))
            return model

        return add
