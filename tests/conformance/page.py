"""The page of the book that shows what the comparisons found."""

import re
from importlib.metadata import version

from conformance.agreements import AGREEMENTS, WITHOUT_PEER, Agreement
from conformance.faults import FAULTS, Fault
from conformance.fingerprint import LIBRARIES, ROOT, fingerprint

from posembed import schemes

PAGE = ROOT / "book" / "conformance.md"
# What a measurement looks like on the page: it may differ a little from one processor to another.
MEASURED = re.compile(r"\d\.\d×10<sup>−\d+</sup>")

# A table that phones scroll, which a keyboard must then be able to reach: book/_ext/page_repairs.py sees to it.
WIDE = ":::{table}\n:class: wide\n\n"

OPENING = """\
% Made by `make conformance`. Fingerprint: {fingerprint}

# Conformance with other libraries

Is a scheme of this package the scheme that its paper and other libraries mean? Each is computed here and by independent
implementations, with the same inputs, in float32; the tests repeat it at each change and fail where a difference is
larger than allowed. A difference is the largest over all entries, which are of size one unless the row says more.
Numbers come from {libraries}.

A build of this page fails when the schemes, the comparisons or the versions have changed since it was made.
"""
FAULTS_OPENING = """\
## Where the peers go wrong

Each row is one measurement, made the same way on both sides. The versions are those above; later ones may be mended,
and then the tests ask for this page to be made anew.

:::{table}
:class: wide

| scheme | library: with what | theirs | posembed |
| --- | --- | --- | --- |
"""
WITHOUT = """\
## Without a peer

None of these libraries has {names}. The tests hold them against the papers' formulas, written a second time as
plain loops.
"""


def render(differences: list[float]) -> str:
    """The page, with the differences of AGREEMENTS in their order."""
    libraries = [f"{name} {version(name).split('+')[0]}" for name in LIBRARIES]
    parts = [OPENING.format(fingerprint=fingerprint(), libraries=f"{', '.join(libraries[:-1])} and {libraries[-1]}")]
    for scheme in schemes():
        rows = [row(each, found) for each, found in zip(AGREEMENTS, differences, strict=True) if each.scheme == scheme]
        if rows:
            head = "| library: what is compared | difference | allowed: why |\n| --- | --- | --- |\n"
            parts.append(f"## {scheme}\n\n{WIDE}{head}" + "".join(rows) + ":::\n")
    parts.append(WITHOUT.format(names=" and ".join(WITHOUT_PEER)))
    parts.append(FAULTS_OPENING + "".join(fault_row(fault) for fault in FAULTS) + ":::\n")
    return "\n".join(parts)


def row(agreement: Agreement, difference: float) -> str:
    allowed = "none" if agreement.allowed == 0 else power_of_ten(agreement.allowed)
    return f"| {agreement.peer}: {agreement.what} | {power_of_ten(difference)} | {allowed}: {agreement.because} |\n"


def fault_row(fault: Fault) -> str:
    return f"| {fault.scheme} | {fault.peer}: {fault.what} | {fault.theirs()} | {fault.ours()} |\n"


def power_of_ten(number: float) -> str:
    if number == 0:
        return "0"
    digits, exponent = f"{number:.1e}".split("e-")
    return f"{digits}×10<sup>−{int(exponent)}</sup>"


def without_measurements(page: str) -> str:
    """The page with measured differences taken out; a difference of zero may be a small one elsewhere."""
    return re.sub(r"\| 0 \|", "| measured |", MEASURED.sub("measured", page))
