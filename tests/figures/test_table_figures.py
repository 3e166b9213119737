"""The figures of a position table show the numbers they were given."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from refusals import refused

from posembed import sinusoidal
from posembed.errors import FigureInputError
from posembed.figures import (
    explained_variance,
    helix_portrait,
    probe_scatter,
    row_health,
    table_heat,
    table_maps,
)
from posembed.probing import Helix, probe_table, spectrum
from posembed.tables import load_table

N, WIDTH = 48, 16


@pytest.fixture(scope="module")
def table():
    return load_table(sinusoidal(N, WIDTH))


@pytest.fixture(scope="module")
def result(table):
    return probe_table(table)


@pytest.fixture(scope="module")
def found(table):
    return spectrum(table)


def test_the_colours_of_a_table_end_where_most_of_its_numbers_end():
    numbers = torch.arange(-50.0, 50.0).reshape(10, 10)
    numbers[0, 0] = 1e6
    image = table_heat(numbers, alt="Numbers.").axes[0].images[0]
    limit = float(numbers.abs().flatten().sort().values[98])
    assert image.get_clim() == (-limit, limit)
    assert np.array_equal(image.get_array(), numbers.clamp(-limit, limit).numpy())


def test_what_is_no_number_is_grey_and_does_not_count():
    numbers = torch.tensor([[1.0, math.nan], [math.inf, -2.0]])
    image = table_heat(numbers, alt="Two numbers.").axes[0].images[0]
    assert image.get_clim() == (-2, 2)
    assert table_heat(numbers.abs(), alt="Two numbers.").axes[0].images[0].get_clim() == (0, 2)
    grey = image.cmap(np.ma.masked_invalid([np.nan]))
    assert grey[0, :3] == pytest.approx([0xC9 / 255, 0xD1 / 255, 0xD9 / 255])
    # Zeros have a scale all the same.
    assert table_heat(torch.zeros(3, 2), alt="Zeros.").axes[0].images[0].get_clim() == (0, 1)


def test_square_maps_are_square_and_count_from_where_they_begin():
    square, wide = table_maps({"a": torch.eye(5), "b": torch.ones(5, 9)}, alt="Two.", first_row=1000).axes[:2]
    assert square.get_box_aspect() == 1 and wide.get_box_aspect() is None
    assert square.get_ylim() == (1004.5, 999.5) and square.get_xlim() == (999.5, 1004.5)
    assert wide.get_ylim() == (1004.5, 999.5) and wide.get_xlim() == (-0.5, 8.5)


@pytest.mark.bad_input
def test_maps_that_cannot_be_drawn():
    for given in (torch.ones(2, 3, 4), torch.ones(3)):
        assert "cannot be drawn; give an array of 2 axes" in refused(FigureInputError, table_heat, given, alt="x")
    assert "complex numbers cannot be drawn" in refused(FigureInputError, table_heat, 1j * torch.ones(2, 2), alt="x")


@pytest.mark.parametrize("draw", [table_heat, lambda m, alt: table_maps({"m": m}, alt=alt)], ids=["heat", "maps"])
def test_a_matrix_is_drawn_in_whatever_it_is_held(draw):
    given = torch.tensor([[1, -2], [3, 0]])
    masked = np.ma.masked_equal(given.numpy(), 0)
    drawn = [draw(each, alt="x").axes[0].images[0].get_array() for each in (given, given.numpy(), masked)]
    assert np.array_equal(drawn[0], given) and np.array_equal(drawn[1], given)
    assert drawn[2].tolist() == [[1, -2], [3, None]]


def test_rows_that_look_untrained_or_hold_nan_are_marked():
    weight = sinusoidal(N, 32).clone()
    weight[7] = 0
    weight[9, 3] = math.nan
    table = load_table(weight)
    assert (table.untrained_rows, table.non_finite_rows) == ([7], [9])
    figure = row_health(table, alt="Two rows stand out.")
    above, below = figure.axes
    assert np.array_equal(above.lines[0].get_ydata(), table.norms.numpy(), equal_nan=True)
    assert np.array_equal(below.lines[0].get_ydata(), table.nearest.numpy(), equal_nan=True)
    assert [list(line.get_xdata()) for line in above.lines[1:]] == [[7], [9]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["looks untrained", "NaN or infinity"]
    assert row_health(load_table(sinusoidal(N, 32)), alt="All well.").legends == []


def test_a_point_for_each_tested_row_and_the_line_of_an_exact_probe(result):
    axes = probe_scatter(result, alt="Points.").axes[0]
    line, guess, dots = axes.lines
    assert list(dots.get_xdata()) == list(result.positions)
    assert set(guess.get_ydata()) == {np.median(result.train_positions)}
    constant = f"a constant guess by {result.baselines.constant:.0f}"
    assert axes.get_title() == f"off by {result.test_mae:.1f} positions, {constant}"
    assert list(dots.get_ydata()) == list(result.predictions)
    assert list(line.get_xdata()) == list(line.get_ydata()) == [0, N - 1]


def test_predictions_far_away_stand_at_the_edge_and_are_counted(result):
    predictions = result.predictions.copy()
    predictions[:3] = [1e6, -1e6, 2e6]
    axes = probe_scatter(dataclasses.replace(result, predictions=predictions), alt="Three far away.").axes[0]
    _, _, dots, above, below = axes.lines
    low, high = axes.get_ylim()
    assert list(dots.get_ydata()) == list(predictions[3:])
    assert (list(above.get_ydata()), list(below.get_ydata())) == ([high, high], [low])
    assert axes.get_title().endswith("\n3 beyond the edge")
    assert [each.get_text() for each in axes.texts] == ["-1000000"]


def test_fitted_rows_are_shaded_where_they_lie_apart(table, result):
    half = probe_scatter(probe_table(table, split="half"), alt="Points.").axes[0]
    assert [each.get_text() for each in half.texts if "fitted" in each.get_text()] == ["fitted here"]
    assert len(half.patches) == 1 and not probe_scatter(result, alt="Points.").axes[0].patches


def test_shares_of_the_variance_are_added_up(found):
    shown = explained_variance({"x": found}, alt="It rises.").axes[0].lines[0].get_ydata()
    assert shown == pytest.approx(np.cumsum(np.asarray(found.explained_variance_ratio)))
    assert shown[-1] == pytest.approx(1)


def test_the_portrait_is_of_the_two_components_that_turn(found):
    turning = dataclasses.replace(found, helix=Helix((2, 1), 10.0, 0.9, 90.0))
    scores = np.asarray(found.components)
    for shown, (first, second) in ((turning, (2, 1)), (dataclasses.replace(found, helix=None), (0, 1))):
        axes = helix_portrait(shown, alt="A curve.").axes[0]
        assert np.array_equal(axes.collections[0].get_offsets(), scores[:, [first, second]])
        assert (axes.get_xlabel(), axes.get_ylabel()) == (f"component {first + 1}", f"component {second + 1}")


@pytest.mark.bad_input
def test_a_tensor_is_no_table():
    assert "give a PositionTable" in refused(FigureInputError, row_health, sinusoidal(N, WIDTH), alt="x")
