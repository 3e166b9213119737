"""``posembed results``: a folder of results for people, and as CSV."""

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
    assert lines == [
        "run loss",
        "scheme learned 3.0000",
        "scheme nopos, test length 128 4.0000",
        "scheme rope 2.0000",
    ]


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
