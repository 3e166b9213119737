"""The page of the book that shows what the comparisons found."""

import re
from importlib.metadata import version
from pathlib import Path

from conformance.agreements import AGREEMENTS, WITHOUT_PEER, Agreement
from conformance.faults import FAULTS, Fault

from posembed import schemes

PAGE = Path(__file__).resolve().parents[2] / "book" / "conformance.md"
LIBRARIES = ("rotary-embedding-torch", "torch", "transformers", "x-transformers")
# What a measurement looks like on the page, and what it says on every processor.
MEASURED = {
    r"\d\.\d×10<sup>−\d+</sup>": "measured",
    r"\| 0 \|": "| measured |",
    r"off by [\d.]+": "off",
    r"\b[1-9]\d* of 2047 rows": "some rows",
}

OPENING = """\
% Made by `make conformance`.

# Conformance with other libraries

Is a scheme of this package the scheme that its paper and other libraries mean? **In all {n} comparisons with a peer it
is**, to within rounding or what a row allows. Where the two do differ the peer is at fault: those cases stand first.

Each that another library has is computed here and there, with the same inputs, in float32 (our slopes, frequencies and
rows of trained frequencies in float64, as we make them); the tests repeat it at each change and fail where a difference
is larger than allowed. A difference is the largest over all entries. Most are about one in size; those of Shaw's and
CoPE's biases reach about ten and sixty.
Numbers come from {libraries}.

A build of the book makes the comparisons again, and fails where their rows are others than those of this page. That
differences stay as small as is allowed, the tests see to; on another processor they may be a little larger or smaller.
"""
FAULTS_OPENING = """\
## Where the peers go wrong

Each row asks both sides the same, of parts or of whole layers as each has them. posembed has no scaling that changes
with the text; its fixed one stands beside *dynamic*. The versions are those above; later ones may be mended. Whoever
has others installed makes this page anew with `make conformance`.

:::{table}
:class: wide

| scheme | library: with what | theirs | posembed |
| --- | --- | --- | --- |
"""
AGREED = """\
## Comparison by comparison

:::{table}
:class: wide

| scheme | library: what is compared | difference | allowed: why |
| --- | --- | --- | --- |
"""
WITHOUT = """\
## Without a peer

None of these libraries has {names}. The tests hold them against the papers' formulas, written a
second time in plain code.
"""


def render() -> str:
    """Make every comparison, and the page of what they find."""
    libraries = [f"{name} {version(name).split('+')[0]}" for name in LIBRARIES]
    ordered = sorted(AGREEMENTS, key=lambda each: schemes().index(each.scheme))
    parts = [
        OPENING.format(n=len(ordered), libraries=f"{', '.join(libraries[:-1])} and {libraries[-1]}"),
        FAULTS_OPENING + "".join(fault_row(fault) for fault in FAULTS) + ":::\n",
        AGREED + "".join(map(row, ordered)) + ":::\n",
        WITHOUT.format(names=f"{', '.join(WITHOUT_PEER[:-1])} or {WITHOUT_PEER[-1]}"),
    ]
    return "\n".join(parts)


def row(agreement: Agreement) -> str:
    allowed, found = (power_of_ten(each) for each in (agreement.allowed, agreement.difference()))
    allowed = "none" if agreement.allowed == 0 else allowed
    return f"| {agreement.scheme} | {agreement.peer}: {agreement.what} | {found} | {allowed}: {agreement.because} |\n"


def fault_row(fault: Fault) -> str:
    return f"| {fault.scheme} | {fault.peer}: {fault.what} | {fault.theirs()} | {fault.ours()} |\n"


def power_of_ten(number: float) -> str:
    if number == 0:
        return "0"
    digits, exponent = f"{number:.1e}".split("e-")
    return f"{digits}×10<sup>−{int(exponent)}</sup>"


def without_measurements(page: str) -> str:
    """The page with measured numbers taken out, which a processor decides: a difference of zero may be a small one."""
    for measured, verdict in MEASURED.items():
        page = re.sub(measured, verdict, page)
    return page


def differing(stored: str) -> list[str]:
    """The lines that stand only on a stored page, or only on the one that the comparisons give now."""
    before, now = (set(without_measurements(page).splitlines()) for page in (stored, render()))
    return sorted(before ^ now)
