"""Figure 13: its maps are those that were given, and its JavaScript knows what a line changes."""

import base64
import io

import numpy as np
import pytest
from PIL import Image
from widget_checks import assert_refused, run_tests

from posembed.widgets import RepairFigure
from posembed.widgets.repairs import NOTHING, STEPS

NAN = float("nan")
CLOCK = [[0.0, 0.0], [0.5, -2.0]], [[0.0, 1.0], [0.5, NAN]]
CODE = "def broken(x):\n    y = x + 1\n\n    return y[0]\n", "def mended(x):\n    y = x + 1\n    return y[1]\n"


@pytest.fixture(scope="module")
def figure():
    return RepairFigure("the clock", *CLOCK, CODE, alt="stripes <and> waves", rows="token", first_row=7)


def test_a_map_is_kept_to_one_step_of_254(figure):
    for stored, given in zip(figure.maps, CLOCK, strict=True):
        numbers = np.array(given)
        steps = np.frombuffer(base64.b64decode(stored), dtype=np.uint8).astype(int).reshape(figure.shape)
        assert ((steps == NOTHING) == np.isnan(numbers)).all()
        values = np.where(steps == NOTHING, np.nan, (2 * steps / STEPS - 1) * figure.most)
        assert values == pytest.approx(numbers, abs=figure.most / STEPS, nan_ok=True)
        # A zero stays one.
        assert (values[numbers == 0] == 0).all()


def test_the_lines_that_mended_code_lacks_are_to_blame_and_a_name_is_not(figure):
    assert figure.lines == [["def broken(x):", False], ["    y = x + 1", False], ["    return y[0]", True]]


@pytest.mark.parametrize(
    ("columns", "wipe"),
    [
        # Columns with so many cells that differ.
        ([1, 1, 1, 1], 3 / 4),
        ([4, 1, 1, 0], 2 / 4),
        ([0, 0, 0, 4], 3 / 4),
        ([4, 0, 0, 0], 1 / 4),
        ([0, 0, 0, 0], 1 / 4),
    ],
)
def test_at_first_most_of_the_bug_is_shown_and_the_handle_stands_inside(columns, wipe):
    broken = np.where([[row < n for n in columns] for row in range(4)], NAN, 1.0)
    assert RepairFigure("a", broken, np.ones((4, 4)), CODE).wipe == wipe


def test_the_module(tmp_path, figure):
    run_tests("repairs", tmp_path, figure.source(), {"state": figure.state()}, private="kept")


def test_without_javascript_both_pictures_stand_beside_each_other(figure):
    html = figure.fallback_html()
    assert 'alt="stripes &lt;and&gt; waves"' in html and "Down: token" in html
    before, after = (
        np.array(Image.open(io.BytesIO(base64.b64decode(each.partition('"')[0])))) for each in html.split("base64,")[1:]
    )
    # Zero is clear, the largest full, what is below zero blue, and nothing grey.
    assert before[..., 3].tolist() == [[0, 0], [64, 255]]
    assert before[1, 1, 2] > before[1, 1, 0] and before[1, 0, 0] > before[1, 0, 2]
    assert after[1, 1].tolist() == [201, 209, 217, 230]


@pytest.mark.bad_input
def test_what_it_refuses():
    def made(broken, mended):
        return lambda: RepairFigure("the clock", broken, mended, CODE)

    assert_refused(lambda: RepairFigure("the clock", *CLOCK, "code"), "code is 'code'")
    assert_refused(made([1.0], [1.0]), "'the clock'", "no two matrices of one shape")
    assert_refused(made([[1.0]], [[1.0, 2.0]]), "one shape")
    assert_refused(made([[NAN]], [[NAN]]), "one shape")
    assert_refused(made([[np.inf]], [[1.0]]), "one shape")
