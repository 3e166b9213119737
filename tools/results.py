"""Write the stored runs of every study in `results/` into the package, from where readers load them.

Usage: python tools/results.py
"""

import sys
from pathlib import Path

from posembed.errors import ResultError
from posembed.experiments import bundle, read_results

ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "posembed" / "experiments" / "stored"


def main():
    for path in sorted(STORED.glob("*.json")):
        try:
            results = read_results(ROOT / "results" / path.stem)
        except ResultError as error:
            sys.exit(f"results: {error}")
        path.write_text(bundle(results), encoding="utf-8")
        print(f"results: {len(results)} runs in {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
