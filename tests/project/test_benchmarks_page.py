"""The book's page of benchmarks shows the run that is stored, and nothing typed in."""

import json
import sys
from pathlib import Path

import pytest

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
    runs = [document, *document["refreshed"].values()]
    assert {work for run in runs for work in run["settings"]["works"]} == set(page.TITLES)
    assert {row["work"] for row in document["rows"]} == set(page.TITLES)
    assert not any(run["settings"]["quick"] for run in runs)
    assert "/home" not in page.RESULTS.read_text(encoding="utf-8") and str(ROOT) not in page.RESULTS.read_text()


def test_a_part_that_was_measured_by_itself_says_when_and_by_which_clock():
    document = json.loads(page.RESULTS.read_text(encoding="utf-8"))
    run = {name: document[name] for name in ("machine", "versions")}
    run |= {"date": "2030-01-02T03:04", "settings": {"clock": "processor"}}
    before, part = page.render(document | {"refreshed": {"rope": run}}).split("## Rotary positions\n")
    assert "2030" not in before
    # Above the part's tables, after the note on what its words mean.
    (line,) = (line for line in part.split("### ")[0].splitlines() if line.startswith("Measured by itself"))
    assert line.startswith("Measured by itself on 2030-01-02: ")
    assert line.endswith("in time of the processor, as other programs ran too.")


def test_training_is_told_in_tokens_a_second():
    document = json.loads(page.RESULTS.read_text(encoding="utf-8"))
    rows = [row for row in document["rows"] if row["work"] == "training"]
    assert rows
    for row in rows:
        assert f"| {row['tokens'] / row['median']:,.0f} |" in page.row(row, 6)
    failed = rows[0] | {"failed": "skipped: no room"}
    assert page.row(failed, 6).count("|") == page.row(rows[0], 6).count("|") == 7


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        ({}, ["2.25\u00a0ms", "1.00", "14.8\u00a0MiB", "3×10<sup>−8</sup>"]),
        ({"median": 2.6342, "ratio": 1169.3}, ["2.63\u00a0s", "1,169", "14.8\u00a0MiB", "3×10<sup>−8</sup>"]),
        ({"median": 12.16e-6, "ratio": 0.5}, ["12.2\u00a0µs", "0.50", "14.8\u00a0MiB", "3×10<sup>−8</sup>"]),
        ({"memory": 1.25 * 2**30, "error": 0.0}, ["2.25\u00a0ms", "1.00", "1.25\u00a0GiB", "0"]),
        ({"memory": 512, "error": 2.0}, ["2.25\u00a0ms", "1.00", "0.5\u00a0KiB", "2×10<sup>0</sup>"]),
        ({"work": "probes", "error": 13.371}, ["2.25\u00a0ms", "1.00", "14.8\u00a0MiB", "13.4"]),
    ],
)
def test_numbers_have_three_digits_and_their_unit_beside_them(row, cells):
    whole = {"work": "rope", "candidate": "one", "failed": "", "median": 2.25e-3, "ratio": 1.0}
    whole |= {"memory": 14.8 * 2**20, "error": 3.02e-8} | row
    assert page.row(whole, len(page.COLUMNS)) == page.table_row(["one", *cells])
