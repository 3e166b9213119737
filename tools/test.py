"""Run the tests and say in the end what passed, what failed, and what was skipped and why.

Usage: python tools/test.py [--all | --only-slow] [--numeric CAPABILITY ...]
"""

import argparse
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "_build" / "test-reports"
# Tests that take long stand in few files, so a worker that has nothing left takes over tests of the other.
PARALLEL = ("-n", "2", "--dist", "worksteal")
CHAPTERS = [sys.executable, "tools/chapters.py", "check", "--reports", REPORTS]
# The instructions of a processor that libraries keep to, by the name that PyTorch has for them.
INSTRUCTIONS = {
    "default": {"ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "ONEDNN_MAX_CPU_ISA": "SSE41"},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
}
# What computes: results must not depend on the instructions of a processor.
NUMERIC = (
    *(f"tests/{name}" for name in ("encodings", "models", "probing", "similarity", "mechanisms")),
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tests").glob("test_equivariance*.py"))),
    "tests/test_lookup.py",
)


def stages(*, quick, slow, numeric):
    """Name each stage and its command, in the order that finds a mistake soonest.

    Args:
        quick: the tests that find mistakes, in minutes.
        slow: those that take long.
        numeric: instruction sets of PyTorch, with each of which what computes is tested once more.
    """
    package, pages = ("posembed", "tests", "--ignore=tests/browser"), ("tests/browser",)
    found = {}
    if quick:
        found["package"] = pytest("package", *package, "-m", "not slow")
        found["chapters"] = CHAPTERS
    found["book"] = [sys.executable, "tools/book.py", "build"]
    if quick:
        found["pages"] = pytest("pages", *pages, "-m", "not slow")
    for name in numeric:
        found[f"numbers, {name}"] = pytest(f"numbers-{name}", *NUMERIC, "-m", "not slow")
        if slow:
            found[f"chapters, {name}"] = CHAPTERS
    if slow:
        found["slow, package"] = pytest("slow-package", *package, "-m", "slow")
        found["slow, pages"] = pytest("slow-pages", *pages, "-m", "slow")
    return found


def pytest(report, *arguments):
    return [sys.executable, "-m", "pytest", "-q", *arguments, *PARALLEL, f"--junit-xml={REPORTS / report}.xml"]


def run(chosen):
    """Run all stages, also after one has failed; return the names of those that failed."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    for old in REPORTS.glob("*.xml"):
        old.unlink()
    failed = []
    for name, command in chosen.items():
        print(f"\ntest: {name}", flush=True)
        start, capability = time.monotonic(), name.rpartition(", ")[2]
        environment = os.environ | INSTRUCTIONS.get(capability, {})
        if subprocess.run(command, cwd=ROOT, env=environment).returncode:
            failed.append(name)
        print(f"test: {name} took {time.monotonic() - start:.0f} s", flush=True)
    return failed


def tally():
    """Add up the stages' reports: counts, and each reason for a skip with how often it was given."""
    counts, reasons = Counter(), Counter()
    for path in sorted(REPORTS.glob("*.xml")):
        for case in ElementTree.parse(path).iter("testcase"):
            skip = case.find("skipped")
            broken = case.find("failure") is not None or case.find("error") is not None
            counts["failed" if broken else "passed" if skip is None else "skipped"] += 1
            if skip is not None:
                reasons[skip.get("message", "no reason given")] += 1
    return counts, reasons


def main():
    parser = argparse.ArgumentParser(description="Run the tests and count them.")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="the slow tests too")
    which.add_argument("--only-slow", action="store_true", help="the slow tests and no others")
    numeric = "what computes once more with these instructions of the processor"
    parser.add_argument("--numeric", nargs="+", default=(), choices=INSTRUCTIONS, help=numeric)
    asked = parser.parse_args()
    slow = asked.all or asked.only_slow
    failed = run(stages(quick=not asked.only_slow, slow=slow, numeric=asked.numeric))
    counts, reasons = tally()
    print()
    for reason, count in reasons.most_common():
        print(f"test: skipped {count}: {reason}")
    for name in failed:
        print(f"test: the stage '{name}' failed; its message stands above")
    # A stage that fails without a test (a build, a collection) is a failure all the same.
    print(f"{counts['passed']} passed, {max(counts['failed'], len(failed))} failed, {counts['skipped']} skipped")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
