"""The benchmarks run, agree with float64 and keep every number. No test here depends on how long anything takes."""

import gc
import json
import math
import os
import socket
import subprocess
import time
from dataclasses import fields, replace
from pathlib import Path

import peers
import pytest
import torch

from benchmarks import __main__ as command
from benchmarks import goals, references, report, training
from benchmarks.case import Candidate, Case, Row, SkippedError, said
from benchmarks.memory import MemoryServer, rise
from benchmarks.run import run_case
from benchmarks.timing import interleaved, once
from benchmarks.works import WORKS

ROOT = Path(__file__).resolve().parents[2]
FIELDS = {field.name for field in fields(Row)}
TWO = torch.full((2,), 2.0)

each_work = pytest.mark.parametrize("work", WORKS)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """What a quick run of everything wrote."""
    path = tmp_path_factory.mktemp("benchmarks") / "quick.json"
    assert command.main(["--quick", "--out", str(path)]) == 0
    gc.unfreeze()
    return path


def rows_of(path, work):
    return [row for row in json.loads(path.read_text())["rows"] if row["work"] == work]


@each_work
def test_every_candidate_has_a_row_with_all_fields(quick, work):
    rows = rows_of(quick, work)
    wanted = [(case.name, each.name) for case in WORKS[work](True) for each in case.candidates]
    assert [(row["case"], row["candidate"]) for row in rows] == wanted
    for row in rows:
        assert set(row) == FIELDS
        if row["failed"] is None:
            assert row["median"] > 0 and row["ratio"] > 0 and row["seconds"], row
            assert row["spread"][0] <= row["median"] <= row["spread"][1], row
            assert row["memory"] >= 0, row


@each_work
def test_answers_agree_with_float64(quick, work):
    # Probes have errors of their own, in positions, and are compared by them.
    most = 10.0 if work == "probes" else 1e-5
    for row in rows_of(quick, work):
        assert row["failed"] is not None or row["agrees"], row
        assert row["failed"] is not None or row["error"] < most, row


@each_work
def test_only_what_takes_long_to_compile_is_left_out_of_a_quick_run(quick, work):
    for row in rows_of(quick, work):
        if row["failed"] is not None:
            assert "FlexAttention" in row["candidate"]
            assert row["failed"] == "skipped: compiling takes longer than a quick run"


@each_work
def test_goals_stand_on_posembeds_rows_with_a_figure(quick, work):
    rows = rows_of(quick, work)
    assert any(row["goals"] for row in rows)
    for row in rows:
        assert not row["goals"] or row["candidate"].startswith("posembed")
        for goal in row["goals"]:
            assert set(goal) == {"goal", "figure", "met"}
            assert goal["figure"] and isinstance(goal["met"], bool)


def test_the_file_says_when_where_and_how(quick):
    document = json.loads(quick.read_text())
    assert set(document) == {"date", "machine", "versions", "settings", "how", "rows", "figures", "refreshed"}
    assert set(document["machine"]) == {"cpu", "cores", "instructions", "platform", "threads", "gpu"}
    assert document["settings"]["clock"] == "wall" and document["refreshed"] == {}
    assert document["settings"]["quick"] is True and document["machine"]["threads"] == 1
    assert set(document["how"]) == {"seconds", "ratio", "memory", "error"}
    assert {"python", "torch", "transformers", "x-transformers", "rotary-embedding-torch"} <= set(document["versions"])
    assert "not installed" not in document["versions"].values()


def test_the_figure_is_there_and_described(quick):
    (figure,) = json.loads(quick.read_text())["figures"]
    assert figure["alt"].startswith("Time against length from 32 to 256")
    drawn = (quick.parent / figure["file"]).read_text()
    assert drawn.startswith("<?xml") and "exponent" in drawn
    assert sorted(path.name for path in quick.parent.iterdir()) == ["quick-growth.svg", "quick.json"]


def test_the_file_names_no_place_on_this_machine(quick):
    text = quick.read_text() + (quick.parent / "quick-growth.svg").read_text()
    names = [
        str(ROOT),
        str(Path.home()),
        os.sep + "site-packages",
        *filter(lambda n: len(n) > 4, [socket.gethostname()]),
    ]
    assert [name for name in names if name in text] == []


# What can go wrong with a candidate.


def case(*candidates, goals_of_it=()):
    ours = Candidate("posembed", lambda given: lambda: given.clone())
    return Case("work", "case", lambda: TWO, [ours, *candidates], lambda given: given.double(), 0.0, goals_of_it)


def broken(message="no room in /home/somebody/data/file.bin"):
    raise ValueError(message)


def by_name(rows):
    return {row.candidate: row for row in rows}


def test_a_peer_that_fails_becomes_a_row_with_its_message():
    cannot_be_made = Candidate("peer 1", lambda given: broken())
    cannot_run = Candidate("peer 2", lambda given: broken)
    rows = run_case(case(cannot_be_made, cannot_run, goals_of_it=[goals.no_slower()]), seconds=0)
    assert [row.failed for row in rows] == [None, *["ValueError: no room in file.bin"] * 2]
    assert rows[0].goals == [{"goal": goals.no_slower().text, "figure": "no peer was measured", "met": False}]
    assert "peer 2: ValueError: no room in file.bin" in report.table(rows)


def test_a_peer_that_breaks_while_it_is_timed_becomes_a_row_with_its_message():
    left = iter([TWO, TWO])
    rows = by_name(run_case(case(Candidate("peer", lambda given: lambda: next(left))), seconds=0))
    assert rows["peer"].failed == "StopIteration: "
    assert rows["peer"].ratio is None and rows["posembed"].ratio == 1


def test_a_peer_that_cannot_run_here_says_why():
    def make(given):
        raise SkippedError("no C++ compiler")

    rows = by_name(run_case(case(Candidate("peer", make)), seconds=0))
    assert rows["peer"].failed == "skipped: no C++ compiler"


@pytest.mark.parametrize(("answer", "error", "agrees"), [(TWO, 0.0, True), (TWO + 0.5, 0.25, False)])
def test_the_error_is_that_of_the_worst_number(answer, error, agrees):
    rows = by_name(run_case(case(Candidate("peer", lambda given: lambda: answer)), seconds=0))
    assert (rows["peer"].error, rows["peer"].agrees) == (error, agrees)


def test_an_answer_of_another_shape_is_no_answer():
    rows = by_name(run_case(case(Candidate("peer", lambda given: lambda: TWO[:1])), seconds=0))
    assert rows["peer"].failed == "ValueError: the answer has shape (1,), the reference (2,)"


def test_a_case_that_fails_has_its_message_in_every_row():
    bad = Case(
        "work", "case", broken, case(Candidate("peer", lambda given: broken)).candidates, lambda given: given, 0.0
    )
    assert {row.failed for row in run_case(bad)} == {"the case failed: ValueError: no room in file.bin"}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("cannot open /home/reader/.venv/lib/python3.11/x.so: no", "RuntimeError: cannot open x.so: no"),
        ("~/secret/file is gone\nsecond line", "RuntimeError: file is gone"),
        ("softmax(q k / sqrt(d)) is 1 / 2", "RuntimeError: softmax(q k / sqrt(d)) is 1 / 2"),
        ("", "RuntimeError: "),
    ],
)
def test_messages_are_one_line_without_paths(message, expected):
    assert said(RuntimeError(message)) == expected


# Measuring.


def test_calls_take_turns_and_a_broken_one_stops():
    calls, left = [], iter(range(2))

    def one():
        calls.append("one")

    times, failed = interleaved({"one": one, "two": lambda: next(left)}, seconds=0, first={"one": 1, "two": 1}, least=4)
    assert calls == ["one"] * 4 and len(times["one"]) == 4
    assert len(times["two"]) == 2 and list(failed) == ["two"]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux can forget a peak")
def test_memory_is_that_of_the_result_and_of_what_is_needed_for_it():
    its_case = WORKS["bias"](False)[0]
    with MemoryServer(quick=False, threads=1) as memory:
        found = {each.name: memory.peak(its_case, each) for each in its_case.candidates}
    matrix = 8 * 2048 * 2048 * 4
    assert matrix <= found["transformers T5Attention.compute_bias"] < 3 * matrix
    assert 8 * 4095 * 4 <= found["posembed"] < matrix / 100


def test_memory_of_what_fails_is_an_error_with_its_message():
    its_case = next(each for each in WORKS["attention"](True) if each.name == "function, t5, causal, forward")
    flex = its_case.candidates[-1]
    with MemoryServer(quick=True, threads=1) as memory:
        for _ in range(2):  # the server lives on
            with pytest.raises(RuntimeError, match="skipped: compiling takes longer"):
                memory.peak(its_case, flex)


def test_memory_on_a_gpu_is_that_of_pytorch_there(monkeypatch):
    for name, bytes_ in {"memory_allocated": 100, "max_memory_allocated": 160, "reset_peak_memory_stats": None}.items():
        monkeypatch.setattr(torch.cuda, name, lambda bytes_=bytes_: bytes_)
    on_gpu = replace(case(), device="cuda")
    assert rise(on_gpu, on_gpu.candidates[0]) == 60


def test_the_clock_of_the_processor_does_not_tell_what_other_programs_take():
    def wait():
        time.sleep(0.05)

    assert once(wait)[1] >= 0.05 and once(wait, "processor")[1] < 0.05
    (on_wall,), (in_processor,) = (
        interleaved({"wait": wait}, seconds=0, least=1, clock=clock)[0].values() for clock in ("wall", "processor")
    )
    assert on_wall[0] >= 0.05 > in_processor[0]


@pytest.mark.parametrize(("device", "waits"), [("cpu", False), ("cuda", True)])
def test_work_on_a_gpu_is_timed_by_the_clock_on_the_wall(device, waits):
    waiting = Candidate("peer", lambda given: lambda: time.sleep(0.05) or given.clone())
    rows = by_name(run_case(replace(case(waiting), device=device), seconds=0, clock="processor"))
    assert (rows["peer"].median >= 0.05) is waits


# Training.


def losses_of(candidate, start, n_calls):
    call = candidate.make(start)
    return torch.cat([call()[1] for _ in range(n_calls)])


def test_all_who_train_learn_a_text_that_is_always_the_same():
    config = training.settings(training.QUICK)
    start = training.start(config, n_tokens=config.length)  # one piece
    its_case = training.case(config)
    found = [losses_of(each, start, 8) for each in its_case.candidates]
    assert len(found) == 3
    for losses in found:
        assert abs(losses[0] - math.log(training.VOCAB_SIZE)) < 0.05
        assert (losses.diff() < 0).all() and losses[-1] < losses[0] - 0.1
        torch.testing.assert_close(losses, found[0], rtol=0, atol=1e-4)


@pytest.mark.parametrize("there", [True, False])
def test_a_larger_model_is_trained_where_there_is_a_gpu(there, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    devices = [each.device for each in training.cases(quick=False)]
    assert devices == ["cpu", "cpu", *["cuda"] * there]


def test_speed_is_told_in_tokens_a_second():
    row = Row("work", "case", "posembed", median=0.5, tokens=600)
    assert row.tokens_per_second == 1200
    assert [line.split()[-1] for line in report.table([row]).splitlines()[2:4]] == ["tokens/s", "1,200"]
    assert "tokens" not in report.table([measured("posembed", median=0.5)])


# Goals.


def test_a_goal_of_speed_and_error_needs_both_in_one_row():
    rival, other = measured("rival, a", 400.0, error=2.0), measured("rival, b", 1000.0, error=1.0)
    goal = goals.faster_at_no_larger_error("rival", 200)
    fast, good = measured("posembed 1", 1.0, error=1.5), measured("posembed 2", 10.0, error=0.5)
    figure, met = goal.judge([fast, good, rival, other, measured("peer", 0.5, error=0.1)])
    assert not met
    assert figure == (
        "posembed 1 400 times, error 1.5; posembed 2 40 times, error 0.5; against rival, a, and 1 of rival, b"
    )
    fast.error = 1.0
    assert goal.judge([fast, good, rival, other])[1]
    fast.ratio = 2.01
    assert not goal.judge([fast, good, rival, other])[1]


def measured(candidate, ratio=None, memory=None, error=None, median=None, length=None):
    return Row("work", "case", candidate, ratio=ratio, memory=memory, error=error, median=median, length=length)


OURS = measured("posembed", 1.0, 100, 1e-8, 1.0)


@pytest.mark.parametrize(
    ("goal", "peer", "figure", "met"),
    [
        (goals.no_slower(), measured("peer", 2.0), "0.50 times the time of peer", True),
        (goals.no_slower(), measured("peer", 0.5), "2.00 times the time of peer", False),
        (goals.no_more_memory(), measured("peer", 2.0, 50), "2.00 times the memory of peer", False),
        (goals.no_more_memory(), measured("peer", 2.0), "memory was not measured", False),
        (goals.faster_than("peer", 5), measured("peer", 4.0), "4.0 times faster than peer", False),
        (goals.faster_than("other", 5), measured("peer", 9.0), None, None),
        (goals.less_memory_than("peer", 100), measured("peer", 1.0, 10**5), "1000 times less than peer", True),
        (goals.error_below(1e-7), measured("peer", 1.0), "1.0e-08", True),
    ],
)
def test_a_goal_compares_with_the_fastest_peer(goal, peer, figure, met):
    rows = [OURS, peer, measured("slow peer", 100.0, 10**9)]
    if figure is None:
        with pytest.raises(ValueError, match="no peer was measured"):
            goal.judge(rows)
    else:
        assert goal.judge(rows) == (figure, met)


@pytest.mark.parametrize(("power", "met"), [(1, True), (2, False)])
def test_growth_is_judged_by_its_exponent(power, met):
    rows = [measured(f"posembed, {n}", median=1e-6 * n**power, length=n) for n in (2, 4, 8, 16, 32)]
    figure, found = goals.linear().judge(rows)
    assert found is met
    assert figure == f"exponent {power}.00 from 2 to 32, {power}.00 over the last 4 lengths"


# The references are formulas of their own.


@pytest.mark.parametrize("causal", [True, False])
def test_the_reference_of_t5_has_the_buckets_of_transformers(causal):
    at = torch.arange(-3000, 3001)
    assert torch.equal(references.t5_buckets(at, causal), peers.t5_buckets_transformers(at, not causal))


def test_the_reference_of_attention_is_the_mean_where_nothing_tells_keys_apart():
    q = torch.zeros(1, 2, 3, 4, dtype=torch.float64)
    v = torch.arange(3.0, dtype=torch.float64).expand(1, 2, 4, 3).mT
    out = references.attention("rope", q, q, v, None, True)
    torch.testing.assert_close(out[0, 0, :, 0], torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64), rtol=0, atol=1e-15)


# The command.


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "results.json"
    report.write(path, {"number": 1})
    with pytest.raises(ValueError):
        report.write(path, {"number": math.nan})
    assert json.loads(path.read_text()) == {"number": 1}
    assert [each.name for each in path.parent.iterdir()] == ["results.json"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "ropes"], "invalid choice: 'ropes'"),
        (["--threads", "0"], "--threads is 0; it must be at least 1"),
        (["--threads", "2", "--clock", "processor"], "take --threads 1 with it"),
        (["--quick", "--refresh"], "leave one of the two out"),
        (["--refresh", "--out", "nowhere.json"], "there is no nowhere.json to refresh; run all works first"),
    ],
)
def test_a_wrong_command_line_says_what_to_do(arguments, message, capsys):
    with pytest.raises(SystemExit) as error:
        command.parsed(arguments)
    assert error.value.code == 2 and message in capsys.readouterr().err


def test_only_a_whole_run_writes_over_the_results():
    assert command.parsed([]).out == ROOT / "results" / "benchmarks.json"
    assert command.parsed(["--only", "rope", "--refresh"]).out == ROOT / "results" / "benchmarks.json"
    for part in (["--quick"], ["--only", "rope"]):
        assert command.parsed(part).out == ROOT / "_build" / "benchmarks" / "benchmarks.json"


def test_a_part_that_is_refreshed_leaves_the_others_as_they_were(tmp_path, monkeypatch):
    path = tmp_path / "results.json"
    monkeypatch.setattr(command, "WORKS", {name: lambda quick, name=name: [named(name)] for name in ("a", "b", "c")})
    assert command.main(["--out", str(path)]) == 0
    before = json.loads(path.read_text())
    assert command.main(["--only", "b", "--refresh", "--clock", "processor", "--out", str(path)]) == 0
    gc.unfreeze()
    after = json.loads(path.read_text())
    assert [row["work"] for row in after["rows"]] == ["a"] * 2 + ["b"] * 2 + ["c"] * 2
    changed = [old != new for old, new in zip(before["rows"], after["rows"], strict=True)]
    assert not any(changed[:2] + changed[4:]) and any(changed[2:4])
    assert list(after["refreshed"]) == ["b"] and after["refreshed"]["b"]["settings"]["clock"] == "processor"
    kept = set(before) - {"rows", "refreshed"}
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}


def named(work):
    """A case whose candidates no process that measures memory knows."""
    return replace(case(Candidate("peer", lambda given: lambda: given.clone())), work=work)


def test_make_hands_on_what_to_run():
    asked = lambda *options: (
        subprocess.run(
            ["make", "--no-print-directory", "-n", "bench", *options], cwd=ROOT, capture_output=True, text=True
        ).stdout
    )
    assert asked("ONLY=rope").rstrip().endswith("-m benchmarks --only rope")
    assert asked("QUICK=1").rstrip().endswith("-m benchmarks  --quick")
    # Only a whole run makes the page anew, and one whose parts take the place of others.
    assert asked().rstrip().endswith("tools/benchmarks_page.py")
    refreshed = asked("ONLY=rope", "REFRESH=1").rstrip().splitlines()
    assert refreshed[-2].endswith("-m benchmarks --only rope  --refresh")
    assert refreshed[-1].endswith("tools/benchmarks_page.py")


@pytest.mark.parametrize(
    ("seconds", "expected"), [(None, ""), (2.5, "2.5 s"), (0.0123, "12.3 ms"), (4e-6, "4 us"), (4e-9, "0.004 us")]
)
def test_durations_have_a_fitting_unit(seconds, expected):
    assert report.duration(seconds) == expected
