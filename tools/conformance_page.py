"""The page that shows how the schemes agree with other libraries: make it, or see whether it is stale.

Usage: python tools/conformance_page.py make
       python tools/conformance_page.py check
"""

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "book" / "conformance.md"
sys.path.insert(0, str(ROOT / "tests"))
# What transformers warns of (a layer that stands alone, a short table) is as it is meant here.
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")


def make():
    """Run every comparison and write the page."""
    import torch
    from conformance import page
    from conformance.agreements import AGREEMENTS

    torch.set_num_threads(1)
    too_far = [each for each in AGREEMENTS if each.difference() > each.allowed]
    if too_far:
        sys.exit(f"conformance: {too_far[0].scheme} and {too_far[0].peer} do not agree; run the tests")
    PAGE.write_text(page.render(), encoding="utf-8")
    print(f"conformance: {len(AGREEMENTS)} comparisons in {PAGE.relative_to(ROOT)}")


def check(path):
    """Run every comparison and fail when the page says something else."""
    import torch
    from conformance import page

    torch.set_num_threads(1)
    stale = page.differing(path.read_text(encoding="utf-8"))
    if stale:
        sys.exit(f"conformance: the comparisons no longer find {stale[0]!r}; run `make conformance`")


def main():
    parser = argparse.ArgumentParser(description="The page that shows how the schemes agree with other libraries.")
    parser.add_argument("command", choices=("make", "check"))
    parser.add_argument("--page", type=Path, default=PAGE)
    arguments = parser.parse_args()
    make() if arguments.command == "make" else check(arguments.page)


if __name__ == "__main__":
    main()
