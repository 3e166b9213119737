"""Measure built pages with Lighthouse, on a phone and a desktop; end with 1 where a score is below 95.

Usage: python tools/lighthouse.py [all | PAGE ...]    such as intro or schemes/rope; by default one of each kind

Needs node; npx fetches Lighthouse. A score depends on the machine and on what else it does: measure where nothing runs.
It varies even there, as a window that nobody sees may be drawn a second later: what is below is measured twice more,
and the medians count.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys

import whole
from chapters import ROOT

sys.path.insert(0, str(ROOT / "tests" / "browser"))
from chromium import CompressingHandler, find_chromium, serve_folder

LIGHTHOUSE = "lighthouse@12.8.2"
# One of each kind: landing page, text, chapters with figures, a scheme, the heaviest page of the reference.
KINDS = (
    "intro",
    "glossary",
    "why/permutation-equivariance",
    "encodings/relative-positions",
    "schemes/rope",
    "api-experiments",
)
LEAST = 95
NO_NODE = "lighthouse: it needs npx, which comes with node; install node 20 or later"


def measure(address, device):
    """The scores of a page by category, of 100."""
    command = ["npx", "--yes", LIGHTHOUSE, address, "--quiet", "--output=json"]
    command += ["--chrome-flags=--headless=new --no-sandbox", *(["--preset=desktop"] if device == "desktop" else [])]
    environment = os.environ | {"CHROME_PATH": str(find_chromium())}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"lighthouse: {address} was not measured: {done.stderr.strip()[-400:]}")
    categories = json.loads(done.stdout)["categories"].values()
    return {each["title"]: round(100 * (each["score"] or 0)) for each in categories}


def main(names):
    """Measure the pages and say what is below the least score."""
    whole.needs_book("lighthouse")
    if shutil.which("npx") is None:
        sys.exit(NO_NODE)
    if find_chromium() is None:
        sys.exit(whole.NO_CHROMIUM.format("lighthouse"))
    known, low = [name for name, _ in whole.contents()], []
    names = known if names == ["all"] else names or KINDS
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"lighthouse: there is no page {unknown[0]!r}; there are all, {', '.join(known)}")
    with serve_folder(whole.HTML, CompressingHandler) as address:
        for number, name in enumerate(names, 1):
            for device in ("phone", "desktop"):
                runs = [measure(f"{address}/{name}.html", device)]
                if min(runs[0].values()) < LEAST:
                    runs += [measure(f"{address}/{name}.html", device) for _ in range(2)]
                scores = {category: statistics.median(run[category] for run in runs) for category in runs[0]}
                said = ", ".join(f"{category} {score}" for category, score in scores.items())
                said += " (medians of 3)" * (len(runs) > 1)
                print(f"lighthouse: {number}/{len(names)} {name}, {device}: {said}", flush=True)
                low += [f"{name}, {device}"] * (min(scores.values()) < LEAST)
    sys.exit(f"lighthouse: {len(low)} of these have a score below {LEAST}: {'; '.join(low)}" if low else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
