"""Figure 11: its biases and numbers are those of the study, and its JavaScript says what a dose cost."""

import pytest
from widget_checks import assert_refused, rows_of, run_tests

from posembed.similarity import perturbed_bias, properties_of_matrix
from posembed.stats import difference
from posembed.training import doses, interval, load_runs
from posembed.widgets import DoseFigure
from posembed.widgets.doses import ALL_DOSES, DECIMALS, NAMES

ROUNDING = 0.5 * 10**-DECIMALS + 1e-12


@pytest.fixture(scope="module")
def runs():
    return load_runs("tasks")


@pytest.fixture(scope="module")
def figure(runs):
    return DoseFigure(runs, violated="symmetry", degrees=48)


def test_the_numbers_are_those_of_the_study(figure, runs):
    assert (figure.violated, figure.dose) == ("symmetry", 48)
    for task in figure.tasks:
        undosed = doses.accuracies(task["name"], *doses.UNDOSED, runs)
        for violated in NAMES:
            for k, degrees in enumerate(doses.DEGREES, 1):
                right = doses.accuracies(task["name"], violated, degrees, runs)
                whole, change = interval(right), difference(right, undosed)
                wanted = [whole.mean, whole.low, whole.high, *right]
                assert task["right"][violated][k] == pytest.approx(wanted, abs=ROUNDING)
                lost = [change.mean, change.low, change.high]
                assert task["lost"][violated][k - 1] == pytest.approx(lost, abs=ROUNDING)


def test_the_module(tmp_path, figure):
    biases = {name: [perturbed_bias(name, degrees).tolist() for degrees in ALL_DOSES] for name in NAMES}
    fixtures = {"state": figure.state(), "biases": biases}
    run_tests("doses", tmp_path, figure.source(), fixtures, private="short")


def test_a_bias_has_its_three_numbers(figure):
    for name in NAMES:
        for k, degrees in enumerate(ALL_DOSES):
            found = properties_of_matrix(perturbed_bias(name, degrees)).to_dict()
            wanted = {each: pytest.approx(found[each], abs=0.0006) for each in NAMES}
            assert figure.biases[name][k]["numbers"] == wanted


def test_without_javascript(figure):
    head, *rows = rows_of(figure)
    assert head == ["violated", "dose", *doses.TASKS] and len(rows) == 15
    assert rows[-1][:2] == ["symmetry", "48"]
    assert rows[-1][3] == f"{figure.tasks[1]['right']['symmetry'][-1][0]:.2f}"


def test_what_it_refuses(runs):
    assert_refused(lambda: DoseFigure(runs[:10]), "the runs of the doses are not all there", "load_runs('tasks')")
    assert_refused(lambda: DoseFigure(runs, violated="locality"), "violated", "symmetry")
    assert_refused(lambda: DoseFigure(runs, degrees=20), "degrees is 20; choose among 0, 12, 24, 36, 48")
