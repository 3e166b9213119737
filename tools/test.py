"""Run every test there is and say in the end what passed, what failed, and what was skipped and why."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "_build" / "test-reports"


def stages():
    """Name each stage and its command, in the order that finds a mistake soonest."""
    python, report = sys.executable, lambda name: f"--junit-xml={REPORTS / name}.xml"
    package = ["posembed", "tests", "--doctest-modules", "--ignore=tests/browser", "-n", "2", "--dist", "loadfile"]
    return {
        "package": [python, "-m", "pytest", "-q", *package, report("package")],
        "chapters": [python, "tools/chapters.py", "check", report("chapters")],
        "book": [python, "tools/book.py", "build"],
        "pages": [python, "-m", "pytest", "-q", "tests/browser", "-n", "2", "--dist", "loadfile", report("pages")],
    }


def run():
    """Run all stages, also after one has failed; return the names of those that failed."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    for old in REPORTS.glob("*.xml"):
        old.unlink()
    failed = []
    for name, command in stages().items():
        print(f"\ntest: {name}", flush=True)
        if subprocess.run(command, cwd=ROOT).returncode:
            failed.append(name)
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
    failed = run()
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
