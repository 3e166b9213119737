"""Small runs of the three parts of the study of tasks, as they are stored: they can be had again."""

import os

import pytest
from smoke import TINY, check

from studies.doses import run
from studies.training.settings import changed
from studies.which_positions import pretraining

STORED = "tasks-smoke"

DOSES = [changed(run("order", violated, 24.0, seed=1), **TINY) for violated in ("monotonicity", "symmetry")]
# Of part 2 and of part 3: an arm, and the task that it is trained on further.
STARTS = {("learnable_sinusoidal", "both", "tied"): "xquad-moved", ("learned", "relative", "untied"): "trec"}


def pretrained(arm):
    shaw = {"shaw": {"vectors": arm[0], "max_distance": 31 if arm[0] == "learned" else None}}
    return changed(pretraining(*arm).runs[0], scheme_options=shaw, length=32, subwords=300, **TINY)


def further(arm):
    start = pretrained(arm)
    new = {"objective": "task", "task": STARTS[arm], "masking_rate": None, "inspections": [], "start": start.told}
    return changed(start, **new)


@pytest.fixture
def few_tokens():
    """Stored runs are measured on all texts."""


@pytest.mark.parametrize("config", DOSES, ids=["monotonicity", "symmetry"])
def test_a_dose_gives_the_stored_numbers_again(config, tmp_path):
    check(config, STORED, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("arm", STARTS, ids=["part 2", "part 3"])
def test_what_is_trained_further_gives_the_stored_numbers_again(arm, tmp_path):
    check(pretrained(arm), STORED, tmp_path, save_model=True)
    if "POSEMBED_TASKS" not in os.environ:
        pytest.skip("needs the real tasks, in the folder that POSEMBED_TASKS names")
    check(further(arm), STORED, tmp_path)
