"""Figure 8: its numbers are those of the study, and its JavaScript says what stands at a state."""

import pytest
from widget_checks import assert_refused, rows_of, run_tests

from posembed.training import depth, images, interval, load_runs
from posembed.widgets import DepthFigure
from posembed.widgets.depth import DECIMALS, IMAGE_READ, IMAGE_SHARES, TEXT_READ, TEXT_SHARES

ROUNDING = 0.5 * 10**-DECIMALS + 1e-12


@pytest.fixture(scope="module")
def runs():
    return load_runs("depth")


@pytest.fixture(scope="module")
def figure(runs):
    return DepthFigure(runs)


def assert_shows(series, trained, beside):
    """A series has mean and interval of the trained models, and the mean of what stands beside them."""
    for state, (own, other) in enumerate(zip(zip(*trained, strict=True), zip(*beside, strict=True), strict=True)):
        wanted = interval(own)
        assert series["trained"][state] == pytest.approx([wanted.mean, wanted.low, wanted.high], abs=ROUNDING)
        assert series["beside"][state] == pytest.approx(sum(other) / len(other), abs=ROUNDING)


def test_the_numbers_of_texts_are_those_of_the_study(figure, runs):
    parts = [{arm: depth.part(n, arm) for arm in depth.ARMS} for n in depth.WIDTHS] + [{"input": depth.masked_part()}]
    for model, arms in zip(figure.models, parts, strict=False):
        assert [arm["name"] for arm in model["arms"]] == [*arms]
        for arm in model["arms"]:
            found = [run.metrics["depth"] for run in arms[arm["name"]].reported(runs)]
            for measure, keys in (("shares", TEXT_SHARES), ("read", TEXT_READ)):
                for series, key in zip(arm[measure], keys.values(), strict=True):
                    both = ([each[of][key] for each in found] for of in ("trained", "untrained"))
                    assert_shows(series, *both)
            of_cost = ([each["trained"][key] for each in found] for key in ("project out", "project out, control"))
            assert_shows(arm["cost"], *of_cost)


def test_the_numbers_of_images_are_those_of_the_study(figure, runs):
    *_, model = figure.models
    assert [arm["name"] for arm in model["arms"]] == [*images.ARMS]
    for arm in model["arms"]:
        found = [run.metrics["patches"] for run in images.part(arm["name"]).reported(runs)]
        for measure, keys in (("shares", IMAGE_SHARES), ("read", IMAGE_READ)):
            for series, key in zip(arm[measure], keys.values(), strict=True):
                both = ([each[of][measure][key] for each in found] for of in ("layers", "untrained"))
                assert_shows(series, *both)
        assert_shows(
            arm["cost"], *([each["ablations"]["project out"][of] for each in found] for of in ("cost", "control"))
        )


def test_a_reading_has_its_constant_guess_beside_it(figure):
    for model in figure.models:
        for arm in model["arms"]:
            assert all(series["chance"] is not None for series in arm["read"])
            assert all(series["chance"] is None for series in arm["shares"])
    # One of 64 positions, one of 36 patches.
    assert figure.models[0]["arms"][0]["read"][0]["chance"] == pytest.approx(1 / 64, abs=ROUNDING)
    assert figure.models[3]["arms"][0]["read"][0]["chance"] == pytest.approx(1 / 36, abs=ROUNDING)


def test_the_module(tmp_path, figure):
    run_tests("depth", tmp_path, figure.source(), {"state": figure.state()}, private="short")


def test_without_javascript(figure):
    head, *rows = rows_of(figure)
    assert head[:2] == ["model", "positions"] and len(rows) == 16
    learned = figure.models[3]["arms"][1]["shares"]
    assert rows[-4] == [
        "images, 6 layers",
        "learned",
        *(f"{series['trained'][state][0]:.2f}" for series in learned[:2] for state in (1, 5)),
    ]


def test_what_it_refuses(runs):
    assert_refused(lambda: DepthFigure(runs[:10]), "the runs by depth are not all there", "load_runs('depth')")
