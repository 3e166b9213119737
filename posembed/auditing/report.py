"""What an audit found, check by check."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..serialization import Record

if TYPE_CHECKING:
    import pandas

Verdict = Literal["holds", "broken", "does not apply", "not decided"]


@dataclass(frozen=True, repr=False)
class CheckResult(Record):
    """What one check found.

    Attributes:
        check: its name.
        verdict: "holds", "broken", "does not apply" (the model lacks what it is about, or is not made to keep it), or
            "not decided".
        reason: why, in a line.
        part: "encoder" or "decoder", where a model has both; else empty.
        kind: of a broken one, the fault that it looks like.
        error: the largest difference between logits that should be equal, in units of the largest logit; None where
            nothing was compared.
        position: of the first token, in the text that was compared, whose logits differ.
        script: of a broken one, a program that shows it without this package, which only loads a scheme of
            `use_scheme`; else empty.
    """

    check: str
    verdict: Verdict
    reason: str = ""
    part: str = ""
    kind: str = ""
    error: float | None = None
    position: int | None = None
    script: str = ""


@dataclass(frozen=True, repr=False)
class AuditReport(Record):
    """What `audit` found. Printed, it is a table, and below the scripts of what two runs show to be broken.

    Attributes:
        model: the model's class.
        checks: one result a check, and for an encoder with a decoder one for each of the two.

    Example:
        >>> from posembed.auditing import AuditReport, CheckResult
        >>> report = AuditReport("Mine", (CheckResult("order is seen", "holds"),))
        >>> report.passed, report.count("broken")
        (True, 0)
    """

    model: str
    checks: tuple[CheckResult, ...]

    @property
    def passed(self) -> bool:
        """Whether something holds, and nothing is broken."""
        return self.count("holds") > 0 and not self.broken

    @property
    def broken(self) -> list[CheckResult]:
        """The checks that are broken."""
        return [each for each in self.checks if each.verdict == "broken"]

    def count(self, verdict: Verdict) -> int:
        """How many checks have this verdict."""
        return sum(each.verdict == verdict for each in self.checks)

    @property
    def summary(self) -> str:
        """The model, and how many checks are broken and hold."""
        return f"{self.model}: {self.count('broken')} broken, {self.count('holds')} hold"

    def to_frame(self) -> pandas.DataFrame:
        """Return a table of the checks, with all that was found of each."""
        import pandas

        return pandas.DataFrame(self.to_dict()["checks"])

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Of each check its name, verdict, error and what is told of it, as texts."""
        return [
            (
                f"{each.part}: {each.check}" if each.part else each.check,
                each.verdict,
                "" if each.error is None else f"{each.error:.0e}",
                "; ".join(filter(None, (each.kind, each.reason))),
            )
            for each in self.checks
        ]

    def __str__(self) -> str:
        lines, column = [self.summary], max((len(row[0]) for row in self.rows()), default=0)
        for name, verdict, error, told in self.rows():
            start = f"{name:{column}}  {verdict:14}  {error:6}  "
            lines.append(textwrap.fill(start + told, len(start) + 72, subsequent_indent=" " * len(start)))
        lines += [f"\n# {each.check}\n{each.script}" for each in self.broken if each.script]
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__
