"""Contrasts as a forest plot."""

import pytest
from refusals import refused

from posembed.errors import FigureInputError
from posembed.figures import forest_plot, seed_scores, table_maps
from posembed.stats import family, interval


def test_a_forest_plot_has_a_row_each_and_fills_what_holds():
    found = family({"apart": interval([1.0, 1.01, 1.02]), "open": interval([-0.5, 0.1, 0.4])})
    (axes,) = forest_plot(found, alt="Two contrasts.", margin=0.1).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["apart", "open"]
    marks = [line for line in axes.lines if line.get_marker() == "o"]
    assert [mark.get_xdata()[0] for mark in marks] == found["mean"].tolist()
    assert marks[0].get_markerfacecolor() == marks[0].get_color() != marks[1].get_markerfacecolor()


def test_panels_of_scores_stand_side_by_side_or_stacked():
    scores = {title: {"learned": [1.0, 1.1]} for title in ("one", "two")}
    for stacked in (False, True):
        figure = seed_scores(scores, alt="Two panels.", stacked=stacked)
        left, right = (axes.get_subplotspec() for axes in figure.axes)
        assert (left.is_last_row(), right.is_first_row()) == (not stacked, not stacked)


@pytest.mark.bad_input
def test_an_interval_the_wrong_way_round_and_nothing_to_draw_are_refused():
    found = family({"apart": interval([1.0, 1.01, 1.02])})
    found[["low", "high"]] = found[["high", "low"]].to_numpy()
    assert "from 'low' up to 'high'" in refused(FigureInputError, forest_plot, found)
    for lacking in ({"apart": interval([1.0, 1.01, 1.02])}, found.drop(columns="holm")):
        assert "give them to posembed.stats.family first" in refused(FigureInputError, forest_plot, lacking)
    assert "no scores to draw" in refused(FigureInputError, seed_scores, {})
    assert "no tables to draw" in refused(FigureInputError, table_maps, {})
