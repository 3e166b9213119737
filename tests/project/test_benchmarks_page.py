"""The book's page of benchmarks shows the run that is stored, and nothing typed in."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import benchmarks_page as page  # noqa: E402


def test_the_page_shows_the_stored_run():
    document = json.loads(page.RESULTS.read_text(encoding="utf-8"))
    assert page.PAGE.read_text(encoding="utf-8") == page.render(document), "run python tools/benchmarks_page.py"
    stored = page.RESULTS.with_name(document["figures"][0]["file"])
    assert page.FIGURE.read_bytes() == stored.read_bytes()


def test_it_was_a_whole_run_without_paths():
    document = json.loads(page.RESULTS.read_text(encoding="utf-8"))
    assert set(document["settings"]["works"]) == set(page.TITLES) and not document["settings"]["quick"]
    assert "/home" not in page.RESULTS.read_text(encoding="utf-8") and str(ROOT) not in page.RESULTS.read_text()
