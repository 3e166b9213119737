"""The benchmarks run, agree with float64 and keep every number. No test here depends on how long anything takes."""

import json
from dataclasses import fields
from pathlib import Path

import pytest
import torch

from benchmarks import __main__ as command
from benchmarks import goals, page
from benchmarks.case import Candidate, Case, Row, said
from benchmarks.measure import measure

TWO = torch.full((2,), 2.0)


@pytest.mark.parametrize(
    "works", [["sinusoidal"], pytest.param(["bias", "rope", "attention"], marks=pytest.mark.slow)], ids="+".join
)
def test_every_candidate_of_a_quick_run_agrees_with_float64_and_has_all_numbers(works, tmp_path, capfd):
    path = tmp_path / "quick.json"
    command.run(works, quick=True, out=path)
    rows = json.loads(path.read_text())["rows"]
    wanted = [
        (case.name, each.name) for work in works for case in command.WORKS[work](True) for each in case.candidates
    ]
    assert [(row["case"], row["candidate"]) for row in rows] == wanted
    for row in rows:
        assert set(row) == {field.name for field in fields(Row)} and row["failed"] is None
        assert row["agrees"] and row["error"] < 1e-5
        assert row["median"] > 0 and row["ratio"] > 0 and row["seconds"]
        assert (row["memory"] is None) is not Path("/proc/self/clear_refs").exists()
        assert not row["goals"] or row["candidate"].startswith("posembed")
    assert capfd.readouterr().out.count("### ") == len({row["case"] for row in rows})


def case(peer, *wanted):
    ours = Candidate("posembed", lambda given: lambda: given.clone())
    return Case("work", "case", lambda: TWO, [ours, Candidate("peer", peer)], lambda given: given.double(), 0.0, wanted)


def broken(message="no room in /home/somebody/data/file.bin"):
    raise ValueError(message)


def test_a_peer_that_fails_becomes_a_row_with_its_message():
    for peer in (lambda given: broken(), lambda given: broken):
        ours, theirs = measure(case(peer), seconds=0, most_rounds=3)
        assert (ours.failed, ours.ratio, theirs.failed) == (None, 1, "ValueError: no room in file.bin")
        assert "| peer | ValueError: no room in file.bin |" in page.line(vars(theirs))
    rows = measure(Case("work", "case", broken, case(broken).candidates, broken, 0.0), seconds=0, most_rounds=3)
    assert {row.failed for row in rows} == {"the case failed: ValueError: no room in file.bin"}
    assert (
        said(RuntimeError("softmax(q k / sqrt(d)) is 1 / 2\nmore")) == "RuntimeError: softmax(q k / sqrt(d)) is 1 / 2"
    )


def test_an_answer_that_is_off_or_of_another_shape_is_seen():
    ours, theirs = measure(case(lambda given: lambda: TWO + torch.tensor([0.0, 0.5])), seconds=0, most_rounds=3)
    assert (ours.error, ours.agrees, theirs.error, theirs.agrees) == (0.0, True, 0.25, False)
    short = measure(case(lambda given: lambda: TWO[:1]), seconds=0, most_rounds=3)[1]
    assert short.failed == "ValueError: the answer has shape (1,), the reference (2,)"


def measured(candidate, ratio=None, memory=None, error=None):
    return Row("work", "case", candidate, ratio=ratio, memory=memory, error=error)


@pytest.mark.parametrize(
    ("goal", "peer", "figure", "met"),
    [
        (goals.no_slower, measured("peer", 2.0), "0.50 times the time of peer", True),
        (goals.no_slower, measured("peer", 0.5), "2.00 times the time of peer", False),
        (goals.no_more_memory, measured("peer", 2.0, 50), "2.00 times the memory of peer", False),
        (goals.no_more_memory, measured("peer", 2.0), "memory was not measured", False),
        (goals.error_below(1e-7), measured("peer", 1.0), "1.0e-08", True),
    ],
)
def test_a_goal_compares_with_the_fastest_peer(goal, peer, figure, met):
    rows = [measured("posembed", 1.0, 100, 1e-8), peer, measured("slow peer", 100.0, 10**9)]
    assert goal(rows)[1:] == (figure, met)


def test_the_page_of_the_book_shows_the_stored_run():
    document = json.loads(page.RESULTS.read_text(encoding="utf-8"))
    assert page.PAGE.read_text(encoding="utf-8") == page.render(document), "run python -m benchmarks --page"
    assert page.PICTURE.read_text(encoding="utf-8") == page.draw(document), "run python -m benchmarks --page"
    assert {row["work"] for row in document["rows"]} == set(page.TITLES) == set(command.WORKS)
    assert not document["settings"]["quick"] and "/home" not in page.RESULTS.read_text()


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("table 4096 × 768", "table 4096 × 768"),
        ("half, forward", "RoPE, paired halves"),
        ("t5, bidirectional, 2048", "T5, both ways, 2,048 tokens"),
        ("layer, shaw, causal, forward", "layer, Shaw, causal"),
        ("function, alibi, bidirectional, forward+backward", "attention, ALiBi, both ways + gradients"),
    ],
)
def test_the_picture_names_a_case_in_words(case, words):
    assert page.in_words(case) == words


def test_the_page_says_where_peers_are_ahead_and_its_picture_is_as_it_is_described():
    document = json.loads(page.RESULTS.read_text(encoding="utf-8"))
    by_case = {row["case"]: row["work"] for row in document["rows"]}
    timed = [
        (by_case[name.replace(" × ", " x ")], ratio) for name, rows in page.peers(document).items() for _, ratio in rows
    ]
    assert sum(ratio > 1 - page.NOISE for _, ratio in timed) / len(timed) > 0.95
    assert min(ratio for work, ratio in timed if work == "bias") > 1000
    rows = [
        {"case": name, "candidate": who, "ratio": ratio, "goals": [{"met": ratio == 1}]}
        for name, who, ratio in [("a", "posembed", 1), ("a", "peer", 2), ("b", "posembed", 1), ("b", "peer", 0.5)]
    ]
    said = page.summary({"rows": rows})
    assert "In 1 of 2 cases" in said and "In 1 a peer was faster by as much: peer in *b* (0.50 of the time)" in said
    assert "Of 4 goals 2 were met" in said
