"""The study of depth: what is compared, and small runs of its two parts, which can be had again."""

from dataclasses import replace

import pytest
from smoke import TINY, check

from posembed.errors import RunError
from posembed.stats import family, interval
from posembed.training import depth, images, load_runs
from posembed.training.plans.presets import load_study

SMOKE = "depth-smoke"
TEXT = replace(depth.part(4, "every layer").runs[0], **TINY | {"length": 16})
IMAGE = replace(images.part("sinusoidal, 2-D").runs[0], **TINY)


@pytest.fixture
def few_tokens():
    """Stored runs are measured on all texts."""


@pytest.fixture(scope="module")
def runs():
    return load_runs("depth")


@pytest.fixture(scope="module")
def table(runs):
    return family(depth.contrasts(runs))


def test_every_run_of_the_plan_is_stored(runs):
    study = load_study("depth")
    for part in study.parts:
        assert [run.config.seed for run in part.reported(runs)] == [1, 2, 3, 4, 5]
    assert len(study.parts) == 2 * len(depth.ARMS) + 1 + len(images.ARMS)
    # No rate is the lowest or the highest that was tried: the next one was tried too.
    for part in study.parts:
        rates = sorted({config.learning_rate for config in part.tuning})
        chosen = part.reported(runs)[0].config.learning_rate
        assert rates[0] < chosen < rates[-1], part.name


def test_all_planned_contrasts_stand_in_one_family(table):
    counts = {"8 of losses": 8, "2 of depths": 2, "16 by layer": 16, "4 of costs": 4, "37 of images": 37}
    assert len(table) == sum(counts.values()) and set(table["n"]) == {5}
    assert (table["holm"] >= table["p"]).all()


def test_a_contrast_is_the_mean_difference_seed_by_seed(runs, table):
    of = {arm: depth.part(12, arm).reported(runs) for arm in ("input", "every layer")}
    differences = [
        again.metrics["loss"] - once.metrics["loss"] for again, once in zip(of["every layer"], of["input"], strict=True)
    ]
    found = table.loc["12 layers: every layer minus input"]
    wanted = interval(differences)
    assert [found["mean"], found["low"], found["high"]] == pytest.approx([wanted.mean, wanted.low, wanted.high])


def test_a_study_that_is_not_whole_is_refused(runs):
    with pytest.raises(RunError, match="is not complete; run its study, with posembed grid"):
        depth.contrasts(runs[:20])


def test_a_text_run_gives_the_stored_numbers_again(tmp_path):
    found = check(TEXT, SMOKE, tmp_path).metrics["depth"]
    assert {len(column) for of in found.values() for column in of.values()} == {3}
    # Where rows are added again they are read from each state; what enters the first layer holds them by definition.
    assert found["trained"]["read position"][0] > 0.9


def test_a_run_on_images_gives_the_stored_numbers_again(tmp_path):
    found = check(IMAGE, SMOKE, tmp_path).metrics["patches"]
    assert found["sizes"]["24"].keys() == {"as it is", "interpolated"}
    assert len(found["layers"]["shares"]["place"]) == 3
