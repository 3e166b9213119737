"""Figure 9: its numbers are those of the study, and its JavaScript makes of them what NumPy does."""

import re

import numpy as np
import pytest
from nopos_runs import ALL, invented_error, invented_runs, watched_steps
from widget_checks import assert_refused, rows_of, run_tests

from posembed.training import interval, load_results
from posembed.training.nopos import LARGER, MASKED, PUBLISHED_PROBE, SEEDS, SMALL, published_probe, reported
from posembed.widgets import LayerErrorFigure
from posembed.widgets.layer_errors import DECIMALS, GROUPS, NAMES

ROUNDING = 0.5 * 10**-DECIMALS + 1e-12
STEPS = {"causal": [SMALL.steps], "watched": watched_steps(), "larger": [LARGER.steps], "masked": [MASKED.steps]}
SEEDS_OF = {"causal": 5, "watched": 3, "larger": 3, "masked": 5}


@pytest.fixture(scope="module")
def runs():
    return invented_runs()


@pytest.fixture(scope="module")
def figure(runs):
    return LayerErrorFigure(runs)


def group_in(figure, key):
    return next(group for group in figure.groups if group["key"] == key)


def invented(key, scheme, step):
    """The errors "seed layer" of the runs that were planned for a group."""
    _, pattern, _ = GROUPS[key]
    configs = ALL[pattern.format(scheme)].runs
    return [[invented_error(config, step, layer) for layer in range(config.n_layers + 1)] for config in configs]


@pytest.mark.parametrize("key", GROUPS)
def test_a_group_holds_what_its_runs_do(figure, key):
    group = group_in(figure, key)
    assert group["steps"] == STEPS[key]
    assert group["seeds"] == list(range(1, SEEDS_OF[key] + 1))
    assert tuple(scheme["key"] for scheme in group["schemes"]) == GROUPS[key][2]
    for scheme in group["schemes"]:
        for step, errors, intervals in zip(group["steps"], scheme["errors"], scheme["intervals"], strict=True):
            wanted = invented(key, scheme["key"], step)
            assert errors == wanted
            for layer, found in enumerate(intervals):
                its = interval([run[layer] for run in wanted])
                assert found == pytest.approx([its.mean, its.low, its.high], abs=ROUNDING)


@pytest.mark.parametrize(
    ("key", "name", "about", "middle"),
    [
        (
            "larger",
            "larger causal: 6 layers, width 128",
            f"trained for {LARGER.steps} steps on texts of 128 characters.",
            32,
        ),
        ("masked", "small masked: 4 layers, width 64", "Masked models of 4 layers, width 64, ", 16),
    ],
)
def test_a_group_says_what_its_models_are(figure, key, name, about, middle):
    group = group_in(figure, key)
    assert group["name"] == name
    assert about in group["about"]
    assert group["middle"] == middle
    # Two positions drawn at random from T are (T² − 1) / 3T apart on the mean.
    length = 4 * middle
    assert group["random"] == pytest.approx((length**2 - 1) / (3 * length))


def test_a_group_that_is_not_complete_is_left_out():
    without = ["causal, rope", "larger, alibi", "larger, nopos, length 32"]
    figure = LayerErrorFigure(invented_runs(without=without))
    assert [group["key"] for group in figure.groups] == ["watched", "masked"]
    assert figure.group == "watched"
    assert figure.step == SMALL.steps


def test_the_paper_s_curves_are_those_of_the_paper(figure):
    assert figure.published["shares"].keys() == PUBLISHED_PROBE.keys()
    for scheme, shares in figure.published["shares"].items():
        assert shares == pytest.approx(published_probe(scheme), abs=ROUNDING)
    assert "of 24 layers, texts of 1024 tokens" in figure.published["about"]


def test_what_is_chosen_at_first(figure):
    assert (figure.group, figure.step, figure.depth, figure.paper) == ("causal", SMALL.steps, 0.5, True)
    assert (figure.schemes, figure.seeds) == (["nopos", "learned", "alibi"], list(SEEDS))
    # Where the first groups are not complete, the next is, with its own steps.
    parts = ["causal, rope", "causal, alibi, watched"]
    larger = LayerErrorFigure(invented_runs(without=parts))
    assert (larger.group, larger.step, larger.depth) == ("larger", LARGER.steps, 0.5)


@pytest.mark.parametrize("key", GROUPS)
def test_without_javascript_it_is_a_table_of_the_same_numbers(figure, key):
    figure.group = key
    html = figure.fallback_html()
    group = group_in(figure, key)
    header, *rows = rows_of(figure)
    assert header == ["after steps", "layer", *(NAMES[scheme] for scheme in GROUPS[key][2])]
    assert f"mean of {SEEDS_OF[key]} seeds" in html
    assert f"Always the middle: {group['middle']:.1f}; at random: {group['random']:.1f}." in html
    assert [row[:2] for row in rows] == [
        [str(step), str(layer)] for step in STEPS[key] for layer in range(group["n_layers"] + 1)
    ]
    for step, layer, *cells in rows:
        for scheme, cell in zip(GROUPS[key][2], cells, strict=True):
            its = interval([run[int(layer)] for run in invented(key, scheme, int(step))])
            mean, low, high = (float(each.replace("−", "-")) for each in re.findall(r"−?[\d.]+", cell))
            assert [mean, low, high] == pytest.approx([its.mean, its.low, its.high], abs=0.05 + ROUNDING)
    figure.group = "causal"


def test_small_errors_have_two_decimals_and_zero_has_no_sign():
    runs = invented_runs()
    for run in reported("causal, learned", runs):
        seed = run.config.seed
        run.metrics["layers"]["mae"] = [0.0, 1e-4 * seed - 2e-4, 0.1 * seed, 0.9 + 0.05 * seed, 10.0]
    column = [row[3] for row in rows_of(LayerErrorFigure(runs))[1:]]
    wanted = ["0.00 (0.00 to 0.00)", "0.00 (0.00 to 0.00)", "0.30 (0.10 to 0.50)"]
    assert column == [*wanted, "1.1 (0.95 to 1.1)", "10.0 (10.0 to 10.0)"]


A_LIST = "; give a list of results, such as load_runs('nopos')"


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("given", "pieces"),
    [
        ("nopos", ["runs is 'nopos'", A_LIST]),
        (load_results("nopos"), ["runs[0] is 'key'", A_LIST]),
        ([{"loss": 1.0}], ["runs[0] is {'loss': 1.0}", A_LIST]),
        (3, ["runs is 3", A_LIST]),
        ([], ["no group of models is complete among these runs; run posembed grid nopos"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_drawn_is_an_error_that_says_why(given, pieces):
    assert_refused(lambda: LayerErrorFigure(given), *pieces)


def cases():
    """What the module must make of some choices, by NumPy."""
    choices = [
        ("causal", list(NAMES), [1, 2, 3, 4, 5], 0, 2),
        ("causal", ["nopos", "rope"], [2, 5], 0, 0),
        ("watched", ["nopos", "learned", "alibi"], [1, 2, 3, 4, 5], 1, 4),
        ("watched", ["alibi"], [3], 0, 1),
        ("larger", ["learned"], [1, 2, 3], 0, 5),
        ("masked", list(NAMES), [4, 5], 0, 3),
    ]
    for key, schemes, seeds, place, layer in choices:
        step = STEPS[key][place]
        own = [scheme for scheme in GROUPS[key][2] if scheme in schemes]
        shown = [seed for seed in range(1, SEEDS_OF[key] + 1) if seed in seeds]
        lines = {scheme: [invented(key, scheme, step)[seed - 1] for seed in shown] for scheme in own}
        n_layers = len(lines[own[0]][0]) - 1
        yield {
            "choice": {"group": key, "schemes": schemes, "seeds": seeds, "step": step, "depth": layer / n_layers},
            "layer": layer,
            "shown": shown,
            "whole": len(shown) == SEEDS_OF[key],
            "lines": lines,
            "means": {scheme: np.mean(its, axis=0).tolist() for scheme, its in lines.items()},
        }


def test_the_module(figure, tmp_path):
    depths = np.linspace(0, 1, 25)
    fixtures = {
        "state": figure.state(),
        "cases": list(cases()),
        "published": {scheme: published_probe(scheme) for scheme in PUBLISHED_PROBE},
        "depths": depths.tolist(),
    }
    private = "flip, errorWords, listed, whose, heading, sentence, stepWords, lookOf, LOOKS, range"
    run_tests("layer-errors", tmp_path, figure.source(), fixtures, private=private)
