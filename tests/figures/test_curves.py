"""Curves, and scores of seeds, as they are drawn."""

import numpy as np
import pandas as pd
import pytest
from refusals import refused

from posembed.errors import FigureInputError
from posembed.figures import curves, seed_scores
from posembed.training import interval


def test_one_run_is_a_line_and_several_are_a_mean_with_their_range():
    figure = curves({"one": [3.0, 2.0], "two": [[1.0, 1.0], [3.0, 2.0]]}, x=[10, 20], alt="Two lines.")
    (axes,) = figure.axes
    assert [list(line.get_ydata()) for line in axes.lines] == [[3, 2], [2, 1.5]]
    assert [list(line.get_xdata()) for line in axes.lines] == [[10, 20]] * 2
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    assert {tuple(point) for point in corners.tolist()} >= {(10, 1), (10, 3), (20, 1), (20, 2)}


def test_what_pandas_holds_stands_at_its_index():
    log = pd.DataFrame({"rope": [3.0, 2.0, 1.0], "alibi": [np.nan, 2.5, 2.0]}, index=[10, 100, 1000])
    lines = curves({name: log[name].dropna() for name in log}, log_x=True).axes[0].lines
    assert [list(line.get_xdata()) for line in lines] == [[10, 100, 1000], [100, 1000]]
    (line,) = curves({"two runs": log.T.dropna(axis=1)}).axes[0].lines
    assert list(line.get_xdata()) == [100, 1000]
    assert "leave x out" in refused(FigureInputError, curves, {"rope": log["rope"].sort_values()}, x=[*log.index])
    assert list(curves({"rope": log["rope"].reset_index(drop=True)}, x=[*log.index]).axes[0].lines[0].get_xdata()) == [
        *log.index
    ]


def test_a_band_can_be_the_interval_of_the_mean():
    runs = [[1.0, 2.0], [3.0, 2.5], [2.0, 2.2]]
    (axes,) = curves({"three": runs}, x=[10, 20], alt="A line.", band="interval").axes
    corners = {tuple(point) for point in axes.collections[0].get_paths()[0].vertices.round(9).tolist()}
    for place, values in zip((10.0, 20.0), zip(*runs, strict=True), strict=True):
        found = interval(values)
        assert {(place, round(found.low, 9)), (place, round(found.high, 9))} <= corners


def test_curves_behind_stand_at_their_own_places_and_take_no_colour():
    alone = curves({"ours": [3.0, 2.0]}, x=[0, 1], alt="A line.").axes[0].lines[0]
    figure = curves({"ours": [3.0, 2.0]}, x=[0, 1], alt="Two lines.", behind={"theirs": ([0, 0.5, 1], [1, 2, 3])})
    ours, theirs = figure.axes[0].lines
    assert (list(theirs.get_xdata()), list(theirs.get_ydata())) == ([0, 0.5, 1], [1, 2, 3])
    assert ours.get_color() == alone.get_color() != theirs.get_color()
    assert theirs.get_zorder() < ours.get_zorder()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ours", "theirs"]


def test_seven_curves_can_be_told_apart():
    figure = curves({str(n): [n, n] for n in range(8)}, alt="Eight lines.")
    looks = [(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines]
    assert len(set(looks)) == 8


@pytest.mark.parametrize(("n", "length"), [(2, 40), (3, 17), (4, 10), (5, 14), (8, 30)])
def test_the_legend_stays_inside_the_figure(n, length):
    words = "a legend of many words that stand above the curves"
    figure = curves({f"{words[:length]}{k}": [k, k] for k in range(n)}, alt="Lines.")
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.width


def test_labels_at_the_ends_stand_beside_them_and_apart():
    ends = {"one": 0.0, "two": 0.01, "three": 1.0}
    figure = curves({name: [0.5, at] for name, at in ends.items()}, at_ends=True, alt="Three, two of which end alike.")
    (axes,) = figure.axes
    heights = {text.get_text(): text.xyann[1] for text in axes.texts}
    # A line leads from each end to its label.
    assert all(text.arrow_patch is not None for text in axes.texts)
    bottom, top = axes.get_ylim()
    ends = {name: (at - bottom) / (top - bottom) for name, at in ends.items()}
    assert heights["three"] == pytest.approx(ends["three"]) and not figure.legends
    assert {text.get_text(): text.xy for text in axes.texts} == {
        name: (1, pytest.approx(end)) for name, end in ends.items()
    }
    assert heights["one"] < ends["one"] < ends["two"] < heights["two"]
    assert heights["two"] - heights["one"] > 12 / 72 / figure.get_figheight()


def test_long_labels_at_the_ends_have_several_lines_and_room_for_them():
    ends = {"one": 0.0, "learnable sinusoidal": 0.01, "three": 0.02, "four": 1.0}
    figure = curves({name: [0.5, at] for name, at in ends.items()}, at_ends=True, alt="Three end alike.")
    heights = {text.get_text(): text.xyann[1] for text in figure.axes[0].texts}
    one, two, three = heights["one"], heights["learnable\nsinusoidal"], heights["three"]
    assert min(two - one, three - two) > 1.5 * 12 / 72 / figure.get_figheight()


def test_a_mark_near_an_end_has_its_text_on_the_inner_side():
    marks = {"first": 1, "middle": 50, "last": 99}
    (axes,) = curves({"a": range(101)}, marks=marks, alt="A line.").axes
    assert [text.get_ha() for text in axes.texts] == ["left", "center", "right"]


@pytest.mark.bad_input
@pytest.mark.parametrize("series", [[1, np.inf], [1, -np.inf], [[1, 2], [1, np.inf]], [[np.inf, np.nan]] * 2])
def test_infinity_is_no_gap(series):
    assert "a has infinity, where no point can be drawn" in refused(FigureInputError, curves, {"a": series})
    behind = {"a": ([1.0] * np.size(series), np.ravel(series))}
    assert "a has infinity" in refused(FigureInputError, curves, {"b": [1, 2]}, behind=behind)


def test_marks_axes_and_limits():
    figure = curves({"a": [1, 10]}, alt="A.", marks={"here": 0.5}, log_y=True, log_x=False, ylim=(0.5, 20), xlabel="x")
    (axes,) = figure.axes
    assert (axes.get_yscale(), axes.get_xscale(), axes.get_ylim()) == ("log", "linear", (0.5, 20))
    assert [text.get_text() for text in axes.texts] == ["here"]
    assert list(axes.lines[1].get_xdata()) == [0.5, 0.5]
    assert figure.legends == []


@pytest.mark.bad_input
def test_an_unknown_band_is_an_error():
    assert "choose 'range' or 'interval'" in refused(FigureInputError, curves, {"a": [1, 2]}, band="deviation")


def test_every_seed_is_a_point_and_the_mean_has_its_interval():
    values = {"a": [1.0, 2.0, 3.0], "b": [2.0, 2.5, 2.0]}
    (axes,) = seed_scores(values, alt="Two rows.").axes
    for place, (its, lines) in enumerate(zip(values.values(), np.reshape(axes.lines, (2, 3)), strict=True)):
        seeds, reach, mean = lines
        summary = interval(its)
        assert list(seeds.get_xdata()) == its and len(set(seeds.get_ydata())) == 1
        assert seeds.get_ydata()[0] < place < mean.get_ydata()[0] == reach.get_ydata()[0]
        assert list(reach.get_xdata()) == [summary.low, summary.high]
        assert list(mean.get_xdata()) == [summary.mean]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first label on top


def test_scores_side_by_side_and_differences_with_their_zero():
    panels = {"causal": {"a": [1.0, 2.0]}, "masked": {"a": [3.0, 4.0]}}
    figure = seed_scores(panels, alt="Two panels.", zero=True)
    assert [axes.get_title() for axes in figure.axes] == ["causal", "masked"]
    assert all(list(axes.lines[-1].get_xdata()) == [0, 0] for axes in figure.axes)


def test_scores_of_a_data_frame_and_labels_that_are_numbers():
    scores = pd.DataFrame({64: [1.0, 2.0], 128: [3.0, 4.0]})
    assert seed_scores(scores, xlabel="loss").alt == seed_scores(scores.to_dict("list"), xlabel="loss").alt
    assert seed_scores(scores, xlabel="loss").alt.startswith("loss: 64, 128, numbers from ")
    assert curves(scores).alt == "64 begins at 1 and ends at 2; 128 begins at 3 and ends at 4."


def test_whole_places_have_whole_ticks():
    ticks = lambda **places: curves({"x": [1, 2, 3]}, alt="It rises.", **places).axes[0].get_xticks()
    assert all(float(each).is_integer() for each in ticks()) and len(ticks()) < 6
    assert not all(float(each).is_integer() for each in ticks(x=[0, 0.5, 1]))


@pytest.mark.bad_input
@pytest.mark.parametrize("place", [np.inf, np.nan])
def test_a_place_that_is_no_number_is_refused(place):
    assert "x has NaN or infinity" in refused(FigureInputError, curves, {"a": [1, 2]}, x=[0, place])


@pytest.mark.bad_input
@pytest.mark.parametrize("how", [{"log_x": True}, {"log_y": True, "x": [1, 2, 3]}])
def test_a_point_that_a_logarithmic_axis_would_drop_is_refused(how):
    assert "reaches 0 or below" in refused(FigureInputError, curves, {"loss": [3, 0, 1]}, alt="A.", **how)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "drawn",
    [
        {"series": {"a": [1, 0]}, "log_y": True},
        {"series": {"a": [1, 2]}, "x": [0, 1], "log_x": True},
        {"series": {"b": [1, 2]}, "behind": {"a": ([1, 2], [0, 1])}, "log_y": True},
        {"series": {"b": [1, 2]}, "x": [1, 2], "marks": {"a": 0}, "log_x": True},
        # The interval of the mean of two runs reaches below either.
        {"series": {"b": [3, 2], "a": [[1.0, 2.0], [1.5, 3.0]]}, "band": "interval", "log_y": True},
    ],
)
def test_what_a_logarithmic_axis_has_no_place_for_is_refused(drawn):
    message = refused(FigureInputError, curves, alt="A.", **drawn)
    assert message == "a logarithmic axis ends above 0, and a reaches 0 or below; leave it out, or give x="


def test_a_band_above_zero_and_a_gap_have_a_place_on_a_logarithmic_axis():
    runs = [[1.0, np.nan, 2.0], [1.01, np.nan, 2.02]]
    (axes,) = curves({"a": runs}, alt="A.", band="interval", log_y=True).axes
    assert axes.get_yscale() == "log" and axes.get_ylim()[0] > 0


@pytest.mark.parametrize("band", ["range", "interval"])
def test_a_gap_of_all_runs_is_a_gap_of_their_mean_and_of_their_band(band):
    (axes,) = curves({"a": [[1.0, np.nan, 3.0], [3.0, np.nan, 5.0]]}, alt="A.", band=band).axes
    np.testing.assert_equal(axes.lines[0].get_ydata(), [2.0, np.nan, 4.0])
    assert all(1.0 not in path.vertices[:, 0] for path in axes.collections[0].get_paths())


@pytest.mark.bad_input
@pytest.mark.parametrize("band", ["range", "interval"])
def test_a_number_that_one_of_several_runs_lacks_is_refused(band):
    """Their mean and its band would be gone there, as if none of them had been run."""
    message = refused(FigureInputError, curves, {"a": [[1.0, 2.0], [3.0, np.nan]]}, alt="A.", band=band)
    assert message.startswith("some runs of a have no number where others have one")
