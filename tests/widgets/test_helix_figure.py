"""Figure 15: its points are those that were given, in one scale, and its JavaScript turns them."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from widget_checks import assert_refused, rows_of, run_tests

from posembed import sinusoidal
from posembed.probing import spectrum
from posembed.widgets import HelixFigure

FOUND = spectrum(sinusoidal(64, 16))
SCORES = FOUND.components[:, :3] + 5


@pytest.fixture(scope="module")
def figure():
    return HelixFigure("the <sines>", SCORES, FOUND.positions)


def test_points_keep_their_shape_around_their_middle(figure):
    points, centred = np.array(figure.points), SCORES - SCORES.mean(0)
    scale = np.linalg.norm(centred) / np.linalg.norm(points)
    assert points * scale == pytest.approx(centred, abs=scale * 6e-4)
    assert np.linalg.norm(points, axis=1).max() == pytest.approx(1, abs=2e-3)
    assert figure.positions == list(range(64))


def test_the_module(tmp_path, figure):
    cases = [
        {"degrees": each, "wanted": Rotation.from_euler("y", each, degrees=True).apply(figure.points).tolist()}
        for each in (0, 36, 90, 250)
    ]
    run_tests("helix", tmp_path, figure.source(), {"points": figure.points, "cases": cases})


def test_without_javascript_it_is_a_picture_and_a_few_rows(figure):
    html = figure.fallback_html()
    assert html.count("<circle") == 64 and 'aria-label="the &lt;sines&gt;"' in html
    rows = rows_of(figure)[1:]
    assert [row[0] for row in rows] == ["0", "13", "25", "38", "50", "63"]
    assert float(rows[0][1].replace("−", "-")) == pytest.approx(figure.points[0][0], abs=0.006)


@pytest.mark.bad_input
def test_what_it_refuses():
    assert_refused(lambda: HelixFigure("a", SCORES[:, :2], FOUND.positions), "'a'", "(64, 2) for 64 positions")
    assert_refused(lambda: HelixFigure("a", SCORES, FOUND.positions[1:]), "63 positions")
    assert_refused(lambda: HelixFigure("a", SCORES[:1], [0]), "two or more")
    assert_refused(lambda: HelixFigure("a", SCORES * np.nan, FOUND.positions), "finite")
