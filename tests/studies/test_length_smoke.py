"""A small run of the study of length, trained, read and asked again: it gives what is stored."""

from functools import partial

import pytest
from smoke import RESULTS, TINY, TOLERANCE

from posembed.training import read_results, run_grid
from posembed.training.machine import machine_of, versions
from studies import length
from studies.training import longer, reach
from studies.training.runs import train
from studies.training.settings import changed

RUN = changed(length.arm("t5").runs([])[0], **TINY)


def once_more(folder):
    run_grid([RUN], out=folder, engine="serial", save_models=True, train=partial(train, folder=folder))
    length.look(RUN, folder, longer=False)
    (read,) = read_results(folder)
    length.look(RUN, folder)
    (asked,) = read_results(folder)
    return read, asked


@pytest.fixture
def few_tokens():
    """The stored run was measured on all texts of the losses, and on 16 of what is asked."""


def test_a_small_run_gives_the_stored_numbers_again(tmp_path, monkeypatch):
    for module in (longer, reach):
        monkeypatch.setattr(module, "TEXTS", 16)
    (stored,) = read_results(RESULTS / "length-smoke")
    read, asked = once_more(tmp_path)
    assert stored.config == RUN and "longer" not in read.metrics and read.metrics["reach"] == asked.metrics["reach"]
    if (stored.machine, stored.versions["torch"]) == (machine_of(RUN), versions()["torch"]):
        assert asked.metrics == stored.metrics
    assert asked.metrics["longer"]["half"] == pytest.approx(stored.metrics["longer"]["half"], abs=TOLERANCE)
    for way, losses in stored.metrics["longer"].items():
        if way != "half":
            assert [*asked.metrics["longer"][way].values()] == pytest.approx([*losses.values()], abs=TOLERANCE)
