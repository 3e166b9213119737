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
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert lines[:4] == ["3 runs in " + str(folder), "", "loss", "mean low high n"]
    assert sorted(lines[4:]) == ["scheme learned 3.0 1", "scheme nopos, test length 128 4.0 1", "scheme rope 2.0 1"]


def test_results_of_a_study_have_a_line_an_arm_with_its_interval(call):
    code, printed, complained = call("results", "encodings", "--against", "nopos")
    assert (code, complained) == (0, "")
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert lines[0] == "40 runs in encodings" and lines[3] == "mean low high n minus minus_low minus_high pairs"
    assert "rope 1.3147 1.3087 1.3207 5 -0.4717 -0.5542 -0.3892 5" in lines
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
    lines = [line.split() for line in printed.splitlines()[-2:]]
    assert all(line[:2] == ["text", "hash"] and len(line[2]) == 8 and line[3:] == ["2.0", "1"] for line in lines)


def test_results_as_csv_hold_every_value(call, folder):
    code, printed, complained = call("results", folder, "--csv")
    assert (code, complained) == (0, "")
    table = pandas.read_csv(io.StringIO(printed)).set_index("config.scheme")
    assert table.loc["rope", "key"] == RunConfig(scheme="rope").key and table.loc["nopos", "config.test_length"] == 128
    assert json.loads(table.loc["rope", "metrics.scheme"]) == {"weight": [0.5, 1.0]}
    assert json.loads(table.loc["learned", "metrics.curve"]) == [4.0, 3.0] and set(table["machine"]) == {"a, CPU"}


@pytest.mark.bad_input
def test_differences_from_an_arm_are_not_asked_of_the_runs_themselves(call, folder):
    code, printed, complained = call("results", folder, "--csv", "--against", "nopos")
    assert (code, printed) == (2, "") and "--csv prints the runs" in complained


@pytest.mark.bad_input
def test_results_that_cannot_be_read_are_one_line(call, folder):
    (folder / "notes.json").write_text("[]")
    code, printed, complained = call("results", folder)
    said = "notes.json is damaged, or of another kind; move it away and run its config again"
    assert (code, printed, complained) == (1, "", f"posembed: {said}\n")
    code, printed, complained = call("results", folder / "nothing")
    assert (code, printed) == (1, "") and complained.startswith("posembed: there is no folder")
    assert complained.count("\n") == 1
