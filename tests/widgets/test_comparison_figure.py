"""Figure 12: its means, intervals and differences are the package's, and its JavaScript takes one arm as zero."""

import numpy as np
import pytest
from widget_checks import assert_refused, rows_of, run_tests

from posembed.stats import difference, interval
from posembed.widgets import ComparisonFigure
from posembed.widgets.comparison import DECIMALS

ROUNDING = 0.5 * 10**-DECIMALS + 1e-12
NAN = float("nan")
RESULTS = {
    "learned": [[1.6, 1.9, 2.1], [1.7, 1.8, NAN], [1.5, 1.95, NAN]],
    "NoPos": [[2.9, 3.0, 3.3], [2.8, 3.1, 3.2], [2.95, 3.2, NAN]],
    "ALiBi": [[1.1, NAN, 1.2], [1.2, NAN, 1.4], [1.3, NAN, 1.5]],
}
GIVEN = {"title": "Loss by rate", "x": [15, 40, 60], "xlabel": "hidden, %", "ylabel": "loss, nats"}


@pytest.fixture(scope="module")
def figure():
    return ComparisonFigure(RESULTS, **GIVEN)


def run_at(name, place):
    return [value for value in np.array(RESULTS[name])[:, place].tolist() if value == value]


def test_ends_are_those_of_the_seeds_that_were_run(figure):
    for series in figure.series:
        for place, ends in enumerate(series["ends"]):
            run = run_at(series["name"], place)
            if len(run) < 2:
                assert ends is None
                continue
            wanted = interval(run)
            assert ends == pytest.approx([wanted.mean, wanted.low, wanted.high], abs=ROUNDING)
    assert figure.series[0]["seeds"][1] == [1.7, 1.8, None]


def test_arms_may_be_off_at_first():
    assert ComparisonFigure(RESULTS, **GIVEN).shown == [*RESULTS]
    assert ComparisonFigure(RESULTS, **GIVEN, shown=["NoPos"]).shown == ["NoPos"]


def test_arms_are_written_as_their_schemes():
    arms = {"nopos": [[1, 2, 3]] * 2, "t5": [[1, 2, 4]] * 2}
    figure = ComparisonFigure(arms, **GIVEN, less="nopos", shown=["t5"])
    assert [each["name"] for each in figure.series] == ["NoPos", "T5"]
    assert (figure.less, figure.shown, figure.differences["NoPos"]["T5"][2]) == ("NoPos", ["T5"], [1.0] * 3)
    assert_refused(lambda: ComparisonFigure(arms | {"NoPos": arms["t5"]}, **GIVEN), "written alike", "another name")


def test_differences_are_taken_seed_by_seed(figure):
    assert {zero: [*others] for zero, others in figure.differences.items()} == {
        zero: [name for name in RESULTS if name != zero] for zero in RESULTS
    }
    wanted = difference(run_at("NoPos", 1), run_at("learned", 1))
    assert figure.differences["learned"]["NoPos"][1] == pytest.approx(
        [wanted.mean, wanted.low, wanted.high], abs=ROUNDING
    )
    # One seed was run of both: no interval; of ALiBi none at 40.
    assert figure.differences["learned"]["NoPos"][2] is figure.differences["NoPos"]["ALiBi"][1] is None


def test_names_of_schemes_have_their_looks_and_the_figure_room_for_each_arm(figure):
    assert [each["scheme"] for each in figure.series] == ["learned", "nopos", "alibi"]
    assert ComparisonFigure({"a": [[1, 2]] * 2, "b": [[1, 2]] * 2}, **GIVEN | {"x": [0, 1]}).series[0]["scheme"] == ""
    phone, wide = ComparisonFigure.height
    assert figure.height == (phone + 3 * figure.of_an_arm[0], wide + 2 * figure.of_an_arm[1])


def test_the_module(tmp_path, figure):
    run_tests("comparison", tmp_path, figure.source(), {"state": figure.state()}, private="axisOf, ticks, short")


def test_without_javascript(figure):
    head, *rows = rows_of(figure)
    assert head == ["", "15", "40", "60"]
    assert rows[0][0] == "learned" and rows[0][1].startswith("1.600 (1.352 to 1.848)") and rows[2][2] == ""
    long = ComparisonFigure({"a": np.zeros((2, 50)), "b": np.ones((2, 50))}, **GIVEN | {"x": range(50)})
    assert rows_of(long)[0] == ["", "0", "10", "20", "29", "39", "49"]


@pytest.mark.bad_input
def test_what_it_refuses():
    def made(results=RESULTS, **changes):
        return lambda: ComparisonFigure(results, **GIVEN | changes)

    assert_refused(made({"learned": RESULTS["learned"]}), "two arms or more", "a mapping")
    assert_refused(made([RESULTS["learned"]] * 2), "two arms or more", "a mapping")
    assert_refused(made(RESULTS | {"NoPos": [[1.0, 2.0, 3.0]]}), "'NoPos'", "(seeds, 3 places)", "NaN where")
    assert_refused(made(RESULTS | {"NoPos": [[1.0, 2.0]] * 3}), "'NoPos'", "3 numbers for each seed")
    assert_refused(made(RESULTS | {"NoPos": "high"}), "'NoPos'")
    assert_refused(made(RESULTS | {"NoPos": [[1.0, float("inf"), 2.0]] * 3}), "'NoPos'", "infinite")
    assert_refused(made(RESULTS | {"NoPos": [[1.0, 2.0, 3.0]] * 2}), "learned 3, NoPos 2, ALiBi 3", "NaN")
    assert_refused(made(x=[40, 15, 60]), "do not rise")
    assert_refused(made(x=[15, NAN, 60]), "do not rise")
    assert_refused(made(x=[15, "forty", 60]), "neither a number nor a name")
    assert_refused(made(x=[15, 15, 60]), "2 different places of 3")
    assert_refused(made(less="RoPE"), "less", "ALiBi")
    assert_refused(made(shown=["NoPos", "RoPE"]), "shown is 'RoPE'", "ALiBi")
    assert_refused(made(at=30), "at is 30", "15 to 60")
    assert_refused(made({f"{k}": np.random.rand(9, 400) for k in range(9)}, x=range(400)), "compare fewer arms")
