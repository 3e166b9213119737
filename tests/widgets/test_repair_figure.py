"""Figure 13: its maps are those that were given, and its JavaScript says where two of them differ."""

import base64

import numpy as np
import pytest
from widget_checks import assert_refused, rows_of, run_tests

from posembed.widgets import Repair, RepairFigure
from posembed.widgets.repairs import NOTHING, STEPS

NAN = float("nan")
CLOCK = Repair(
    [[0.0, 0.0], [0.5, -2.0]], [[0.0, 1.0], [0.5, NAN]], "both tokens are alike", "by place", "text", "token"
)
ZERO = Repair(np.ones((3, 5)), np.zeros((3, 5)), "it moves", "it stays", "pads", "token")


@pytest.fixture(scope="module")
def figure():
    return RepairFigure({"the clock": CLOCK, "padding": ZERO})


def test_a_map_is_kept_to_one_step_of_254(figure):
    for stored, given in zip(figure.repairs, (CLOCK, ZERO), strict=True):
        for name in ("broken", "mended"):
            numbers = np.array(getattr(given, name))
            steps = np.frombuffer(base64.b64decode(stored[name]), dtype=np.uint8).astype(int).reshape(stored["shape"])
            assert ((steps == NOTHING) == np.isnan(numbers)).all()
            values = np.where(steps == NOTHING, np.nan, (2 * steps / STEPS - 1) * stored["most"])
            assert values == pytest.approx(numbers, abs=stored["most"] / STEPS, nan_ok=True)
            # A zero stays one.
            assert (values[numbers == 0] == 0).all()


def test_the_module(tmp_path, figure):
    run_tests("repairs", tmp_path, figure.source(), {"state": figure.state()})


def test_without_javascript(figure):
    assert rows_of(figure) == [
        ["code", "broken", "mended"],
        ["the clock", "both tokens are alike", "by place"],
        ["padding", "it moves", "it stays"],
    ]


@pytest.mark.bad_input
def test_what_it_refuses():
    def made(broken, mended):
        return lambda: RepairFigure({"the clock": Repair(broken, mended, "", "", "", "")})

    assert_refused(lambda: RepairFigure([CLOCK]), "give a Mapping")
    assert_refused(lambda: RepairFigure({"the clock": [[0.0]]}), "repairs is {'the clock': [[0.0]]}")
    assert_refused(made([1.0], [1.0]), "'the clock'", "no matrix of numbers")
    assert_refused(made([[NAN]], [[1.0]]), "no matrix of numbers")
    assert_refused(made([[np.inf]], [[1.0]]), "no matrix of numbers")
