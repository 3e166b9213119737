"""A small run of the study of length, trained, read and asked again: it gives what is stored."""

import pytest
from smoke import RESULTS, TINY, TOLERANCE

from posembed.training import read_results
from posembed.training.machine import machine_of, versions
from studies import length
from studies.search import Search
from studies.training import longer, reach, remedies
from studies.training.settings import changed

RUN = changed(length.arm("kerple").runs([])[0], **TINY)


def once_more(folder):
    """Of an arm that is not fitted, so that it is asked in a second run, when the formula has its coefficients."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (longer, reach, remedies):
            patch.setattr(module, "TEXTS", 16)
        patch.setattr(length, "SEEDS", (1,))
        patch.setattr(length, "arms", lambda: [Search("tiny", RUN, (1,))])
        found = []
        for coefficients in ({}, {"law": (1.0, 1.0)}):
            patch.setattr(length, "COEFFICIENTS", coefficients)
            length.run_study(folder, engine="serial")
            found += read_results(folder)
    return found


@pytest.fixture
def few_tokens():
    """The stored run was measured on all texts of the losses, and on 16 of what is asked."""


def test_a_small_run_gives_the_stored_numbers_again(tmp_path):
    (stored,) = read_results(RESULTS / "length-smoke")
    read, asked = once_more(tmp_path)
    assert stored.config == RUN and "longer" not in read.metrics and read.metrics["reach"] == asked.metrics["reach"]
    if (stored.machine, stored.versions["torch"]) == (machine_of(RUN), versions()["torch"]):
        assert asked.metrics == stored.metrics
    assert asked.metrics["remedies"].keys() == {"sharper"}
    assert asked.metrics["longer"]["half"] == pytest.approx(stored.metrics["longer"]["half"], abs=TOLERANCE)
    for way, losses in stored.metrics["longer"].items():
        if way != "half":
            assert [*asked.metrics["longer"][way].values()] == pytest.approx([*losses.values()], abs=TOLERANCE)
