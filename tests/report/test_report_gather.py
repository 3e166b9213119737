"""Sources become findings; one that cannot be read leaves the others as they are."""

from pathlib import Path

import pytest
import torch

from posembed import sinusoidal
from posembed.errors import CheckpointNotFoundError, PosembedError, PositionTableError, ReportError
from posembed.report.findings import STEPS, Findings
from posembed.report.gather import STEPS_OF_A_SOURCE, Refused, gather, labels

NOWHERE = Path("no") / "such" / "folder"


def test_a_source_that_cannot_be_read_stands_in_its_place():
    first, second, third = gather([sinusoidal(20, 8), NOWHERE, sinusoidal(30, 8)])
    assert isinstance(first, Findings) and isinstance(third, Findings)
    assert isinstance(second, Refused) and isinstance(second.reason, CheckpointNotFoundError)
    assert (first.table.n_positions, third.table.n_positions) == (20, 30)


def test_what_is_told_is_counted(broken):
    told = []
    gather([sinusoidal(20, 8)], tell=told.append)
    assert len(told) == STEPS_OF_A_SOURCE
    assert [text.split(": ")[1] for text in told] == ["reading the table", *STEPS]


def test_a_table_with_nan_keeps_what_can_be_said_of_it(broken):
    assert broken.table.non_finite_rows == [3]
    assert isinstance(broken.between, PositionTableError)
    assert len(broken.refusals()) == len(set(broken.refusals())) >= 1
    assert all("3" in line for line in broken.refusals())


def test_rows_are_passed_on():
    (found,) = gather([sinusoidal(64, 8)], rows=(0, 32))
    assert found.between.n_rows == 32
    assert found.table.n_positions == 64


@pytest.mark.bad_input
def test_one_source_that_cannot_be_read_is_its_own_error():
    with pytest.raises(CheckpointNotFoundError, match="such"):
        gather([NOWHERE])


@pytest.mark.bad_input
def test_several_of_which_none_can_be_read_are_named_in_one_line():
    with pytest.raises(ReportError, match="none of the 2 sources can be read") as caught:
        gather([NOWHERE, torch.zeros(2, 2, 2)])
    assert "folder: " in str(caught.value) and "table 2: " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"part": ["a", "b"]}, "part is given 2 times for 3 sources"),
        ({"offset": [0, 0, 0, 0]}, "offset is given 4 times for 3 sources"),
        ({"label": ["x"]}, "1 labels do not fit 3 sources"),
    ],
)
def test_options_must_fit_the_sources(options, why):
    with pytest.raises(ReportError, match=why):
        gather([sinusoidal(20, 8)] * 3, **options)


@pytest.mark.bad_input
def test_no_source():
    with pytest.raises(ReportError, match="at least one source"):
        gather([])


def test_an_option_is_for_all_or_one_for_each(monkeypatch):
    asked = []

    def load(source, **options):
        asked.append((options["offset"], options["part"]))
        raise PosembedError("not today")

    monkeypatch.setattr("posembed.report.gather.load_table", load)
    with pytest.raises(ReportError):
        gather(["a", "b"], offset=[1, None], part="text")
    with pytest.raises(ReportError):
        gather(["a", "b"], offset=[2])
    assert asked == [(1, "text"), (None, "text"), (2, None), (2, None)]


def test_labels_are_short_and_differ(tmp_path):
    (tmp_path / "gpt2").mkdir()
    sources = ["gpt2", str(tmp_path / "gpt2"), tmp_path, "owner/gpt2", sinusoidal(8, 4)]
    assert labels(sources, [{}] * 5) == ["gpt2 (1)", "gpt2 (2)", tmp_path.name, "owner/gpt2", "table 5"]
    assert labels(["w", "w"], [{"part": "encoder"}, {"part": "decoder"}]) == ["w encoder", "w decoder"]
    assert labels(["a/one", "b/two", "c/two"], [{}] * 3) == ["one", "b/two", "c/two"]
