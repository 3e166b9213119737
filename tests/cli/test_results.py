"""``posembed results``: the results of a folder or of a study for people, and as CSV."""

import io
import json

import pandas
import pytest

from posembed import RunConfig, RunResult
from posembed.training import write_result


@pytest.fixture
def folder(tmp_path):
    """Three runs, of which one was tested on longer texts."""
    for number, more in enumerate([{"scheme": "rope"}, {"scheme": "learned"}, {"test_length": 128}]):
        metrics = {"loss": 2.0 + number, "scheme": {"weight": [0.5, 1.0]}, "curve": [4.0, 2.0 + number]}
        write_result(RunResult(RunConfig(**more), metrics, {"torch": "2"}, "a, CPU", 1.5), tmp_path / "mine")
    return tmp_path / "mine"


def test_results_for_people_name_what_differs(call, folder):
    code, printed, complained = call("results", folder, columns=120)
    assert (code, complained) == (0, "")
    lines = [" ".join(line.split()) for line in printed.splitlines()[1:]]
    assert lines[0] == "arm runs loss"
    assert sorted(lines[1:]) == [
        "scheme learned 1 3.0000",
        "scheme nopos, test length 128 1 4.0000",
        "scheme rope 1 2.0000",
    ]


def test_results_of_a_study_have_a_line_an_arm_with_its_interval(call):
    code, printed, complained = call("results", "encodings", "--against", "nopos")
    assert (code, complained) == (0, "")
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert lines[:2] == ["40 runs in encodings", "arm runs loss minus nopos"]
    assert "rope 5 1.3147 ±0.0060 -0.4717 ±0.0825" in lines
    code, printed, complained = call("results", "encodings", "--against", "roape")
    assert (code, printed) == (1, "") and complained.startswith(
        "posembed: there is no arm 'roape'; choose among 'nopos'"
    )


def test_a_hash_in_the_name_of_an_arm_is_short(call, tmp_path):
    for text in ("one text " * 400, "another text " * 400):
        (tmp_path / "mine.txt").write_text(text)
        run = RunResult(RunConfig(data=str(tmp_path / "mine.txt")), {"loss": 2.0}, {"torch": "2"}, "a, CPU", 1.5)
        write_result(run, tmp_path / "runs")
    code, printed, _ = call("results", tmp_path / "runs", columns=60)
    assert code == 0
    assert all(line.startswith("text hash ") and line.endswith(" 1     2.0000") for line in printed.splitlines()[-2:])


def test_results_as_csv_hold_every_value(call, folder):
    code, printed, complained = call("results", folder, "--csv")
    assert (code, complained) == (0, "")
    table = pandas.read_csv(io.StringIO(printed)).set_index("config.scheme")
    assert table.loc["rope", "key"] == RunConfig(scheme="rope").key and table.loc["nopos", "config.test_length"] == 128
    assert json.loads(table.loc["rope", "metrics.scheme"]) == {"weight": [0.5, 1.0]}
    assert json.loads(table.loc["learned", "metrics.curve"]) == [4.0, 3.0] and set(table["machine"]) == {"a, CPU"}


@pytest.mark.bad_input
def test_results_that_cannot_be_read_are_one_line(call, folder):
    (folder / "notes.json").write_text("[]")
    code, printed, complained = call("results", folder)
    assert code == 0 and printed.startswith("3 runs")
    said = "left out: notes.json is damaged, or of another kind; move it away and run its config again"
    assert complained == f"posembed: warning: {said}\n"
    code, printed, complained = call("results", folder / "nothing")
    assert (code, printed) == (1, "") and complained.startswith("posembed: there is no folder")
    assert complained.count("\n") == 1
