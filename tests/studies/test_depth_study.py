"""Small runs of the two parts of the study of depth, which can be had again."""

import pytest
from smoke import TINY, check

from studies import depth, images
from studies.training.settings import changed

SMOKE = "depth-smoke"
TEXT = changed(depth.arm_of(4, "every layer").runs[0], **TINY | {"length": 16})
IMAGE = changed(images.arm_of("sinusoidal, 2-D").runs[0], **TINY)


@pytest.fixture
def few_tokens():
    """Stored runs are measured on all texts."""


def test_a_text_run_gives_the_stored_numbers_again(tmp_path):
    found = check(TEXT, SMOKE, tmp_path).metrics["depth"]
    assert {len(column) for of in found.values() for column in of.values()} == {3}
    # Where rows are added again they are read from each state; what enters the first layer holds them by definition.
    assert found["trained"]["read position"][0] > 0.9


def test_a_run_on_images_gives_the_stored_numbers_again(tmp_path):
    found = check(IMAGE, SMOKE, tmp_path).metrics["patches"]
    assert found["sizes"]["24"].keys() == {"as it is", "interpolated"}
    assert len(found["layers"]["shares"]["place"]) == 3
